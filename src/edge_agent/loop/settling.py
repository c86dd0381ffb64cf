"""What a child has cost that was given up, once it says so: at once, or with the next life of a run that has ended."""

import json
from collections.abc import Iterator
from typing import Any, cast

from edge_agent.core.events import SubagentSettled, SubagentStarted
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Amount, Usage


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
