"""A call that is a run of its own: begun with a record, waited for without an alarm, answered by what that run sends.

Several calls of one answer work side by side, at most so many of one tool; the others begin, in the order of the calls,
as those before them end.
"""

from collections.abc import Mapping
from dataclasses import replace

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ParentRun, SubagentStarted, ToolRejected
from edge_agent.core.journal import Draft
from edge_agent.core.messages import JsonObject, ToolCall
from edge_agent.core.signals import Suspend, Wait
from edge_agent.core.subagents import Commission, Delegation
from edge_agent.loop import kin
from edge_agent.loop.admit import Round, rejected
from edge_agent.loop.shares import reserve, shares, used_up
from edge_agent.loop.walk import Walk


def delegate(walk: Walk, key: str, call: ToolCall, round_: Round, arguments: JsonObject) -> ToolRejected:
    """Raises Suspend: until the child has answered, or until there is a place for it. Returns the rejection of a call
    for which too little is left of the budget."""
    to = walk.agent.subagents[call.name]
    at_work = [(other, started) for other, started in walk.journal.open_children() if started.name == call.name]
    if len(at_work) >= to.max_concurrent:
        raise Suspend(*(wait_for(walk, other, started) for other, started in at_work))
    caps = shares(walk, round_)
    if name := used_up(caps):
        return rejected(call, round_, "budget", f"Nothing is left of limits.{name} for {call.name}. Go on without it.")
    started = SubagentStarted(
        call_id=call.id,
        child_run_id=keys.child(walk.run_id, key, inline=to.inline),
        name=call.name,
        task=arguments["task"],
        profile=arguments.get("profile"),
        expires_at=None if to.timeout is None else walk.ports.clock.now() + int(to.timeout * 1000),
        step=round_.step,
        round=round_.number,
    )
    try:
        created = to.configure(_commission(walk, key, started, caps, to))
    except Refusal as no:
        return rejected(call, round_, "budget", f"{call.name} cannot begin with what is left: {no.message}")
    walk.before_effect(f"{key}/call")
    create = kin.create(key, started, walk.journal.cleaned(replace(created, user=walk.created.user)))
    money = {key: reserve(walk.created.limits, created.limits)}
    walk.write(Draft(key=f"{key}/call", event=started, money=money), sends=(create,))
    raise Suspend(wait_for(walk, key, started))


def _commission(
    walk: Walk, key: str, started: SubagentStarted, caps: Mapping[str, float], to: Delegation
) -> Commission:
    parent = ParentRun(
        run_id=walk.run_id,
        key=key,
        call_id=started.call_id,
        depth=walk.created.depth + 1,
        output_max_chars=to.output_max_chars,
    )
    metadata = walk.created.metadata
    return Commission(task=started.task, profile=started.profile, caps=caps, parent=parent, metadata=metadata)


def wait_for(walk: Walk, key: str, started: SubagentStarted) -> Wait:
    """Until the child's result is on record; at its deadline it is given up and told so, in one append."""
    late = "it did not answer in time, and was stopped"
    return Wait(
        key=f"{key}/result",
        reason="subagent",
        until=started.expires_at,
        at_deadline=kin.given_up(started, late),
        sends=(kin.cancel(walk.run_id, key, started, late),),
    )
