"""The direct loop: model and tools take turns until the model answers."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edge_agent.core import keys
from edge_agent.core.events import TERMINAL_TYPES, Boundary, Fault, ModelAnswered, OfferedTools, StopReason
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import AssistantMessage, Message, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts
from edge_agent.loop.ask import Question, Stopped, ask, crossing
from edge_agent.loop.calls import Round, call_tools
from edge_agent.loop.hooking import may
from edge_agent.loop.walk import Walk

Stop = Literal["max_steps", "budget"]
MOST_REJECTIONS = 2  # in a row; then the answer stands


@dataclass(frozen=True, slots=True)
class Ending:
    stop_reason: StopReason
    text: str


@dataclass(slots=True)
class Talk:
    """The conversation so far. Built from records alone. `refused`: a model call did not fit the caps any more."""

    messages: list[Message]
    rejections: int = 0
    after_tools: bool = False
    refused: bool = False

    @property
    def last_text(self) -> str:
        return next((m.text for m in reversed(self.messages) if isinstance(m, AssistantMessage) and m.text), "")


async def direct(walk: Walk, scope: str) -> Ending:
    """Raises what `ask` and `call_tools` raise."""
    talk = Talk(_opening(walk))
    for number in itertools.count(1):
        key = keys.round_(scope, number)
        boundary = await _boundary(walk, key, number, talk)
        if boundary.stop and not boundary.final:
            return Ending(boundary.stop, talk.last_text)
        try:
            answer = await ask(walk, _question(walk, key, boundary, talk))
        except Stopped:
            if boundary.stop:
                return Ending(boundary.stop, talk.last_text)
            talk.refused = True
            continue
        if answer.rejected:
            talk.rejections, talk.after_tools = talk.rejections + 1, False
            if answer.rejected.reminder:
                talk.messages.append(UserMessage(text=answer.rejected.reminder))
            continue
        talk.rejections = 0
        message = answer.answered.message
        talk.messages.append(message)
        if message.calls:
            talk.messages += await call_tools(walk, _round(key, number, boundary, answer.answered))
            talk.after_tools = True
        if boundary.stop or not message.calls:
            return Ending(boundary.stop or _stop_reason(answer.answered), message.text)
    raise AssertionError("unreachable")


def _opening(walk: Walk) -> list[Message]:
    turns = [
        UserMessage(text=t.text) if t.role == "user" else AssistantMessage(text=t.text) for t in walk.created.history
    ]
    return [*turns, UserMessage(text=walk.created.input)]


def _stop_reason(answered: ModelAnswered) -> StopReason:
    return "max_tokens" if answered.finish_reason == "length" else "stop"


def _round(key: str, number: int, boundary: Boundary, answered: ModelAnswered) -> Round:
    return Round(
        key=key,
        step=keys.step_of(key) or 1,
        number=number,
        calls=answered.message.calls,
        offered=boundary.tools.names,
        cut_off=answered.finish_reason == "length",
    )


# -- the boundary
async def _boundary(walk: Walk, key: str, number: int, talk: Talk) -> Boundary:
    """The one place that looks at the tail: cancelled? caps? which tools? Decided once, in one block, and recorded."""
    if found := walk.seen(key, Boundary):
        return found
    walk.ready()
    if number == 1 and (on_run_start := walk.ports.agent.hooks.on_run_start):
        await may(walk, key, "on_run_start", lambda: on_run_start(walk.created.input))
        walk.ready()
    unreachable = await walk.take_in_tools(key, again=True)
    walk.ready()
    tools = () if _text_is_forced(walk, talk) else walk.ports.tools.offered()
    stop, notes = _caps(walk, number, talk, tools)
    final = stop is not None and _fits(walk, talk, (), Amount(), _final_cap(walk)) is None
    boundary = Boundary(stop=stop, final=final, tools=_offer(() if stop else tools))
    walk.write(Draft(key=key, event=boundary), *notes, *_faults(walk, key, unreachable))
    return boundary


def _text_is_forced(walk: Walk, talk: Talk) -> bool:
    forced = walk.ports.agent.force_text_after_tool or walk.ports.model(walk.created.models[0]).force_text_after_tool
    return forced and talk.after_tools


def _offer(tools: tuple[ToolSpec, ...]) -> OfferedTools:
    return OfferedTools(names=tuple(tool.name for tool in tools), version=keys.digest(tools)[:16])


def _faults(walk: Walk, key: str, sentences: Sequence[str]) -> list[Draft]:
    """A server that stays away is reported once, not before every round."""
    told = {record.event.message for record in walk.journal.types.get("fault", ()) if isinstance(record.event, Fault)}
    fresh = [sentence for sentence in sentences if sentence not in told]
    events = [Fault(kind="mcp", message=sentence, action="continued") for sentence in fresh]
    return [Draft(key=f"{key}/fault/mcp/{index}", event=event, by="note") for index, event in enumerate(events)]


def _caps(walk: Walk, number: int, talk: Talk, tools: tuple[ToolSpec, ...]) -> tuple[Stop | None, list[Draft]]:
    limits = walk.created.limits
    if talk.refused:
        return "budget", []
    if limits.max_seconds is not None:
        seconds = active_seconds(walk.journal, walk.ports.clock.now())
        if seconds >= limits.max_seconds:
            return "budget", crossing(walk, budget.Overrun(kind="seconds", used=seconds, cap=limits.max_seconds))
    if limits.max_steps is not None and number > limits.max_steps:
        return "max_steps", crossing(walk, budget.Overrun(kind="steps", used=number - 1, cap=limits.max_steps))
    over = _fits(walk, talk, tools, _kept(walk, talk), budget.round_cap(limits, walk.ports.context_window))
    return ("budget", crossing(walk, over)) if over else (None, [])


def _final_cap(walk: Walk) -> int:
    return budget.final_cap(walk.created.limits, walk.ports.context_window)


def _kept(walk: Walk, talk: Talk) -> Amount:
    """What stays reserved for the final answer while rounds are made. Nothing where no token cap is set."""
    limits = walk.created.limits
    caps = (limits.max_input_tokens, limits.max_output_tokens, limits.max_reasoning_tokens, limits.max_total_tokens)
    if all(cap is None for cap in caps):
        return Amount()
    tokens = budget.estimated_input(_request(walk, talk, (), final=True))
    return budget.kept_for_the_end(limits, walk.ports.context_window, tokens)


def _fits(walk: Walk, talk: Talk, tools: tuple[ToolSpec, ...], kept: Amount, cap: int) -> budget.Overrun | None:
    tokens = budget.estimated_input(_request(walk, talk, tools, final=not tools))
    held = budget.reserve(walk.created.limits, walk.journal.spent, tokens, cap, kept)
    return held if isinstance(held, budget.Overrun) else None


def active_seconds(journal: Journal, now: int) -> float:
    """By the records: all the time of the run but what it waited for someone, or lay ended."""
    records = journal.in_order()
    times = [*(record.at for record in records[1:]), now]
    idle = {"run.waiting", *TERMINAL_TYPES}
    active = (later - record.at for record, later in zip(records, times, strict=True) if record.type not in idle)
    return sum(active) / 1000


# -- the request
def _question(walk: Walk, key: str, boundary: Boundary, talk: Talk) -> Question:
    def build() -> ModelRequest:
        offered = {tool.name: tool for tool in walk.ports.tools.offered()}
        tools = tuple(offered[name] for name in boundary.tools.names if name in offered)
        return _request(walk, talk, tools, final=boundary.final)

    limits, window = walk.created.limits, walk.ports.context_window
    return Question(
        key=key,
        stage="round",
        build=build,
        cap=_final_cap(walk) if boundary.final else budget.round_cap(limits, window),
        kept=lambda: Amount() if boundary.final else _kept(walk, talk),
        may_reject=talk.rejections < MOST_REJECTIONS and not boundary.final,
        needs_tools=bool(boundary.tools.names),
    )


def _request(walk: Walk, talk: Talk, tools: tuple[ToolSpec, ...], *, final: bool) -> ModelRequest:
    last = [UserMessage(text=prompts.LAST_ROUND)] if final else []
    return ModelRequest(
        system=prompts.system(walk.ports.agent.instructions),
        messages=(*talk.messages, *last),
        tools=tools,
        tool_choice="auto" if tools else "none",
        metadata={"run": walk.run_id, "agent": walk.ports.agent.name},
    )
