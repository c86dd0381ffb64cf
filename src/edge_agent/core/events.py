"""Everything a run can say, as one closed union. Names and shapes are forever: each has a golden file in tests/wire.

Recorded events move the run and carry seq, key, batch and life on their record. Passing events are for whoever is
listening and are never stored: what they said is in the record that ends them.
Order of a direct run (one life):

    run.created, run.started
    ├─ boundary                          before each round: what it stops, what it offers
    ├─ model.requested                   one attempt; its key is the `part` of the deltas
    │   ├─ step.reasoning-delta*, step.text-delta*
    │   └─ model.answered | model.failed (then the next attempt, perhaps after run.waiting)
    ├─ tool.called -> tool.progress*  -> tool.result | tool.unknown        per call, side by side
    │  tool.rejected                     a call that never ran
    └─ run.completed | run.cancelled | run.failed
"""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.errors import ModelErrorKind
from edge_agent.core.limits import BudgetKind, Limits
from edge_agent.core.messages import AssistantMessage, JsonObject, Turn
from edge_agent.core.usage import Amount, Usage

Stage = Literal["round"]
StopReason = Literal["stop", "max_steps", "max_tokens", "budget", "cancelled", "error"]
UnknownCause = Literal["lost", "cancelled", "timed-out", "run-ended"]
OnUnknown = Literal["report", "ask", "retry", "fail"]
RejectReason = Literal["invalid-arguments", "unknown-tool", "budget", "off-palette", "cut-off", "cancelled"]
FinishReason = Literal["stop", "length", "tool-calls", "filtered", "other"]
FaultKind = Literal["provider", "tool", "hook", "config", "storage", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """Why a run failed, and what a person can do about it."""

    kind: str
    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file of the run, at GET /v1/runs/{id}/files/{name}."""

    name: str
    media_type: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTools:
    """The tools a round offered: their names in order and a hash of their descriptions."""

    names: tuple[str, ...]
    version: str


# -- recorded: the run ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class RunCreated:
    """The frozen configuration of the run."""

    version: int
    input: str
    agent_name: str
    models: tuple[str, ...]
    limits: Limits
    mode: Literal["direct"] = "direct"
    history: tuple[Turn, ...] = ()
    metadata: JsonObject | None = None
    type: Literal["run.created"] = "run.created"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    reason: str
    type: Literal["run.started"] = "run.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed:
    """A new life after an end."""

    reason: str
    type: Literal["run.resumed"] = "run.resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    reason: str | None = None
    type: Literal["cancel.requested"] = "cancel.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """Written by the driver at a deadline that has no other record."""

    type: Literal["timer"] = "timer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaiting:
    """A state is waiting while none of the last one's `keys` is on record. `until` is ms since the epoch."""

    reasons: tuple[str, ...]
    keys: tuple[str, ...]
    until: int | None = None
    type: Literal["run.waiting"] = "run.waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted:
    stop_reason: StopReason
    text: str
    usage: Usage
    type: Literal["run.completed"] = "run.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled:
    usage: Usage
    text: str = ""
    stop_reason: StopReason = "cancelled"
    type: Literal["run.cancelled"] = "run.cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    error: ErrorInfo
    usage: Usage
    text: str = ""
    stop_reason: StopReason = "error"
    type: Literal["run.failed"] = "run.failed"


# -- recorded: a round ---------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The one place that looks at the tail: the conversation is built from it and only from it.

    stop: why no further round is made. final: the last round, without tools, from the reserve.
    """

    stop: Literal["max_steps", "budget"] | None = None
    final: bool = False
    tools: OfferedTools
    type: Literal["boundary"] = "boundary"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequested:
    stage: Stage
    model: str
    provider: str
    attempt: int
    prompt_hash: str
    estimated_input: int
    output_cap: int | None = None
    type: Literal["model.requested"] = "model.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswered:
    """`estimated`: the provider reported no usage."""

    stage: Stage
    message: AssistantMessage
    finish_reason: FinishReason
    usage: Usage
    estimated: bool
    latency_ms: int
    type: Literal["model.answered"] = "model.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    """`error`: how it failed; `lost` after a restart, `run-ended` in the terminal batch.

    usage: estimated; a lost one costs its reserve. retry_at: ms since the epoch."""

    stage: Stage
    attempt: int
    error: ModelErrorKind | Literal["lost", "cancelled", "run-ended"]
    message: str
    retryable: bool
    usage: Usage
    retry_at: int | None = None
    type: Literal["model.failed"] = "model.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRefused:
    """A retry that no longer fits the caps."""

    stop: Literal["budget"]
    type: Literal["model.refused"] = "model.refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRejected:
    """An after_model hook turned the answer down: it leaves the history, its tools never run, its round is used up."""

    attempt: int
    reason: str
    reminder: str | None = None
    type: Literal["model.rejected"] = "model.rejected"


# -- recorded: tools -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """On record before the tool runs. `arguments` are those after the input sanitizer."""

    call_id: str
    name: str
    server: str | None = None
    arguments: JsonObject
    idempotency_key: str
    read_only: bool
    safe_to_repeat: bool
    on_unknown: OnUnknown
    step: int
    round: int
    type: Literal["tool.called"] = "tool.called"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """`output` is the text after the output sanitizer; what exceeds 64 KiB is whole in `files`.
    The model saw its first and last characters, `model_chars` in all."""

    call_id: str
    name: str
    ok: bool
    output: str
    structured: JsonObject | None = None
    model_chars: int
    files: tuple[FileRef, ...] = ()
    duration_ms: int
    step: int
    round: int
    type: Literal["tool.result"] = "tool.result"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUnknown:
    """The tool may have run: it answers the call like a result. `message` is what the model is told."""

    call_id: str
    name: str
    cause: UnknownCause
    policy: OnUnknown
    message: str
    step: int
    round: int
    type: Literal["tool.unknown"] = "tool.unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRejected:
    """The tool did not run. `message` is what the model is told."""

    call_id: str
    name: str
    reason: RejectReason
    message: str
    step: int
    round: int
    type: Literal["tool.rejected"] = "tool.rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """A person is asked; the run waits for question.answered. `purpose` unknown-outcome: may the call be made again?"""

    question_id: str
    purpose: Literal["unknown-outcome"]
    cause: UnknownCause
    question: str
    expires_at: int
    type: Literal["question.asked"] = "question.asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """By whom: a person, the deadline, or the end of the life, which withdraws what nobody answered (`cancel`)."""

    question_id: str
    answer: str | None = None
    answered_by: Literal["person", "expiry", "cancel"]
    type: Literal["question.answered"] = "question.answered"


# -- recorded: for readers -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetExceeded:
    """Once per kind and life."""

    kind: BudgetKind
    used: float
    cap: float
    type: Literal["budget.exceeded"] = "budget.exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: FaultKind
    message: str
    action: Literal["continued", "fallback", "failed"]
    type: Literal["fault"] = "fault"


RecordedEvent = (
    RunCreated | RunStarted | RunResumed | CancelRequested | Timer | RunWaiting
    | RunCompleted | RunCancelled | RunFailed
    | Boundary | ModelRequested | ModelAnswered | ModelFailed | ModelRefused | ModelRejected
    | ToolCalled | ToolResult | ToolUnknown | ToolRejected | QuestionAsked | QuestionAnswered
    | BudgetExceeded | Fault
)  # fmt: skip
Terminal = RunCompleted | RunCancelled | RunFailed
TERMINAL_TYPES = frozenset({"run.completed", "run.cancelled", "run.failed"})


# -- passing -------------------------------------------------------------------------------------------------------
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
    """After each model call, over the whole run."""

    phase: Literal["execute"]
    usage: Amount
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Derived from model.failed: a client clears what it showed for that part."""

    part: str
    error: str
    type: Literal["retry"] = "retry"


PassingEvent = StepTextDelta | StepReasoningDelta | ToolProgress | UsageSoFar | Retry
Event = RecordedEvent | PassingEvent
