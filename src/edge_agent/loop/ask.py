"""One model call: attempts a0, a1 …, each on record before it is made, each ended by exactly one record, each paid for."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError, ModelError
from edge_agent.core.events import (
    BudgetExceeded,
    ModelAnswered,
    ModelFailed,
    ModelRefused,
    ModelRejected,
    ModelRequested,
    Stage,
    Timer,
    UsageSoFar,
)
from edge_agent.core.hooks import Reject
from edge_agent.core.journal import Draft
from edge_agent.core.messages import AssistantMessage
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.signals import Cancelled, Suspend, Wait
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop import budget
from edge_agent.loop.hooking import must, wants_abort
from edge_agent.loop.listen import Heard, listen
from edge_agent.loop.walk import Cut, Walk

MOST_LOST = 9  # attempts of one call that may be lost to restarts
IN_MEMORY_SECONDS = 5.0  # a longer wait lets go of the object
UNSENT = frozenset(
    {"connection", "unauthorized", "bad-request", "not-found", "rate-limited", "quota", "context-overflow"}
)


class ModelGaveUp(EdgeAgentError):
    """No retry and no fallback is left."""

    def __init__(self, failure: ModelFailed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Stopped(EdgeAgentError):
    """A recorded verdict ends the run without another call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to ask, built at the frontier only: a walked round builds no prompt. `kept`: what stays reserved for the final answer.
    `needs_tools`: the tools' servers are connected before the request is built (a restart has lost them)."""

    key: str
    stage: Stage
    build: Callable[[], ModelRequest]
    cap: int
    kept: Amount
    may_reject: bool
    needs_tools: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    answered: ModelAnswered
    rejected: ModelRejected | None


async def ask(walk: Walk, question: Question) -> Answer:
    """Raises ModelGaveUp, Stopped, HookFailed, Cancelled, Yield, Suspend."""
    tries = _Tries(walk)
    for number in itertools.count():
        key = keys.attempt(question.key, number)
        asked = walk.seen(key, ModelRequested, ModelRefused)
        if asked is None:
            asked = await _begin(walk, question, key, number, tries)
        if isinstance(asked, ModelRefused):
            raise Stopped(asked.stop)
        ended = walk.seen(f"{key}/end", ModelAnswered, ModelFailed)
        if ended is None:
            ended = _lost(walk, key, asked)
        if isinstance(ended, ModelAnswered):
            return Answer(answered=ended, rejected=walk.seen(f"{key}/rejected", ModelRejected))
        tries.after(key, ended, again=walk.has(keys.attempt(question.key, number + 1)))
    raise AssertionError("unreachable")


