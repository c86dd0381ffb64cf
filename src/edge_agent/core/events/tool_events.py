"""Recorded: tool calls, what came of them, and what a person said to one."""

from dataclasses import dataclass
from typing import Literal

from edge_agent.core.events.run_events import ApprovalMode
from edge_agent.core.messages import JsonObject

UnknownCause = Literal["lost", "cancelled", "timed-out", "run-ended"]
OnUnknown = Literal["report", "ask", "retry", "fail"]
RejectReason = Literal["invalid-arguments", "unknown-tool", "denied", "budget", "off-palette", "cut-off", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file of the run, at GET /v1/runs/{id}/files/{name}."""

    name: str
    media_type: str
    bytes: int


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
class ToolsDiscovered:
    """A search for tools came to these, the best one first; the next rounds offer them."""

    query: str
    names: tuple[str, ...]
    type: Literal["tools.discovered"] = "tools.discovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """The list of a server as it was taken in before a round: at first every name is added."""

    server: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    type: Literal["tools.changed"] = "tools.changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRequest:
    """A tool asked for something outside; told when the answer's head came, or when it was clear that none would.

    `url`: origin and path alone. allowed False: it was not sent, for that reason. A request that was answered has the
    `status`, one that was not has a `reason`. Each redirect is a request of its own."""

    call_id: str
    method: str
    url: str
    allowed: bool
    status: int | None = None
    reason: str | None = None
    step: int
    round: int
    type: Literal["egress.request"] = "egress.request"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAsked:
    """A person is asked; the run waits for question.answered. For an unknown-outcome: may the call be made again, that
    has no outcome for this `cause`? For an authorization: to sign in at `url`, a path of this deployment, so that the
    tools of `server` can be used. For an answer: what `server` wants to know in the middle of a call, as JSON of
    `schema` or at its own `url`; `requests` and `request_state` are the server's and go back with the answer."""

    question_id: str
    for_: Literal["unknown-outcome", "authorization", "answer"]
    cause: UnknownCause | None = None
    question: str
    expires_at: int
    server: str | None = None
    url: str | None = None
    schema: JsonObject | None = None
    requests: tuple[str, ...] | None = None
    request_state: str | None = None
    type: Literal["question.asked"] = "question.asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered:
    """By whom: a person, the deadline, or the end of the life, which withdraws what nobody answered (`cancel`)."""

    question_id: str
    answer: str | None = None
    by: Literal["person", "expiry", "cancel"]
    type: Literal["question.answered"] = "question.answered"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequested:
    """A person is asked whether a call may run. `arguments` are those after the input sanitizer; a decision is bound to
    their hash. `expires_at`: ms since the epoch; None: never. `cause`: why the call is to be made again, after it may
    have happened."""

    call_id: str
    name: str
    server: str | None = None
    arguments: JsonObject
    arguments_hash: str
    read_only: bool
    expires_at: int | None = None
    cause: UnknownCause | None = None
    step: int
    round: int
    type: Literal["tool.approval-requested"] = "tool.approval-requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalResolved:
    """`automatic`: nobody decided it for this very call. `arguments`: edited by the person. `remember`: for the run;
    with `pattern` (globs by the name of an argument) only for calls whose arguments match."""

    call_id: str
    name: str
    server: str | None = None
    approved: bool
    by: Literal["person", "rule", "expiry", "cancel", "remembered"]
    automatic: bool = False
    remember: bool = False
    pattern: dict[str, str] | None = None
    reason: str | None = None
    arguments: JsonObject | None = None
    arguments_hash: str | None = None
    type: Literal["tool.approval-resolved"] = "tool.approval-resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalModeChanged:
    """Applies to the next call."""

    mode: ApprovalMode
    type: Literal["approval-mode.changed"] = "approval-mode.changed"
