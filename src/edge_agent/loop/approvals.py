"""Whether a call may run: rules, what a person said once for the run, the mode; and a person, where one is to be asked.

Judged at the call's frontier only. What comes of it is one record, `/call`, `/approval` or `/result`, which later walks
obey; nothing but a deny rule is read again after that.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, cast

from edge_agent.core import keys
from edge_agent.core.approval import REQUESTED, pending
from edge_agent.core.canonical import canonical
from edge_agent.core.events import (
    ApprovalMode,
    ApprovalModeChanged,
    ApprovalRequested,
    ApprovalResolved,
    ToolRejected,
    ToolRule,
    UnknownCause,
)
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.core.signals import Suspend, Wait
from edge_agent.core.tooling import ALWAYS_RUN
from edge_agent.core.usage import Amount
from edge_agent.loop import prompts
from edge_agent.loop.walk import Walk


# -- the judgement
@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call that is to be made. number: 0, or which repeat of it; then `cause` says why it is repeated."""

    key: str
    call_id: str
    name: str
    server: str | None
    arguments: JsonObject
    read_only: bool
    requires_approval: bool
    step: int
    round: int
    number: int = 0
    cause: UnknownCause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What calls are judged by right now. forbidden: the deny rules of the deployment as it is today."""

    mode: ApprovalMode
    rules: Mapping[str, ToolRule]
    forbidden: Sequence[str] = ()
    remembered: Sequence[ApprovalResolved] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """by, message: of a denial. final: it also outweighs an approval."""

    verdict: ToolRule
    by: Literal["rule", "remembered"] = "rule"
    message: str = ""
    final: bool = False


_ALLOW, _ASK = Permission(verdict="allow"), Permission(verdict="ask")


def decide_permission(call: Wanted, policy: Policy) -> Permission:
    """Any deny rule, then the newest remembered answer that covers the call, then the most specific rule, then what the
    tool itself asks for, then the mode."""
    if call.name in ALWAYS_RUN:
        return _ALLOW
    if (rule := forbidding(call.name, policy)) is not None:
        return Permission(verdict="deny", message=prompts.denied_by_rule(call.name, rule), final=True)
    for said in reversed(policy.remembered):
        if covers(said, call.name, call.server, call.arguments):
            message = prompts.denied_for_the_run(call.name, said.reason)
            return _ALLOW if said.approved else Permission(verdict="deny", by="remembered", message=message)
    if (rule := most_specific(policy.rules, call.name)) is not None:
        return Permission(verdict=policy.rules[rule])
    if policy.mode == "read-only" and not call.read_only:
        return Permission(verdict="deny", message=prompts.denied_as_a_write(call.name))
    asks = policy.mode == "ask-all" or (policy.mode == "ask-writes" and not call.read_only)
    return _ASK if asks or call.requires_approval else _ALLOW


def forbidding(name: str, policy: Policy) -> str | None:
    """The deny rule that forbids a tool, whatever any other rule, person or mode says."""
    denying = [*policy.forbidden, *(glob for glob, rule in policy.rules.items() if rule == "deny")]
    return most_specific(denying, name)


def most_specific(globs: Iterable[str], name: str) -> str | None:
    """The name itself, else the longest glob that matches, of equal ones the first."""
    matching = [glob for glob in globs if glob == name or fnmatchcase(name, glob)]
    return name if name in matching else max(matching, key=len, default=None)


def covers(said: ApprovalResolved, name: str, server: str | None, arguments: JsonObject) -> bool:
    """Whether a remembered decision is one about this call: the same tool of the same server, arguments that match."""
    return (said.server, said.name) == (server, name) and matches(said.pattern or {}, arguments)


def matches(pattern: Mapping[str, str], arguments: JsonObject) -> bool:
    """Each named argument is there and matches its glob: text as it is, everything else as JSON."""
    return all(name in arguments and fnmatchcase(_text(arguments[name]), glob) for name, glob in pattern.items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical(value)


def mode_of(journal: Journal) -> ApprovalMode:
    """The run's mode as it is now."""
    changes = journal.types.get("approval-mode.changed", ())
    return cast(ApprovalModeChanged, changes[-1].event).mode if changes else journal.created.approval


def _policy(walk: Walk) -> Policy:
    """What was remembered for another run is not for the fork of it."""
    resolved = walk.journal.types.get("tool.approval-resolved", ())
    own = [cast(ApprovalResolved, record.event) for record in resolved if record.seq > walk.created.inherited]
    return Policy(
        mode=mode_of(walk.journal),
        rules=walk.created.tool_rules,
        forbidden=(*walk.ports.forbidden, *walk.agent.forbidden),
        remembered=[event for event in own if event.remember],
    )


