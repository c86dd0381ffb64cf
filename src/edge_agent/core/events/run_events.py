"""Recorded: the run, its lives, its waits and its ends."""

from dataclasses import dataclass, field
from typing import Any, Literal

from edge_agent.core.attachments import Attachment
from edge_agent.core.compaction import Compaction
from edge_agent.core.limits import BudgetKind, Limits
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.skills import Origin
from edge_agent.core.usage import Usage

Mode = Literal["direct", "planned"]
ApprovalMode = Literal["autopilot", "ask-writes", "ask-all", "read-only"]
ToolRule = Literal["allow", "ask", "deny"]
StopReason = Literal["stop", "max_steps", "max_tokens", "budget", "blocked", "cancelled", "error"]
WaitReason = Literal["approval", "answer", "authorization", "retry", "subagent"]
FaultKind = Literal["provider", "tool", "hook", "config", "storage", "mcp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorInfo:
    """Why a run failed, and what a person can do about it."""

    kind: str
    code: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedFrom:
    """The run whose records up to seq `at` this one begins with; `inherited` of its own records are those."""

    run_id: str
    at: int
    inherited: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRun:
    """The run that has started this one: `key` and `call_id` of its call, `depth` of this run below one that a client
    has started. `output_max_chars`: of the answer that goes back."""

    run_id: str
    key: str
    call_id: str
    depth: int
    output_max_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCreated:
    """The frozen configuration of the run.

    models: the executor's, with fallbacks in order; also the planner's and the synthesizer's where those are empty.
    user: who started it, by the name of the token; MCP servers that ask for a login are used as this user.
    library: which skills of the library are listed at its beginning; None: it is not asked.
    attachments: what was sent along with the input, which holds a mark where each stood.
    """

    version: int
    input: str
    agent_name: str
    models: tuple[str, ...]
    limits: Limits
    mode: Mode = "direct"
    planner_models: tuple[str, ...] = ()
    synthesizer_models: tuple[str, ...] = ()
    approval: ApprovalMode = "autopilot"
    tool_rules: dict[str, ToolRule] = field(default_factory=dict[str, ToolRule])
    output_schema: JsonObject | None = None
    forked_from: ForkedFrom | None = None
    history: tuple[Turn, ...] = ()
    metadata: JsonObject | None = None
    parent: ParentRun | None = None
    compaction: Compaction = field(default_factory=Compaction)
    user: str | None = None
    library: tuple[Origin, ...] | None = None
    attachments: tuple[Attachment, ...] | None = None
    type: Literal["run.created"] = "run.created"

    @property
    def files(self) -> tuple[Attachment, ...]:
        """What was sent along with the input and the history."""
        return tuple(file for said in (self, *self.history) for file in said.attachments or ())

    @property
    def depth(self) -> int:
        """0 for a run that a client has started, else how many runs are above it."""
        return self.parent.depth if self.parent else 0

    @property
    def inherited(self) -> int:
        """How many of the run's first records come from another run; 0 for one that is no fork."""
        return self.forked_from.inherited if self.forked_from else 0


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
class RunRefused:
    """A tombstone, and all there is of this run: its parent cancelled it before it was created. A create that comes
    after it changes nothing."""

    reason: str
    type: Literal["run.refused"] = "run.refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """Of the run, or of the step that was open when it arrived: `step` is that step's key."""

    step: str | None = None
    reason: str | None = None
    type: Literal["cancel.requested"] = "cancel.requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """Written by the driver at a deadline that has no other record."""

    type: Literal["timer"] = "timer"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaiting:
    """A state is waiting while none of the last one's `keys` is on record. `until` is ms since the epoch.
    `question`, its `url` and its `schema`: what a person is asked, of the first that is."""

    for_: tuple[WaitReason, ...]
    keys: tuple[str, ...]
    until: int | None = None
    url: str | None = None
    question: str | None = None
    schema: JsonObject | None = None
    type: Literal["run.waiting"] = "run.waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted:
    """`output`: the answer as JSON where the run asked for a schema. `undelivered`: ids of messages nobody saw."""

    stop_reason: StopReason
    text: str
    usage: Usage
    output: Any = None
    cost_usd: float = 0.0
    undelivered: tuple[str, ...] = ()
    type: Literal["run.completed"] = "run.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled:
    usage: Usage
    text: str = ""
    stop_reason: StopReason = "cancelled"
    cost_usd: float = 0.0
    undelivered: tuple[str, ...] = ()
    type: Literal["run.cancelled"] = "run.cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFailed:
    error: ErrorInfo
    usage: Usage
    text: str = ""
    stop_reason: StopReason = "error"
    cost_usd: float = 0.0
    undelivered: tuple[str, ...] = ()
    type: Literal["run.failed"] = "run.failed"


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