class _Tries:
    """Whether another attempt is made, of which model, and after what pause. Failures of earlier lives do not count."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.model, self.bad, self.lost, self.pause = walk, 0, 0, 0, 0.0

    def after(self, key: str, failure: ModelFailed, again: bool) -> None:
        """`again`: the next attempt is on record, so there is nothing to decide."""
        if failure.error == "lost":
            self.lost += 1
            if self.lost > MOST_LOST and not again:
                raise ModelGaveUp(failure)
        elif failure.error != "run-ended" and self.walk.in_this_life(self.walk.journal.records[f"{key}/end"]):
            self._count(key, failure, again)

    def _count(self, key: str, failure: ModelFailed, again: bool) -> None:
        if failure.retryable and self.bad < self.walk.ports.max_retries:
            self.bad += 1
            if failure.retry_at is not None and not again and not self.walk.has(f"{key}/due"):
                self.walk.ready()
                raise Suspend(Wait(key=f"{key}/due", reason="retry", until=failure.retry_at, at_deadline=Timer()))
        elif self.model + 1 < len(self.walk.created.models):
            self.model, self.bad, self.pause = self.model + 1, 0, 0.0
        elif not again:
            raise ModelGaveUp(failure)


async def _begin(walk: Walk, question: Question, key: str, number: int, tries: _Tries) -> ModelRequested | ModelRefused:
    """The frontier of a model call: the record of the attempt, the attempt, the record of its end."""
    walk.ready()
    walk.before_effect(key)
    if tries.pause:
        await _pause(walk, key, tries.pause)
        tries.pause = 0.0
    if question.needs_tools:
        await walk.take_in_tools(key, again=False)
    model = walk.ports.model(walk.created.models[tries.model])
    request = question.build()
    if hook := walk.ports.agent.hooks.before_model:
        request = await must("before_model", lambda: hook(request)) or request
    walk.ready()
    tokens = budget.estimated_input(request)
    held = budget.reserve(walk.created.limits, walk.journal.spent, tokens, question.cap, question.kept)
    if isinstance(held, budget.Overrun):
        refused = ModelRefused(stop="budget")
        walk.write(Draft(key=key, event=refused), *crossing(walk, held))
        return refused
    request = replace(request, max_output_tokens=held.cap)
    requested = ModelRequested(
        stage=question.stage,
        model=model.name,
        provider=model.provider,
        attempt=number,
        prompt_hash=keys.digest(
            request.system, request.messages, request.tools, request.tool_choice, request.output_schema
        ),
        estimated_input=tokens,
        output_cap=held.cap,
    )
    walk.write(Draft(key=key, event=requested, money={key: held.amount}))
    await _attempt(walk, question, key, requested, model, request, tries)
    return requested


async def _pause(walk: Walk, key: str, seconds: float) -> None:
    async def wait() -> None:
        await walk.ports.sleep(seconds)

    try:
        await walk.effect(key, wait())
    except Cut:
        walk.ready()


async def _attempt(
    walk: Walk,
    question: Question,
    key: str,
    requested: ModelRequested,
    model: Model,
    request: ModelRequest,
    tries: _Tries,
) -> None:
    began, heard = walk.ports.clock.now(), Heard()
    try:
        await walk.effect(key, listen(walk, key, question.key, model, request, heard))
    except Cut:
        raise Cancelled from None  # the terminal batch ends the attempt
    except ModelError as error:
        await _failed(walk, key, requested, heard, error, tries)
        return
    await _answered(walk, question, key, requested, heard, walk.ports.clock.now() - began)


async def _answered(
    walk: Walk, question: Question, key: str, requested: ModelRequested, heard: Heard, latency: int
) -> None:
    message = heard.message()
    usage = heard.usage or Usage(
        input=requested.estimated_input, output=budget.estimated_output(message, heard.thought)
    )
    answered = ModelAnswered(
        stage=question.stage,
        message=message,
        finish_reason=heard.finish_reason,
        usage=usage,
        estimated=heard.usage is None,
        latency_ms=latency,
    )
    verdict = await _judged(walk, question, message)
    drafts = [Draft(key=f"{key}/end", event=answered, money={key: spent_by(usage)})]
    if verdict:
        rejected = ModelRejected(attempt=requested.attempt, reason=verdict.reason, reminder=verdict.reminder)
        drafts.append(Draft(key=f"{key}/rejected", event=rejected))
    walk.write(*drafts)
    walk.ports.sink.passing(UsageSoFar(phase="execute", usage=walk.journal.spent))


async def _judged(walk: Walk, question: Question, message: AssistantMessage) -> Reject | None:
    """Decided before the answer is on record and recorded with it, so that a walk never asks the hook again."""
    hook = walk.ports.agent.hooks.after_model
    if hook is None or not question.may_reject:
        return None
    return await must("after_model", lambda: hook(message))


async def _failed(
    walk: Walk, key: str, requested: ModelRequested, heard: Heard, error: ModelError, tries: _Tries
) -> None:
    unsent = error.kind in UNSENT and not heard.anything
    said = budget.estimated_output(heard.message(), heard.thought)
    usage = heard.usage or Usage(input=0 if unsent else requested.estimated_input, output=said)
    retryable = error.retryable and not await wants_abort(walk, key, "provider", None, error)
    later = error.retry_after is not None and error.retry_after > IN_MEMORY_SECONDS and retryable
    tries.pause = 0.0 if later else error.retry_after or 0.5 * 2**tries.bad * random.uniform(1.0, 1.5)
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error=error.kind,
        message=error.message,
        retryable=retryable,
        usage=usage,
        retry_at=walk.ports.clock.now() + int((error.retry_after or 0) * 1000) if later else None,
    )
    walk.write(Draft(key=f"{key}/end", event=failed, money={key: spent_by(usage)}))


def _lost(walk: Walk, key: str, requested: ModelRequested) -> ModelFailed:
    """An attempt of an instance that is gone: its tokens may have been used, so it costs its whole reserve."""
    reserve = walk.journal.money[key]
    failed = ModelFailed(
        stage=requested.stage,
        attempt=requested.attempt,
        error="lost",
        message="the object was restarted while the model answered",
        retryable=True,
        usage=Usage(input=reserve.input, output=reserve.output),
    )
    walk.write(Draft(key=f"{key}/end", event=failed, money={key: reserve}))
    return failed


def spent_by(usage: Usage) -> Amount:
    return Amount(input=usage.input, output=usage.output, reasoning=usage.reasoning)


def crossing(walk: Walk, over: budget.Overrun) -> list[Draft]:
    """budget.exceeded, once per kind and life."""
    key = keys.budget(over.kind, walk.journal.life)
    if walk.has(key):
        return []
    return [Draft(key=key, event=BudgetExceeded(kind=over.kind, used=over.used, cap=over.cap), by="note")]
