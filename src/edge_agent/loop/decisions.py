"""What a person decides about a call, and about how the run asks: one synchronous block each, the first one stands."""

from collections.abc import Callable, Collection, Iterator
from typing import cast

from edge_agent.core import keys
from edge_agent.core.approval import REQUESTED, Approval, Decision, approval, as_strict_as, pending
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ApprovalMode, ApprovalModeChanged, ApprovalRequested, ApprovalResolved
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.loop.approvals import covers, matches, mode_of


def shown(journal: Journal, call_id: str, arguments_hash: str | None = None) -> Approval:
    """A request as it stands. Raises Refusal where there is none, or where it is about other arguments."""
    return approval(_request(journal, call_id, arguments_hash), journal.records)


def decide(
    journal: Journal,
    wake: Callable[[], None],
    call_id: str,
    decision: Decision,
    *,
    arguments_hash: str | None = None,
    once: bool = False,
) -> ApprovalResolved:
    """The decision that stands: this one, or an equal one given before. What is remembered answers the other open
    requests it covers, in the same append. once: also an equal one is refused when it comes second.

    Raises Refusal: 404 for no such request, 409 for other arguments or another decision, 410 when it is too late, 422
    for what the decision gets wrong."""
    record = _request(journal, call_id, arguments_hash)
    asked, key = cast(ApprovalRequested, record.event), keys.decision(record.key)
    resolved = journal.cleaned(_resolved(asked, decision))
    if given := journal.event(key, ApprovalResolved):
        return _repeated(given, resolved, once=once)
    if _is_over(journal, record):
        raise _too_late()
    if decision.pattern and not matches(decision.pattern, _effective(asked, resolved)):
        message = "The pattern does not match the arguments of this very call, so nothing was decided."
        raise Refusal(422, "invalid_request", message, field="remember")
    wake()
    others = _also_answered(journal, record, resolved) if resolved.remember else ()
    journal.append("input", Draft(key=key, event=resolved), *others)
    return resolved


def change_mode(journal: Journal, mode: ApprovalMode, *, allowed: Collection[ApprovalMode], tighten: bool) -> None:
    """For the next call. tighten: only a stricter mode may be chosen. Wakes nobody: nothing waits for a mode."""
    now = mode_of(journal)
    if journal.ended:
        raise Refusal(409, "run_ended", "The run has ended, so its approval mode decides nothing any more.")
    if tighten and mode not in as_strict_as(now):
        message = f"A run token may only make the run stricter, and {mode} lets pass what {now} does not."
        raise Refusal(403, "only_tighten", message)
    if mode not in allowed:
        message = f"The agent of this run does not allow the mode {mode}. It allows: {', '.join(allowed)}."
        raise Refusal(422, "mode_not_allowed", message, field="mode")
    if mode != now:
        number = len(journal.types.get("approval-mode.changed", ()))
        journal.append("input", Draft(key=keys.approval_mode(number), event=ApprovalModeChanged(mode=mode)))


def _request(journal: Journal, call_id: str, arguments_hash: str | None) -> Record:
    """The one with these arguments, else the newest about the call."""
    records = [r for r in journal.types.get(REQUESTED, ()) if cast(ApprovalRequested, r.event).call_id == call_id]
    if not records:
        message = "Nobody was asked about such a call in this run. GET the run: `approvals` lists the open requests."
        raise Refusal(404, "unknown_approval", message)
    for record in reversed(records):
        if arguments_hash in (None, cast(ApprovalRequested, record.event).arguments_hash):
            return record
    message = "This decision is about other arguments than those of the request. GET the request and decide on that."
    raise Refusal(409, "arguments_changed", message)


def _resolved(asked: ApprovalRequested, decision: Decision) -> ApprovalResolved:
    return ApprovalResolved(
        call_id=asked.call_id,
        name=asked.name,
        server=asked.server,
        approved=decision.approved,
        by="person",
        remember=decision.remember,
        pattern=decision.pattern,
        reason=decision.reason,
        arguments=None if decision.arguments == asked.arguments else decision.arguments,
        arguments_hash=asked.arguments_hash,
    )


def _effective(asked: ApprovalRequested, said: ApprovalResolved) -> JsonObject:
    return asked.arguments if said.arguments is None else said.arguments


def _repeated(given: ApprovalResolved, wanted: ApprovalResolved, *, once: bool) -> ApprovalResolved:
    """Equal is what means the same for the run; the reason given does not matter."""
    if given.by in ("expiry", "cancel"):
        raise _too_late()
    said = "approved" if given.approved else "denied"
    more: JsonObject = {"decision": {"approved": given.approved, "by": given.by, "reason": given.reason}}
    if once:
        raise Refusal(409, "link_used", f"The call was {said} already; a link decides once.", **more)
    if _meaning(given) != _meaning(wanted):
        raise Refusal(409, "already_decided", f"The call was {said} already, and the first decision stands.", **more)
    return given


def _meaning(decision: ApprovalResolved) -> tuple[object, ...]:
    if decision.by != "person":
        return (decision.approved, False, None, None)
    return (decision.approved, decision.remember, decision.pattern, decision.arguments)


def _is_over(journal: Journal, record: Record) -> bool:
    """By the clock, also where the alarm has not rung yet; by a cancel, also where the loop has not met it yet."""
    asked, step = cast(ApprovalRequested, record.event), record.key.split("/", 1)[0]
    cancelled = {keys.cancel(journal.life), keys.cancel_step(step)} & journal.records.keys()
    late = asked.expires_at is not None and journal.clock.now() >= asked.expires_at
    return bool(journal.ended or cancelled or late) or not any(pending([record], journal.records))


def _too_late() -> Refusal:
    return Refusal(410, "approval_expired", "It is too late to decide this: its time is over, or its call has ended.")


def _also_answered(journal: Journal, first: Record, said: ApprovalResolved) -> Iterator[Draft]:
    for record in pending(journal.types.get(REQUESTED, ()), journal.records):
        asked = cast(ApprovalRequested, record.event)
        if record is first or _is_over(journal, record):
            continue
        if covers(said, asked.name, asked.server, asked.arguments):
            resolved = ApprovalResolved(
                call_id=asked.call_id,
                name=asked.name,
                server=asked.server,
                approved=said.approved,
                by="remembered",
                automatic=True,
                reason=said.reason,
                arguments_hash=asked.arguments_hash,
            )
            yield Draft(key=keys.decision(record.key), event=resolved)
