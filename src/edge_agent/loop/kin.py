"""What runs send each other: a parent the beginning and the end of a child, a child its events and what came of it.

Every receiver knows a repeat by the key of the call. What arrives late, or after what was sent later, changes nothing
that is decided; a result that comes after its child was given up still says what it cost.
"""

from collections.abc import Sequence
from dataclasses import asdict

from edge_agent.core import keys
from edge_agent.core.events import (
    ParentRun,
    RunCompleted,
    RunCreated,
    RunFailed,
    SubagentFailed,
    SubagentStarted,
    Terminal,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Send
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop import prompts

TO_RUN = "run/"  # and its id: the destination of a send
METHODS = ("create_child", "cancel_child", "delete_child", "child_result", "child_events")


# -- to a child
def create(key: str, started: SubagentStarted, created: RunCreated) -> Send:
    return _to(started.child_run_id, f"{key}/call", "create_child", {"created": asdict(created)})


def cancel(run_id: str, key: str, started: SubagentStarted, reason: str) -> Send:
    """`run_id`: of the parent. A child that is not there yet leaves a tombstone, and says that it cost nothing."""
    arguments = {"parent": run_id, "key": key, "reason": reason}
    return _to(started.child_run_id, f"{key}/cancel", "cancel_child", arguments)


def delete(key: str, started: SubagentStarted) -> Send:
    """With the run that is deleted goes what lies in its object."""
    return _to(started.child_run_id, f"{key}/delete", "delete_child", {})


def given_up(started: SubagentStarted, error: str) -> SubagentFailed:
    """The end of the wait for a child that is told to stop. What it used is said by subagent.settled."""
    return SubagentFailed(
        call_id=started.call_id,
        child_run_id=started.child_run_id,
        name=started.name,
        error=error,
        stopped=True,
        step=started.step,
        round=started.round,
    )


# -- to the parent
def result(run_id: str, parent: ParentRun, end: Terminal, spent: Amount, life: int) -> Send:
    """What came of a child, with its terminal record. `spent`: its own, and what its children have cost."""
    arguments = _outcome(parent.key, run_id, end.usage, spent)
    if isinstance(end, RunCompleted):
        why = f"(it ended without a text: {end.stop_reason})"
        text = _clipped(end.text, parent.output_max_chars) if end.text.strip() else why
        arguments |= {"text": text, "stop_reason": end.stop_reason}
    else:
        arguments["error"] = end.error.message[:2_000] if isinstance(end, RunFailed) else "it was cancelled"
    return _to(parent.run_id, keys.end(life), "child_result", arguments)


def never_began(run_id: str, parent: str, key: str, why: str = "it was cancelled before it began") -> Send:
    """Of a child that there is not."""
    arguments = _outcome(key, run_id, Usage(), Amount())
    return _to(parent, "refused", "child_result", {**arguments, "error": why})


def turned_away(send: Send, why: str) -> Send | None:
    """What the sender is to hear of its refused `send`: of a child that cannot begin, or it would wait for ever."""
    if send.method != "create_child":
        return None
    parent = send.arguments["created"]["parent"]
    run_id = send.destination.removeprefix(TO_RUN)
    return never_began(run_id, parent["run_id"], parent["key"], f"it could not begin: {why}")


def events(parent: ParentRun, shown: Sequence[JsonObject], spent: Amount) -> Send:
    """Recorded events of a child, in order. They are told again from where the parent last acknowledged."""
    arguments = {"key": parent.key, "events": list(shown), "spent": asdict(spent)}
    return _to(parent.run_id, f"events/{shown[-1]['seq']}", "child_events", arguments)


def _outcome(key: str, child: str, usage: Usage, spent: Amount) -> JsonObject:
    return {"key": key, "child_run_id": child, "usage": asdict(usage), "spent": asdict(spent)}


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + prompts.clipped(len(text) - most)


def _to(run_id: str, key: str, method: str, arguments: JsonObject) -> Send:
    return Send(key=key, destination=f"{TO_RUN}{run_id}", method=method, arguments=arguments)
