"""Recorded: calls that are runs of their own. Their keys are those of any call: …/call, …/result, …/settled."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.events.run_events import StopReason
from edge_agent.core.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentStarted:
    """On record before the child is created; with it goes the send that creates it. `expires_at`: ms since the epoch;
    None: it is waited for without end."""

    call_id: str
    child_run_id: str
    name: str
    task: str
    profile: str | None = None
    expires_at: int | None = None
    step: int
    round: int
    type: Literal["subagent.started"] = "subagent.started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentCompleted:
    """The child's answer. It answers the call like a result. `usage`: of the child's answered model calls, with those
    of its own children."""

    call_id: str
    child_run_id: str
    name: str
    text: str
    stop_reason: StopReason
    usage: Usage
    cost_usd: float = 0.0
    step: int
    round: int
    type: Literal["subagent.completed"] = "subagent.completed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentFailed:
    """There is no answer; `error` says why. `stopped`: the parent gave the child up (its own cancel, a person's, the
    deadline), so what it used is not known yet: its reserve stays until subagent.settled."""

    call_id: str
    child_run_id: str
    name: str
    error: str
    stopped: bool = False
    usage: Usage | None = None
    cost_usd: float = 0.0
    step: int
    round: int
    type: Literal["subagent.failed"] = "subagent.failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentSettled:
    """What a child that was given up has used in the end."""

    call_id: str
    child_run_id: str
    usage: Usage
    cost_usd: float = 0.0
    type: Literal["subagent.settled"] = "subagent.settled"
