"""The children of a run as its log knows them, and what a tool is that gives work to one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from edge_agent.core.events import (
    ParentRun,
    RunCreated,
    SubagentCompleted,
    SubagentFailed,
    SubagentSettled,
    SubagentStarted,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.core.usage import Usage

MOST_DEPTH = 3  # runs below one that a client has started


@dataclass(frozen=True, slots=True, kw_only=True)
class Commission:
    """Work that is given to a child. `caps`: by the names of limits, what its parent has left for it. `metadata`: of
    its parent, for its tools."""

    task: str
    profile: str | None
    caps: Mapping[str, float]
    parent: ParentRun
    metadata: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """How a tool gives work to runs of their own. timeout: seconds; None: as long as it takes. inline: in the object of
    the run that gives it.

    configure: the child's frozen configuration, the caps laid over its agent's own. Raises Refusal where it cannot work
    under them, and ConfigError."""

    max_concurrent: int
    timeout: float | None
    output_max_chars: int
    inline: bool
    configure: Callable[[Commission], RunCreated]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentState:
    """`status`: stopped where the parent gave the child up. `cost_usd`: known from the end on; of one that was stopped,
    once it has said."""

    call_id: str
    child_run_id: str
    name: str
    task: str
    profile: str | None = None
    status: Literal["running", "completed", "failed", "stopped"]
    cost_usd: float = 0.0


def subagents(records: Sequence[Record]) -> tuple[SubagentState, ...]:
    """In the order they were started."""
    events = {record.key: record.event for record in records}
    started = [(r.key.removesuffix("/call"), r.event) for r in records if isinstance(r.event, SubagentStarted)]
    return tuple(_state(event, events.get(f"{key}/result"), events.get(f"{key}/settled")) for key, event in started)


def _state(started: SubagentStarted, result: object, settled: object) -> SubagentState:
    last = settled if isinstance(settled, SubagentSettled) else result
    ended = isinstance(last, SubagentCompleted | SubagentFailed | SubagentSettled)
    return SubagentState(
        call_id=started.call_id,
        child_run_id=started.child_run_id,
        name=started.name,
        task=started.task,
        profile=started.profile,
        status=_status(result),
        cost_usd=last.cost_usd if ended else 0.0,
    )


def _status(result: object) -> Literal["running", "completed", "failed", "stopped"]:
    if isinstance(result, SubagentCompleted):
        return "completed"
    if isinstance(result, SubagentFailed):
        return "stopped" if result.stopped else "failed"
    return "running"


def used_by_children(records: Sequence[Record]) -> list[Usage]:
    """What children have reported, each once."""
    said = [r.event for r in records if isinstance(r.event, SubagentCompleted | SubagentFailed | SubagentSettled)]
    return [event.usage for event in said if event.usage is not None]
