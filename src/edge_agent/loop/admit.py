"""Before any call of an answer starts: what cannot run is answered, in order, in one batch."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from edge_agent.core import keys
from edge_agent.core.errors import InvalidArguments
from edge_agent.core.events import BudgetExceeded, RejectReason, SubagentCompleted, ToolRejected, ToolResult
from edge_agent.core.journal import Draft
from edge_agent.core.messages import ToolCall
from edge_agent.core.tooling import ALWAYS_RUN, FIND_TOOLS
from edge_agent.core.usage import Amount
from edge_agent.loop.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The calls of one answer. offered: the names its boundary offered. cut_off: a token limit cut the answer.
    repeated: calls that were made again and again, and the keys of their earlier results, which answer them.
    kept: what stays reserved for the run's final answer, asked where a call may spend what is left."""

    key: str
    step: int
    number: int
    calls: tuple[ToolCall, ...]
    offered: tuple[str, ...]
    cut_off: bool
    repeated: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: Callable[[], Amount] = Amount

    @property
    def keys(self) -> list[str]:
        return [keys.tool_call(self.key, index) for index in range(len(self.calls))]


def turn_down(walk: Walk, round_: Round) -> None:
    """The calls that cannot run are answered in order in one batch; else the order of completion would decide who is
    over a cap."""
    cap = walk.created.limits.max_tool_calls
    used = walk.journal.spent.tool_calls
    batch: list[Draft] = []
    for key, call in zip(round_.keys, round_.calls, strict=True):
        if any(walk.has(f"{key}/{what}") for what in ("result", "call", "approval")):
            continue
        if again := _from_the_log(walk, key, call, round_):
            batch.append(Draft(key=f"{key}/result", event=again))
            continue
        reason, message = _objection(walk, call, round_)
        counts = call.name not in ALWAYS_RUN
        if reason is None and counts and cap is not None and used >= cap:
            reason, message = "budget", f"The cap of {cap} tool calls is used up; go on without this call."
        if reason is None:
            used += counts
        else:
            batch.append(Draft(key=f"{key}/result", event=rejected(call, round_, reason, message)))
    if cap is not None and any(isinstance(d.event, ToolRejected) and d.event.reason == "budget" for d in batch):
        batch += _exceeded(walk, used, cap)
    if batch:
        walk.write(*batch)


def _from_the_log(walk: Walk, key: str, call: ToolCall, round_: Round) -> ToolResult | None:
    """What an earlier, equal call came to, where the same call is made round after round."""
    where = f"{round_.repeated.get(key)}/result"
    earlier = walk.journal.event(where, ToolResult) or _as_result(walk.journal.event(where, SubagentCompleted))
    if earlier is None:
        return None
    return replace(earlier, call_id=call.id, step=round_.step, round=round_.number, duration_ms=0)


def _as_result(answer: SubagentCompleted | None) -> ToolResult | None:
    """A child's answer that is given again: no child is started for it."""
    if answer is None:
        return None
    return ToolResult(
        call_id=answer.call_id,
        name=answer.name,
        ok=True,
        output=answer.text,
        model_chars=len(answer.text),
        duration_ms=0,
        step=answer.step,
        round=answer.round,
    )


def _exceeded(walk: Walk, used: int, cap: int) -> list[Draft]:
    key = keys.budget("tool-calls", walk.journal.life)
    return (
        []
        if walk.has(key)
        else [Draft(key=key, event=BudgetExceeded(kind="tool-calls", used=used, cap=cap), by="note")]
    )


def _objection(walk: Walk, call: ToolCall, round_: Round) -> tuple[RejectReason | None, str]:
    if round_.cut_off:
        return "cut-off", (
            "The answer was cut at its output limit, so this call was not run. Call it again, with less text around it."
        )
    if call.name not in round_.offered:
        return "unknown-tool", _not_offered(walk, call.name, round_.offered)
    tool = walk.tools.find(call.name)
    if tool is None:
        return "unknown-tool", f"{call.name} cannot be reached any more. Go on without it."
    if call.malformed is not None:
        return "invalid-arguments", f"The arguments of {call.name} are not a JSON object: {call.malformed[:200]}"
    try:
        tool.check(copy.deepcopy(call.arguments))
    except InvalidArguments as error:
        return "invalid-arguments", str(error)
    return None, ""


def _not_offered(walk: Walk, name: str, offered: Sequence[str]) -> str:
    if FIND_TOOLS in offered and walk.tools.find(name):
        return f"{name} is not among the tools of this round. Find it with {FIND_TOOLS}, then call it."
    return f"There is no tool {name}. Tools: {', '.join(offered) or 'none in this round'}."


def rejected(call: ToolCall, round_: Round, reason: RejectReason, message: str) -> ToolRejected:
    return ToolRejected(
        call_id=call.id, name=call.name, reason=reason, message=message, step=round_.step, round=round_.number
    )
