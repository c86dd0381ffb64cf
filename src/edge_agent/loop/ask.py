"""One model call: attempts a0, a1 …, each on record before it is made, each ended by one record, each paid for."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError
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
from edge_agent.core.journal import Draft
from edge_agent.core.model import Model, ModelRequest
from edge_agent.core.ports import StoredFile
from edge_agent.core.usage import Amount
from edge_agent.loop import budget
from edge_agent.loop.attempt import Attempt, make
from edge_agent.loop.charge import Charge, crossing, unheard
from edge_agent.loop.estimates import of_files
from edge_agent.loop.hooking import Aborted, must
from edge_agent.loop.offer import described
from edge_agent.loop.tries import Shorter, Tries
from edge_agent.loop.walk import Cut, Walk


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
    attempt = Attempt(
        walk=walk,
        call=question.key,
        tries=tries,
        key=key,
        model=model,
        request=request,
        requested=requested,
        charge=charge,
        hurried=not question.is_final,
        may_reject=question.may_reject,
    )
    await make(attempt)
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
    known = walk.offers.of(tools)
    return (None, ()) if known == question.tools else (known, described(walk.journal, tools, known))


def _lost(walk: Walk, key: str, requested: ModelRequested) -> ModelFailed:
    """An attempt of an instance that is gone."""
    message = "the object was restarted while the model answered"
    walk.write(unheard(key, requested, walk.journal.money[key], "lost", message))
    return walk.kept(f"{key}/end", ModelFailed)
