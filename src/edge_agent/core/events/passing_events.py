"""Passing: for whoever is listening, never stored. What deltas say is in the record that ends their part."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTextDelta:
    """`offset` counts characters of the part's text, so that a client can join in the middle."""

    part: str
    offset: int
    delta: str
    step: int
    type: Literal["step.text-delta"] = "step.text-delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReasoningDelta:
    part: str
    offset: int
    delta: str
    step: int
    type: Literal["step.reasoning-delta"] = "step.reasoning-delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTextDelta:
    """The answer of a planned run, as the synthesizer writes it."""

    part: str
    offset: int
    delta: str
    type: Literal["final.text-delta"] = "final.text-delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReasoningDelta:
    part: str
    offset: int
    delta: str
    type: Literal["final.reasoning-delta"] = "final.reasoning-delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanThoughtDelta:
    part: str
    offset: int
    delta: str
    type: Literal["plan.thought-delta"] = "plan.thought-delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStepAdded:
    """A hint while the plan forms: `step` is its description so far known; it can still change."""

    part: str
    step: str
    index: int
    type: Literal["plan.step-added"] = "plan.step-added"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress:
    call_id: str
    progress: float
    total: float | None = None
    message: str | None = None
    step: int
    round: int
    type: Literal["tool.progress"] = "tool.progress"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSoFar:
    """After each model call, over the whole run. In the phase subagent: of the child that works on `call_id` alone."""

    phase: Literal["plan", "execute", "replan", "synthesize", "compact", "subagent"]
    usage: Amount
    cost_usd: float = 0.0
    call_id: str | None = None
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Derived from model.failed: a client clears what it showed for that part."""

    part: str
    error: str
    type: Literal["retry"] = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A word to whoever follows, for instance that a model could not be asked as it was meant."""

    level: Literal["info", "warning"]
    message: str
    type: Literal["log"] = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentEvent:
    """A recorded event of a child, each told once and in order. `event`: as the child's own followers see it, long
    strings clipped. It is kept in the child's log alone; deltas are followed at the child."""

    call_id: str
    child_run_id: str
    child_seq: int
    event: JsonObject
    type: Literal["subagent.event"] = "subagent.event"