# -- at the frontier of a call
@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The call is not made. `notes` belong into the append of its outcome."""

    message: str
    notes: tuple[Draft, ...] = ()


def admitted(walk: Walk, call: Wanted) -> JsonObject | Denied:
    """The arguments the call may be made with: its own, or those a person put in their place.

    Raises Suspend until a person who was asked has answered. Of a request on record only its decision counts, and a
    deny rule."""
    permission = decide_permission(call, _policy(walk))
    asked_key = keys.approval(call.key, call.number)
    asked = walk.seen(asked_key, ApprovalRequested)
    if permission.final or (asked is None and permission.verdict == "deny"):
        return _denied(walk, call, permission)
    if asked is None:
        if permission.verdict == "allow":
            return call.arguments
        if not walk.ports.can_ask:
            return _denied(walk, call, Permission(verdict="deny", message=prompts.nobody_to_ask(call.name)))
        asked = _ask(walk, asked_key, call)
    decision = _decision(walk, asked_key, asked)
    if not decision.approved:
        return Denied(message=prompts.denied(decision.name, decision.by, decision.reason))
    return asked.arguments if decision.arguments is None else decision.arguments


def still_waiting(walk: Walk, key: str, number: int = 0) -> None:
    """Raises Suspend while a person is being asked about this call: a server that is down closes no request."""
    asked_key = keys.approval(key, number)
    if asked := walk.seen(asked_key, ApprovalRequested):
        _decision(walk, asked_key, asked)


def forbidden(walk: Walk, name: str) -> str | None:
    """What the model is told where a deny rule forbids the tool now."""
    rule = None if name in ALWAYS_RUN else forbidding(name, _policy(walk))
    return None if rule is None else prompts.denied_by_rule(name, rule)


def _ask(walk: Walk, key: str, call: Wanted) -> ApprovalRequested:
    """The tool call is reserved with the question, so that nobody approves what no longer fits."""
    seconds = walk.ports.approval_seconds
    asked = ApprovalRequested(
        call_id=call.call_id,
        name=call.name,
        server=call.server,
        arguments=call.arguments,
        arguments_hash=keys.digest(key, call.name, call.arguments),
        read_only=call.read_only,
        expires_at=None if seconds is None else walk.ports.clock.now() + int(seconds * 1000),
        cause=call.cause,
        step=call.step,
        round=call.round,
    )
    walk.write(Draft(key=key, event=asked, money={call.key: Amount(tool_calls=1)}))
    return walk.kept(key, ApprovalRequested)


def _decision(walk: Walk, key: str, asked: ApprovalRequested) -> ApprovalResolved:
    where = keys.decision(key)
    if decision := walk.journal.event(where, ApprovalResolved):
        return decision
    expired = _automatic(asked, "expiry")
    raise Suspend(Wait(key=where, reason="approval", until=asked.expires_at, at_deadline=expired))


def _denied(walk: Walk, call: Wanted, permission: Permission) -> Denied:
    """Without a person: said so, for readers."""
    resolved = ApprovalResolved(
        call_id=call.call_id,
        name=call.name,
        server=call.server,
        approved=False,
        by=permission.by,
        automatic=True,
        reason=permission.message,
    )
    where = keys.decision(keys.approval(call.key, call.number))
    key = f"{call.key}/overruled/{call.number}" if walk.has(where) else where
    return Denied(message=permission.message, notes=(Draft(key=key, event=resolved, by="note"),))


# -- requests that come to nothing
def closing(journal: Journal, call: str) -> Iterator[Draft]:
    """For the append that answers a call: nobody has to decide any more what was asked about it."""
    for record in pending(_requests_of(journal, call), journal.records):
        withdrawn = _automatic(cast(ApprovalRequested, record.event), "cancel")
        yield Draft(key=keys.decision(record.key), event=withdrawn, by="note")


def withdrawn(journal: Journal, message: str) -> Iterator[Draft]:
    """For the end of a life: no request outlives it, and no approval that was not used. A call that has begun is
    answered with the others that have."""
    for record in journal.types.get(REQUESTED, ()):
        asked, call = cast(ApprovalRequested, record.event), keys.asked_call(record.key)
        if f"{call}/result" in journal.records:
            continue
        if keys.decision(record.key) not in journal.records:
            yield Draft(key=keys.decision(record.key), event=_automatic(asked, "cancel"), by="input")
        if f"{call}/call" not in journal.records:
            event = ToolRejected(
                call_id=asked.call_id,
                name=asked.name,
                reason="cancelled",
                message=f"{asked.name} was not run: {message}.",
                step=asked.step,
                round=asked.round,
            )
            yield Draft(key=f"{call}/result", event=event, money={call: Amount()}, by="loop")


def _requests_of(journal: Journal, call: str) -> list[Record]:
    names = [key for key in journal.under.get(call, ()) if key.startswith(f"{call}/approval")]
    return [journal.records[key] for key in names]


def _automatic(asked: ApprovalRequested, by: Literal["expiry", "cancel"]) -> ApprovalResolved:
    return ApprovalResolved(
        call_id=asked.call_id,
        name=asked.name,
        server=asked.server,
        approved=False,
        by=by,
        automatic=True,
        arguments_hash=asked.arguments_hash,
    )
