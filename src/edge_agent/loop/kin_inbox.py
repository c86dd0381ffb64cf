"""What a run hears from its parent and its children, and a person who stops one child: one synchronous block each."""

from dataclasses import asdict
from typing import Any, cast

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import (
    RunCreated,
    RunRefused,
    SubagentCompleted,
    SubagentEvent,
    SubagentFailed,
    SubagentStarted,
    UsageSoFar,
)
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Amount
from edge_agent.loop import kin, settling
from edge_agent.loop.inbox import Inbox, known


# -- a child hears
def create_child(inbox: Inbox, created: RunCreated) -> None:
    """Raises Refusal where there is a tombstone, or another run under this id."""
    inbox.create(created, fingerprint=keys.digest(asdict(created)), idempotent=True)


def cancel_child(inbox: Inbox, parent: str, key: str, reason: str) -> None:
    """Of a run that is not there yet: the create is still under way, and must find this."""
    journal = inbox.journal
    if journal.erased or journal.refused:
        return
    if journal.records:
        inbox.cancel(reason)
        return
    inbox.driver.wake()
    refused = Draft(key=keys.RUN, event=RunRefused(reason=reason))
    run_id = inbox.driver.run_id
    journal.append("note", refused, meta={"run_id": run_id}, sends=(kin.never_began(run_id, parent, key),))


def delete_child(inbox: Inbox) -> None:
    """Also where there is no run: a create that is still under way must find this."""
    journal = inbox.journal
    if journal.records and not journal.refused:
        inbox.delete()
    elif not journal.erased:
        journal.erase()


# -- a parent hears
def child_result(inbox: Inbox, said: JsonObject) -> None:
    """The first one answers the call. One that comes after the child was given up settles what it cost, in a run that
    has ended when it is resumed; every other is a repeat."""
    known(inbox.journal)
    key, journal = str(said["key"]), inbox.journal
    started = _started(journal, key, said["child_run_id"])
    if started is None:
        return
    result = journal.records.get(f"{key}/result")
    if result is None:
        inbox.driver.wake()
        answer = Draft(key=f"{key}/result", event=_answer(started, said), money=settling.money_of(key, said))
        journal.append("input", answer)
    elif key in result.money or f"{key}/settled" in journal.records:
        return
    elif journal.ended:
        settling.keep(journal, key, said)
    else:
        inbox.driver.wake()
        journal.append("input", settling.settled(key, started, said))


def child_events(inbox: Inbox, said: JsonObject) -> None:
    """Told to whoever follows, each once: how far they have come is kept beside the log."""
    known(inbox.journal)
    key, journal = str(said["key"]), inbox.journal
    started = journal.event(f"{key}/call", SubagentStarted)
    told = f"forwarded/{key}"
    last = int(journal.log.meta(told) or 0)
    fresh = [event for event in said["events"] if event["seq"] > last]
    if started is None or not fresh:
        return
    journal.log.set_meta(told, str(fresh[-1]["seq"]))
    call, child = started.call_id, started.child_run_id
    for event in fresh:
        journal.sink.passing(SubagentEvent(call_id=call, child_run_id=child, child_seq=event["seq"], event=event))
    spent = Amount(**said["spent"])
    journal.sink.passing(UsageSoFar(phase="subagent", call_id=call, usage=spent, cost_usd=spent.usd))


def _started(journal: Journal, key: str, child_run_id: str) -> SubagentStarted | None:
    started = journal.event(f"{key}/call", SubagentStarted)
    return started if started and started.child_run_id == child_run_id else None


def _answer(started: SubagentStarted, said: JsonObject) -> SubagentCompleted | SubagentFailed:
    common: dict[str, Any] = {
        "call_id": started.call_id,
        "child_run_id": started.child_run_id,
        "name": started.name,
        "step": started.step,
        "round": started.round,
        **settling.used(said),
    }
    if "error" in said:
        return SubagentFailed(error=said["error"], **common)
    return SubagentCompleted(text=said["text"], stop_reason=said["stop_reason"], **common)


# -- a person stops one
def cancel_subagent(inbox: Inbox, call_id: str, reason: str | None) -> SubagentStarted:
    """The parent goes on and is told so. Raises Refusal: 404 for no such child, 409 for one that has ended already."""
    known(inbox.journal)
    journal = inbox.journal
    key, started = _by_call(journal, call_id)
    if result := journal.records.get(f"{key}/result"):
        if isinstance(result.event, SubagentFailed) and result.event.stopped:
            return started
        raise Refusal(409, "subagent_ended", "This subagent has ended: its result is on record.")
    inbox.driver.wake()
    why = "a person stopped it" + (f": {reason}" if reason else "")
    stopped = Draft(key=f"{key}/result", event=kin.given_up(started, why))
    journal.append("input", stopped, sends=(kin.cancel(inbox.driver.run_id, key, started, why),))
    return started


def _by_call(journal: Journal, call_id: str) -> tuple[str, SubagentStarted]:
    for record in journal.types.get("subagent.started", ()):
        started = cast(SubagentStarted, record.event)
        if started.call_id == call_id:
            return record.key.removesuffix("/call"), started
    message = "This run has started no such subagent. GET the run: `subagents` lists those it has."
    raise Refusal(404, "unknown_subagent", message)
