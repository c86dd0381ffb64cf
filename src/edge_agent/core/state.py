"""What a log folds to: the state of a run, as GET /v1/runs/{id} shows it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from edge_agent.core.approval import REQUESTED, Approval, approval, pending
from edge_agent.core.events import (
    TERMINAL_TYPES,
    ApprovalMode,
    ApprovalModeChanged,
    ContextCompacted,
    ErrorInfo,
    ForkedFrom,
    Mode,
    ModelAnswered,
    Plan,
    QuestionAsked,
    RunCancelled,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunWaiting,
    StopReason,
)
from edge_agent.core.history import summary_turn
from edge_agent.core.keys import is_round
from edge_agent.core.limits import Limits
from edge_agent.core.messages import Message, Turn
from edge_agent.core.ports import Record
from edge_agent.core.progress import QueuedMessage, StepState, progress
from edge_agent.core.skills_in_play import SkillState, active_skills
from edge_agent.core.subagents import SubagentState, subagents, used_by_children
from edge_agent.core.usage import Amount, Usage, total_of, total_usage

Status = Literal["queued", "running", "waiting", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFor:
    """`question`: what to answer with POST /v1/runs/{id}/answers/{question_id}."""

    reasons: tuple[str, ...]
    until: int | None
    questions: tuple[QuestionAsked, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """`spent` is what counts against the limits: used amounts plus the reserves of attempts under way or lost; its
    dollars are `cost_usd`.
    `approvals`: the calls that a person is asked about. `messages`: the conversation, where it is asked for.
    `parent`: the id of the run that has started this one. `usage`: with that of subagents.
    `compacted_history`: the run's history with a summary in the place of its older turns, where that was needed.
    `skills`: the active ones."""

    run_id: str
    agent: str
    status: Status
    mode: Mode
    input: str
    models: tuple[str, ...]
    limits: Limits
    rounds: int
    usage: Usage
    spent: Amount
    seq: int
    life: int
    cost_usd: float = 0.0
    stop_reason: StopReason | None = None
    text: str | None = None
    error: ErrorInfo | None = None
    waiting_for: WaitingFor | None = None
    restarts: int = 0
    forked_from: ForkedFrom | None = None
    messages: tuple[Message, ...] | None = None
    approval_mode: ApprovalMode = "autopilot"
    approvals: tuple[Approval, ...] = ()
    plan: Plan | None = None
    revisions: int = 0
    steps: tuple[StepState, ...] = ()
    messages_queued: tuple[QueuedMessage, ...] = ()
    undelivered: tuple[str, ...] = ()
    subagents: tuple[SubagentState, ...] = ()
    parent: str | None = None
    compacted_history: tuple[Turn, ...] | None = None
    skills: tuple[SkillState, ...] = ()


def fold(run_id: str, records: Sequence[Record], restarts: int = 0) -> RunState:
    """The state after the last of `records`, which begin with run.created."""
    created = cast(RunCreated, records[0].event)
    keys = {record.key for record in records}
    waiting = _waiting(records, keys)
    last = records[-1].event
    ended = last if isinstance(last, RunCompleted | RunCancelled | RunFailed) else None
    money = {key: amount for record in records for key, amount in record.money.items()}
    spent = total_of(money.values())
    so_far = progress(records)
    return RunState(
        run_id=run_id,
        agent=records[-1].agent,
        status=_status(records, waiting),
        mode=created.mode,
        input=created.input,
        models=created.models,
        limits=created.limits,
        rounds=sum(record.type == "boundary" and is_round(record.key) for record in records),
        usage=used(records),
        spent=spent,
        cost_usd=spent.usd,
        seq=records[-1].seq,
        life=records[-1].life,
        stop_reason=ended.stop_reason if ended else None,
        text=ended.text if ended else None,
        error=ended.error if isinstance(ended, RunFailed) else None,
        waiting_for=waiting,
        restarts=restarts,
        forked_from=created.forked_from,
        approval_mode=_mode(created, records),
        approvals=_open_approvals(records),
        plan=so_far.plan,
        revisions=so_far.revisions,
        steps=so_far.steps,
        messages_queued=so_far.messages_queued,
        undelivered=ended.undelivered if ended else (),
        subagents=subagents(records),
        parent=created.parent.run_id if created.parent else None,
        compacted_history=compacted_history(created, records),
        skills=active_skills(records),
    )


def _mode(created: RunCreated, records: Sequence[Record]) -> ApprovalMode:
    changes = [record.event for record in records if isinstance(record.event, ApprovalModeChanged)]
    return changes[-1].mode if changes else created.approval


def compacted_history(created: RunCreated, records: Iterable[Record]) -> tuple[Turn, ...] | None:
    """None where the turns stand as they were given."""
    found = [r.event for r in records if isinstance(r.event, ContextCompacted) and r.event.scope == "history"]
    if not found:
        return None
    return (summary_turn(found[-1].summary or ""), *created.history[found[-1].turns :])


def _open_approvals(records: Sequence[Record]) -> tuple[Approval, ...]:
    requested = [record for record in records if record.type == REQUESTED]
    known = {record.key: record for record in records} if requested else {}
    return tuple(approval(record, known) for record in pending(requested, known))


def used(records: Sequence[Record]) -> Usage:
    """What the answered model calls used, those of children included."""
    own = [record.event.usage for record in records if isinstance(record.event, ModelAnswered)]
    return total_usage([*own, *used_by_children(records)])


def _status(records: Sequence[Record], waiting: WaitingFor | None) -> Status:
    if records[-1].type in TERMINAL_TYPES:
        return cast(Status, records[-1].type.removeprefix("run."))
    if waiting is not None:
        return "waiting"
    inherited = cast(RunCreated, records[0].event).inherited
    return "queued" if records[-1].seq <= max(1, inherited) else "running"


def _waiting(records: Sequence[Record], keys: set[str]) -> WaitingFor | None:
    """Waiting is what the last run.waiting names, as long as none of its keys has come; never a flag."""
    life = records[-1].life
    last = next((r.event for r in reversed(records) if isinstance(r.event, RunWaiting) and r.life == life), None)
    if last is None or any(key in keys for key in last.keys) or f"end/{life}" in keys:
        return None
    asked = {f"{r.key}/answer": r.event for r in records if isinstance(r.event, QuestionAsked)}
    questions = tuple(asked[key] for key in last.keys if key in asked)
    return WaitingFor(reasons=last.for_, until=last.until, questions=questions)
