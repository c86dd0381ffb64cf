"""What a child has cost that was given up, once it says so: at once, or with the next life of a run that has ended."""

import json
from collections.abc import Iterator
from typing import Any, cast

from edge_agent.core.events import SubagentSettled, SubagentStarted, Timer
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.core.signals import Suspend, Wait
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop import budget
from edge_agent.loop.walk import Walk

PATIENCE_MS = 10_000  # that a run waits for a child to say what it has cost


def wait_for_costs(walk: Walk) -> None:
    """For a boundary at its frontier: a child that was given up holds its whole reserve, which may be all that the caps
    leave, until it says what it has used. Raises Suspend until then, though not for long: one that cannot say it keeps
    its reserve."""
    limits = walk.created.limits
    if not budget.is_capped(limits) and limits.max_tool_calls is None:
        return
    failed = walk.journal.types.get("subagent.failed", ())
    if waits := [wait for record in failed for wait in _until_it_says(walk.journal, record)]:
        raise Suspend(*waits)


def _until_it_says(journal: Journal, given_up: Record) -> Iterator[Wait]:
    """Nothing in a fork, which holds no reserve for children of the other run."""
    key = given_up.key.removesuffix("/result")
    told = key in given_up.money or f"{key}/settled" in journal.records
    if told or key not in journal.money or f"{key}/due" in journal.records:
        return
    until = given_up.at + PATIENCE_MS
    yield Wait(key=f"{key}/settled", reason="subagent", until=None, at_deadline=Timer())
    yield Wait(key=f"{key}/due", reason="subagent", until=until, at_deadline=Timer())


def settled(key: str, started: SubagentStarted, said: JsonObject) -> Draft:
    event = SubagentSettled(call_id=started.call_id, child_run_id=started.child_run_id, **used(said))
    return Draft(key=f"{key}/settled", event=event, money=money_of(key, said), by="input")


def money_of(key: str, said: JsonObject) -> dict[str, Amount]:
    return {key: Amount(**said["spent"]) + Amount(tool_calls=1)}


def used(said: JsonObject) -> dict[str, Any]:
    return {"usage": Usage(**said["usage"]), "cost_usd": said["spent"]["usd"]}


def keep(journal: Journal, key: str, said: JsonObject) -> None:
    """Beside the log, which takes nothing any more."""
    journal.log.set_meta(_name(key), json.dumps({"usage": said["usage"], "spent": said["spent"]}))


def kept(journal: Journal) -> Iterator[Draft]:
    """For the append that begins a new life."""
    for record in journal.types.get("subagent.started", ()):
        key = record.key.removesuffix("/call")
        said = journal.log.meta(_name(key))
        if said is not None and f"{key}/settled" not in journal.records:
            yield settled(key, cast(SubagentStarted, record.event), json.loads(said))


def _name(key: str) -> str:
    return f"settled/{key}"
