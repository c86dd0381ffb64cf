"""One model call: attempts a0, a1 …, each on record before it is made, each ended by one record, each paid for."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError, ModelError
from edge_agent.core.events import (
    Fault,
    ModelAnswered,
    ModelFailed,
    ModelRefused,
    ModelRejected,
    ModelRequested,
    OfferedTools,
    Stage,
)
from edge_agent.core.hooks import Reject
from edge_agent.core.journal import Draft
from edge_agent.core.messages import AssistantMessage, MessageWithFiles
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import StoredFile
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop import budget
from edge_agent.loop.charge import Charge, crossing, tell_usage, unheard
from edge_agent.loop.estimates import of_files
from edge_agent.loop.hooking import Aborted, must, wants_abort
from edge_agent.loop.listen import Heard, Listener
from edge_agent.loop.offer import described, offer
from edge_agent.loop.tries import Shorter, Tries
from edge_agent.loop.walk import Cut, Stray, Walk

IN_MEMORY_SECONDS = 5.0  # a longer wait lets go of the object
FIRST_PAUSE = (
    0.5  # seconds, doubled by each retry, and up to half as much again so that many runs do not come back at once
)
UNSENT = frozenset(
    {
        "connection",
        "unauthorized",
        "bad-request",
        "thinking-refused",
        "not-found",
        "rate-limited",
        "quota",
        "context-overflow",
    }
)


class Stopped(EdgeAgentError):
    """A recorded verdict: no attempt is made any more, the caps do not allow it or the step was cancelled."""

    def __init__(self, stop: Literal["budget", "cancelled"]) -> None:
        super().__init__(stop)
        self.stop: Literal["budget", "cancelled"] = stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to ask. What is built of the conversation is built at the frontier only: a walked round builds no prompt.

    tools: what its boundary offered; without one it is recorded what the prompt knows of tools.
    kept: what stays reserved for the final answer. last: this is it, made in a round. needs_tools: the tools' servers
    are connected before the request is built (a restart has lost them). shorter: see Tries.
    """

    key: str
    stage: Stage
    build: Callable[[], ModelRequest]
    cap: int
    kept: Callable[[], Amount]
    models: tuple[str, ...]
    tools: OfferedTools | None = None
    may_reject: bool = False
    needs_tools: bool = False
    last: bool = False
    shorter: Shorter | None = None

    @property
    def is_final(self) -> bool:
        return self.last or self.stage == "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    answered: ModelAnswered
    rejected: ModelRejected | None


