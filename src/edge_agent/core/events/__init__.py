"""Everything a run can say, as one closed union. Names and shapes are forever: each has a golden file in tests/wire.

Recorded events move the run and carry seq, key, batch and life on their record. Passing events are for whoever is
listening and are never stored: what they said is in the record that ends them.
Order of a direct run (one life); in a planned one each step holds such rounds, between plan.created and the answer's
model call:

    run.created, run.started
    ├─ skills.listed                     once, where the agent uses stored or learned skills
    ├─ boundary                          before each round: what it stops, what it offers; with tools.changed
    ├─ model.requested, …, context.compacted    where it says that something is folded first
    ├─ model.requested                   one attempt; its key is the `part` of the deltas
    │   ├─ step.reasoning-delta*, step.text-delta*
    │   └─ model.answered | model.failed (then the next attempt, perhaps after run.waiting)
    ├─ tool.approval-requested -> run.waiting -> tool.approval-resolved       where a person is asked
    ├─ tool.called -> tool.progress*, egress.request*  -> tool.result | tool.unknown        per call, side by side;
    │                                    with the result of a search for tools tools.discovered
    │  tool.rejected                     a call that never ran
    │  skill.activated, skill.learned, skill.forgotten      with the result of the call, or with the plan
    ├─ subagent.started -> run.waiting -> subagent.completed | subagent.failed (-> subagent.settled)
    └─ run.completed | run.cancelled | run.failed
"""

from edge_agent.core.events.passing_events import (
    FinalReasoningDelta,
    FinalTextDelta,
    Log,
    PlanStepAdded,
    PlanThoughtDelta,
    Retry,
    StepReasoningDelta,
    StepTextDelta,
    SubagentEvent,
    ToolProgress,
    UsageSoFar,
)
from edge_agent.core.events.plan_events import (
    CallOutcome,
    MessageDelivered,
    MessageQueued,
    MessageUndelivered,
    Plan,
    PlanCreated,
    PlanRevised,
    PlanStep,
    ReplanCause,
    ReplanDecision,
    ReplanMode,
    RevisionsExceeded,
    StepCompleted,
    StepStarted,
)
from edge_agent.core.events.round_events import (
    Boundary,
    ContextCompacted,
    DeliveredMessage,
    FinishReason,
    Folding,
    Handoff,
    ModelAnswered,
    ModelFailed,
    ModelRefused,
    ModelRejected,
    ModelRequested,
    OfferedTools,
    Part,
    Stage,
)
from edge_agent.core.events.run_events import (
    ApprovalMode,
    BudgetExceeded,
    CancelRequested,
    ErrorInfo,
    Fault,
    FaultKind,
    ForkedFrom,
    Mode,
    ParentRun,
    RunCancelled,
    RunCompleted,
    RunCreated,
    RunFailed,
    RunRefused,
    RunResumed,
    RunStarted,
    RunWaiting,
    StopReason,
    Timer,
    ToolRule,
    WaitReason,
)
from edge_agent.core.events.skill_events import SkillActivated, SkillForgotten, SkillLearned, SkillsListed
from edge_agent.core.events.subagent_events import (
    SubagentCompleted,
    SubagentFailed,
    SubagentSettled,
    SubagentStarted,
)
from edge_agent.core.events.tool_events import (
    ApprovalModeChanged,
    ApprovalRequested,
    ApprovalResolved,
    EgressRequest,
    FileRef,
    OnUnknown,
    QuestionAnswered,
    QuestionAsked,
    RejectReason,
    ToolCalled,
    ToolRejected,
    ToolResult,
    ToolsChanged,
    ToolsDiscovered,
    ToolUnknown,
    UnknownCause,
)

RecordedEvent = (
    RunCreated
    | RunStarted
    | RunResumed
    | RunRefused
    | CancelRequested
    | Timer
    | RunWaiting
    | RunCompleted
    | RunCancelled
    | RunFailed
    | Boundary
    | ContextCompacted
    | ModelRequested
    | ModelAnswered
    | ModelFailed
    | ModelRefused
    | ModelRejected
    | Handoff
    | ToolCalled
    | ToolResult
    | ToolUnknown
    | ToolRejected
    | ToolsDiscovered
    | ToolsChanged
    | EgressRequest
    | SkillsListed
    | SkillActivated
    | SkillLearned
    | SkillForgotten
    | SubagentStarted
    | SubagentCompleted
    | SubagentFailed
    | SubagentSettled
    | QuestionAsked
    | QuestionAnswered
    | ApprovalRequested
    | ApprovalResolved
    | ApprovalModeChanged
    | PlanCreated
    | PlanRevised
    | StepStarted
    | StepCompleted
    | ReplanDecision
    | RevisionsExceeded
    | MessageQueued
    | MessageDelivered
    | MessageUndelivered
    | BudgetExceeded
    | Fault
)
Terminal = RunCompleted | RunCancelled | RunFailed
TERMINAL_TYPES = frozenset({"run.completed", "run.cancelled", "run.failed"})
Delta = StepTextDelta | StepReasoningDelta | FinalTextDelta | FinalReasoningDelta | PlanThoughtDelta
PassingEvent = Delta | PlanStepAdded | ToolProgress | SubagentEvent | UsageSoFar | Retry | Log
Event = RecordedEvent | PassingEvent

__all__ = [
    "TERMINAL_TYPES",
    "ApprovalMode",
    "ApprovalModeChanged",
    "ApprovalRequested",
    "ApprovalResolved",
    "Boundary",
    "BudgetExceeded",
    "CallOutcome",
    "CancelRequested",
    "ContextCompacted",
    "DeliveredMessage",
    "Delta",
    "EgressRequest",
    "ErrorInfo",
    "Event",
    "Fault",
    "FaultKind",
    "FileRef",
    "FinalReasoningDelta",
    "FinalTextDelta",
    "FinishReason",
    "Folding",
    "ForkedFrom",
    "Handoff",
    "Log",
    "MessageDelivered",
    "MessageQueued",
    "MessageUndelivered",
    "Mode",
    "ModelAnswered",
    "ModelFailed",
    "ModelRefused",
    "ModelRejected",
    "ModelRequested",
    "OfferedTools",
    "OnUnknown",
    "ParentRun",
    "Part",
    "PassingEvent",
    "Plan",
    "PlanCreated",
    "PlanRevised",
    "PlanStep",
    "PlanStepAdded",
    "PlanThoughtDelta",
    "QuestionAnswered",
    "QuestionAsked",
    "RecordedEvent",
    "RejectReason",
    "ReplanCause",
    "ReplanDecision",
    "ReplanMode",
    "Retry",
    "RevisionsExceeded",
    "RunCancelled",
    "RunCompleted",
    "RunCreated",
    "RunFailed",
    "RunRefused",
    "RunResumed",
    "RunStarted",
    "RunWaiting",
    "SkillActivated",
    "SkillForgotten",
    "SkillLearned",
    "SkillsListed",
    "Stage",
    "StepCompleted",
    "StepReasoningDelta",
    "StepStarted",
    "StepTextDelta",
    "StopReason",
    "SubagentCompleted",
    "SubagentEvent",
    "SubagentFailed",
    "SubagentSettled",
    "SubagentStarted",
    "Terminal",
    "Timer",
    "ToolCalled",
    "ToolProgress",
    "ToolRejected",
    "ToolResult",
    "ToolRule",
    "ToolUnknown",
    "ToolsChanged",
    "ToolsDiscovered",
    "UnknownCause",
    "UsageSoFar",
    "WaitReason",
]
