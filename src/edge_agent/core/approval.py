"""Approvals as data: what a person says to a call, what became of a request, which mode is stricter than another."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from edge_agent.core import keys
from edge_agent.core.events import ApprovalMode, ApprovalRequested, ApprovalResolved, UnknownCause
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record

REQUESTED = "tool.approval-requested"
# Neither of ask-all and read-only is stricter than the other: one lets a person allow a write, one lets reads pass.
_AS_STRICT: Mapping[ApprovalMode, tuple[ApprovalMode, ...]] = {
    "autopilot": ("autopilot", "ask-writes", "ask-all", "read-only"),
    "ask-writes": ("ask-writes", "ask-all", "read-only"),
    "ask-all": ("ask-all",),
    "read-only": ("read-only",),
}


def as_strict_as(mode: ApprovalMode) -> tuple[ApprovalMode, ...]:
    """The modes that let nothing pass that `mode` does not: itself, and what is stricter."""
    return _AS_STRICT[mode]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person says to a call.

    arguments: other ones to make the call with. remember: the same answer for every later call of this tool in the run;
    with `pattern`, globs by the name of an argument, only for calls whose arguments match it.
    """

    approved: bool
    reason: str | None = None
    arguments: JsonObject | None = None
    remember: bool = False
    pattern: dict[str, str] | None = None


ApprovalStatus = Literal["pending", "approved", "denied", "expired", "withdrawn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A request, and what became of it. A decision is sent with `arguments_hash`, which binds it to this request.

    cause: the call was begun before and nobody knows whether it happened; to approve it is to make it again.
    link: a path that shows the request and takes one decision without a session; for callers with an API token.
    """

    call_id: str
    name: str
    arguments: JsonObject
    arguments_hash: str
    read_only: bool
    step: int
    round: int
    status: ApprovalStatus
    server: str | None = None
    expires_at: int | None = None
    cause: UnknownCause | None = None
    decision: ApprovalResolved | None = field(default=None)
    link: str | None = None


def approval(record: Record, known: Mapping[str, Record]) -> Approval:
    """The request of this record, judged by all that is on record."""
    asked = cast(ApprovalRequested, record.event)
    resolved = known.get(keys.decision(record.key))
    decision = cast(ApprovalResolved, resolved.event) if resolved else None
    return Approval(
        call_id=asked.call_id,
        name=asked.name,
        server=asked.server,
        arguments=asked.arguments,
        arguments_hash=asked.arguments_hash,
        read_only=asked.read_only,
        expires_at=asked.expires_at,
        step=asked.step,
        round=asked.round,
        cause=asked.cause,
        status=_status(decision, answered=f"{keys.asked_call(record.key)}/result" in known),
        decision=decision,
    )


def pending(requested: Iterable[Record], known: Mapping[str, Record]) -> Iterator[Record]:
    """Of the records of requests those that nobody has decided, while their call is open."""
    for record in requested:
        if keys.decision(record.key) not in known and f"{keys.asked_call(record.key)}/result" not in known:
            yield record


def _status(decision: ApprovalResolved | None, *, answered: bool) -> ApprovalStatus:
    if decision is None:
        return "withdrawn" if answered else "pending"
    if decision.by in ("expiry", "cancel"):
        return "expired" if decision.by == "expiry" else "withdrawn"
    return "approved" if decision.approved else "denied"