async def ask(walk: Walk, question: Question) -> Answer:
    """Raises ModelGaveUp, Stopped, Aborted, HookFailed, Cancelled, Yield, Suspend."""
    tries = Tries(walk, question.key, len(question.models), question.shorter)
    for number in itertools.count():
        key = keys.attempt(question.key, number)
        asked = walk.seen(key, ModelRequested, ModelRefused)
        walk.met(key, asked, question.build, question.tools)
        if asked is None:
            asked = await _begin(walk, question, number, tries)
        if isinstance(asked, ModelRefused):
            if asked.stop != "context-overflow":
                raise Stopped(asked.stop)
            await tries.not_made(question.stage, number, asked)
            continue
        ended = walk.seen(f"{key}/end", ModelAnswered, ModelFailed)
        if ended is None:
            ended = _lost(walk, key, asked)
        if ended.type == "model.failed" and ended.error == "cancelled":
            raise Stopped("cancelled")
        if isinstance(ended, ModelAnswered):
            return Answer(answered=ended, rejected=walk.seen(f"{key}/rejected", ModelRejected))
        if (abort := walk.seen(f"{key}/abort", Fault)) and walk.in_this_life(f"{key}/abort"):
            raise Aborted(abort.message)
        if ended.error == "context-overflow" and await tries.made_shorter(number, asked.estimated_input):
            continue
        tries.after(key, ended, goes_on=walk.has(keys.attempt(question.key, number + 1)))
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One attempt that is on record and now being made."""

    walk: Walk
    question: Question
    tries: Tries
    key: str
    model: Model
    request: ModelRequest
    requested: ModelRequested
    charge: Charge

    @property
    def until(self) -> int | None:
        """When the time of the run is up (ms since the epoch); the answer at the end is not hurried."""
        limits, clock = self.walk.created.limits, self.walk.ports.clock
        if limits.max_seconds is None or self.question.is_final:
            return None
        left = limits.max_seconds - budget.active_seconds(self.walk.journal, clock.now())
        return clock.now() + int(left * 1000)


async def _begin(walk: Walk, question: Question, number: int, tries: Tries) -> ModelRequested | ModelRefused:
    """The frontier of a model call: the record of the attempt, the attempt, the record of its end."""
    key = keys.attempt(question.key, number)
    walk.ready()
    if walk.step_cancelled(key):
        return _refused(walk, key, ModelRefused(stop="cancelled"))
    walk.before_effect(key)
    await _pause(walk, key, tries)
    if question.needs_tools:
        await walk.take_in_tools(key, again=False)
    name = question.models[tries.model]
    model, prices = walk.ports.model(name), budget.prices_of(walk, name)
    built = _asked_as(walk, question, number, model)
    changed = await _changed(walk, key, built)
    request = changed or built
    walk.ready()
    if walk.step_cancelled(key):
        return _refused(walk, key, ModelRefused(stop="cancelled"))
    tokens, limits = walk.estimates.input(request), walk.created.limits
    room = walk.ports.context_window - tokens
    if room < budget.LEAST_OUTPUT:
        return _refused(walk, key, ModelRefused(stop="context-overflow", estimated_input=tokens))
    late = None if question.is_final else budget.late(limits, walk.journal, walk.ports.clock.now())
    cap = min(question.cap, room)
    held = late or budget.reserve(limits, walk.journal.spent, tokens, cap, question.kept(), prices)
    if isinstance(held, budget.Overrun):
        return _refused(walk, key, ModelRefused(stop="budget"), *crossing(walk, held))
    request = replace(request, max_output_tokens=held.cap)
    tools, files = _known_tools(walk, question, built)
    requested = ModelRequested(
        stage=question.stage,
        model=model.name,
        provider=model.provider,
        attempt=number,
        prompt_hash=walk.hashes.of(request),
        estimated_input=tokens,
        output_cap=held.cap,
        built_hash=None if changed is None else walk.hashes.of(built),
        tools=tools,
    )
    walk.write(Draft(key=key, event=requested, money={key: held.amount}), files=files)
    of_these = of_files(*request.messages)
    charge = Charge(
        walk=walk, key=key, stage=question.stage, input_tokens=tokens, of_files=of_these, held=held, price=prices.call
    )
    await _make(
        _Attempt(
            walk=walk,
            question=question,
            tries=tries,
            key=key,
            model=model,
            request=request,
            requested=requested,
            charge=charge,
        )
    )
    return requested


def _asked_as(walk: Walk, question: Question, number: int, model: Model) -> ModelRequest:
    """The request as the agent wants it asked; without thinking where the model has just refused that."""
    name = f"{model.provider}/{model.name}"
    told = {"run": walk.run_id, "agent": walk.agent.name, "stage": question.stage}
    if step := keys.step_of(question.key):
        told["step"] = str(step)
    built = replace(question.build(), metadata=told)
    request = walk.agent.prompting.of(built, stage=question.stage, model=name, run_id=walk.run_id)
    before = walk.journal.event(f"{keys.attempt(question.key, number - 1)}/end", ModelFailed) if number else None
    if before is None or before.error != "thinking-refused":
        return request
    walk.warn(f"{name} is asked again without thinking, which it refused.")
    return replace(request, thinking="none")


def _refused(walk: Walk, key: str, refused: ModelRefused, *notes: Draft) -> ModelRefused:
    walk.write(Draft(key=key, event=refused), *notes)
    return refused


async def _pause(walk: Walk, key: str, tries: Tries) -> None:
    seconds, tries.pause = tries.pause, 0.0
    if seconds:
        try:
            await walk.effect(key, _slept(walk, seconds))
        except Cut:
            walk.ready()


async def _slept(walk: Walk, seconds: float) -> None:
    await walk.ports.sleep(seconds)


async def _changed(walk: Walk, key: str, request: ModelRequest) -> ModelRequest | None:
    """What the before_model hook wants to be sent in its place."""
    hook = walk.agent.hooks.before_model
    return None if hook is None else await must(walk, key, "before_model", ModelRequest, lambda: hook(request))


def _known_tools(
    walk: Walk, question: Question, built: ModelRequest
) -> tuple[OfferedTools | None, tuple[StoredFile, ...]]:
    """What the prompt knows of tools, where that is not what its boundary says; and the descriptions of servers."""
    if question.tools is None and not question.needs_tools:
        return None, ()
    tools = walk.tools.offered() if question.tools is None else built.tools
    known = offer(tools)
    return (None, ()) if known == question.tools else (known, described(walk, tools, known))


async def _make(attempt: _Attempt) -> None:
    walk, began, heard = attempt.walk, attempt.walk.ports.clock.now(), Heard()
    question, most = attempt.question, attempt.charge.held.most
    listener = Listener(walk, question.key, attempt.key, question.stage, heard, most=most, until=attempt.until)
    try:
        await walk.effect(attempt.key, listener.listen(attempt.model, _with_files(walk, attempt.request)))
    except Cut:
        walk.ready()  # the end of the run ends the attempt; that of a step is recorded here
        _cut_off(attempt, heard)
    except ModelError as error:
        await _failed(attempt, heard, error)
    except Stray as error:
        await _failed(attempt, heard, ModelError("connection", f"the model's stream ended: {error}", retryable=True))
    except Exception as error:  # noqa: BLE001 - an adapter may raise only ModelError; another try would meet the same fault
        message = f"the model adapter raised {type(error).__name__}: {error}"
        await _failed(attempt, heard, ModelError("bad-answer", message, retryable=False))
    else:
        await _answered(attempt, heard, walk.ports.clock.now() - began)


def _with_files(walk: Walk, request: ModelRequest) -> ModelRequest:
    """With the bytes of what was sent along, which are read here and kept nowhere."""
    names = {
        file.name
        for message in request.messages
        if isinstance(message, MessageWithFiles)
        for file in message.attachments
    }
    found = [file for name in names if (file := walk.journal.log.file(name))]
    return replace(request, files={file.name: file.content for file in found}) if found else request


async def _answered(attempt: _Attempt, heard: Heard, latency: int) -> None:
    walk, key, requested = attempt.walk, attempt.key, attempt.requested
    message, charge = heard.message(), attempt.charge
    usage = charge.usage(heard)
    amount, cut_by = charge.amount(usage), charge.cut_by(heard, usage)
    answered = ModelAnswered(
        stage=requested.stage,
        message=message,
        finish_reason=heard.finish_reason or "other",
        usage=usage if heard.left else heard.usage or usage,
        estimated=heard.left or heard.usage is None,
        cut_by=cut_by,
        latency_ms=latency,
        cost_usd=amount.usd,
        gateway_log_id=heard.gateway_log_id,
    )
    drafts = [Draft(key=f"{key}/end", event=answered, money={key: amount})]
    if verdict := await _judged(walk, key, attempt.question, message):
        rejected = ModelRejected(attempt=requested.attempt, reason=verdict.reason, reminder=verdict.reminder)
        drafts.append(Draft(key=f"{key}/rejected", event=rejected))
    walk.write(*drafts, *charge.crossed(amount, cut_by))
    tell_usage(walk, requested.stage)


async def _judged(walk: Walk, key: str, question: Question, message: AssistantMessage) -> Reject | None:
    """Decided before the answer is on record and recorded with it, so that a walk never asks the hook again."""
    hook = walk.agent.hooks.after_model
    if hook is None or not question.may_reject:
        return None
    return await must(walk, key, "after_model", Reject, lambda: hook(message))


async def _failed(attempt: _Attempt, heard: Heard, error: ModelError) -> None:
    walk, key, requested, tries = attempt.walk, attempt.key, attempt.requested, attempt.tries
    unsent = error.kind in UNSENT and not heard.anything and heard.usage is None
    usage = Usage() if unsent else attempt.charge.usage(heard)
    abort = await wants_abort(walk, key, "provider", None, error)
    again = error.retryable and tries.one_is_left and not abort
    later = again and error.retry_after is not None and error.retry_after > IN_MEMORY_SECONDS
    jitter = random.uniform(1.0, 1.5)  # noqa: S311 - no secret
    tries.pause = 0.0 if later else error.retry_after or FIRST_PAUSE * 2**tries.bad * jitter
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error=error.kind,
        message=error.message,
        retryable=error.retryable,
        usage=usage,
        retry_at=walk.ports.clock.now() + int((error.retry_after or 0) * 1000) if later else None,
    )
    drafts = [Draft(key=f"{key}/end", event=failed, money={key: attempt.charge.amount(usage)})]
    if abort:
        drafts.append(Draft(key=f"{key}/abort", event=Fault(kind="provider", message=error.message, action="failed")))
    walk.write(*drafts)
    tell_usage(walk, requested.stage)


def _cut_off(attempt: _Attempt, heard: Heard) -> None:
    """By the cancel of the step. What was sent is paid for, and what was heard."""
    walk, requested = attempt.walk, attempt.requested
    usage = attempt.charge.usage(heard)
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error="cancelled",
        message="the step was cancelled while the model answered",
        retryable=False,
        usage=usage,
    )
    walk.write(Draft(key=f"{attempt.key}/end", event=failed, money={attempt.key: attempt.charge.amount(usage)}))


def _lost(walk: Walk, key: str, requested: ModelRequested) -> ModelFailed:
    """An attempt of an instance that is gone."""
    message = "the object was restarted while the model answered"
    walk.write(unheard(key, requested, walk.journal.money[key], "lost", message))
    return walk.kept(f"{key}/end", ModelFailed)
