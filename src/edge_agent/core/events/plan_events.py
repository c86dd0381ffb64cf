"""Recorded: a plan, its steps and what became of it; and the messages of people who steer."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """`requires_tools`: the tools it suggested are not there, so it gets the full set."""

    id: str
    description: str
    expected_outcome: str = ""
    suggested_tools: tuple[str, ...] = ()
    requires_tools: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`skills`: what is loaded for it; None: it names none."""

    thought: str
    steps: tuple[PlanStep, ...]
    skills: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCreated:
    """`fallback`: the planner failed (`reason`), so the plan is to answer directly.
    `warnings`: what was cut or dropped."""

    plan: Plan
    revision: int = 0
    fallback: bool = False
    reason: str | None = None
    warnings: tuple[str, ...] = ()
    type: Literal["plan.created"] = "plan.created"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRevised:
    plan: Plan
    revision: int
    reason: str
    type: Literal["plan.revised"] = "plan.revised"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """`step`: the number of the executed step, over all revisions. `index`: its place in the plan, from 0."""

    step: int
    index: int
    id: str
    description: str
    type: Literal["step.started"] = "step.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    call_id: str
    name: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCompleted:
    """`summary`: the step's text without the blocker marker, or why there is none. `stop`: what ended it early."""

    step: int
    summary: str
    calls: tuple[CallOutcome, ...] = ()
    blocked: bool = False
    stop: Literal["max_steps", "budget", "cancelled"] | None = None
    duration_ms: int
    type: Literal["step.completed"] = "step.completed"


ReplanMode = Literal["continue", "revise", "finish"]
ReplanCause = Literal["last-step", "clean-step", "llm-decision", "user-message", "predicate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplanDecision:
    """`plan`: the revised one, where the mode is revise. `stop`: it was not asked any more, the caps forbid it."""

    mode: ReplanMode
    reason: str
    cause: ReplanCause
    plan: Plan | None = None
    warnings: tuple[str, ...] = ()
    stop: Literal["budget"] | None = None
    type: Literal["replan.decision"] = "replan.decision"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionsExceeded:
    cap: int
    type: Literal["revisions.exceeded"] = "revisions.exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQueued:
    message_id: str
    text: str
    type: Literal["message.queued"] = "message.queued"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelivered:
    """`boundary`: the key of the record that took it in. Not `at`: that is the time of every event."""

    message_id: str
    where: Literal["round", "replan", "final"]
    boundary: str
    type: Literal["message.delivered"] = "message.delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageUndelivered:
    message_id: str
    text: str
    type: Literal["message.undelivered"] = "message.undelivered"
