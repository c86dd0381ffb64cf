"""How far a planned run has come, and what people have said that no boundary has taken in yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from edge_agent.core.events import (
    MessageQueued,
    Plan,
    PlanCreated,
    PlanRevised,
    ReplanDecision,
    StepCompleted,
    StepStarted,
)
from edge_agent.core.ports import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """`step`: its number over all revisions of the plan."""

    step: int
    id: str
    description: str
    status: Literal["running", "completed", "blocked"]
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedMessage:
    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`plan`: as it stands now. `revisions`: how often it was changed, also by people."""

    plan: Plan | None = None
    revisions: int = 0
    steps: tuple[StepState, ...] = ()
    messages_queued: tuple[QueuedMessage, ...] = ()


def progress(records: Sequence[Record]) -> Progress:
    plans = [r.event.plan for r in records if isinstance(r.event, PlanCreated | PlanRevised)]
    ends = {record.key.removesuffix("/end"): record.event for record in records if record.key.endswith("/end")}
    told = {record.key for record in records}
    return Progress(
        plan=plans[-1] if plans else None,
        revisions=sum(isinstance(r.event, ReplanDecision) and r.event.plan is not None for r in records),
        steps=tuple(
            _step(record.event, ends.get(record.key)) for record in records if isinstance(record.event, StepStarted)
        ),
        messages_queued=tuple(
            QueuedMessage(id=record.event.message_id, text=record.event.text)
            for record in records
            if isinstance(record.event, MessageQueued) and f"{record.key}/end" not in told
        ),
    )


def _step(started: StepStarted, end: object) -> StepState:
    ended = end if isinstance(end, StepCompleted) else None
    return StepState(
        step=started.step,
        id=started.id,
        description=started.description,
        status="running" if ended is None else "blocked" if ended.blocked else "completed",
        summary=ended.summary if ended else "",
    )
