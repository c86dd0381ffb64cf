"""Families for runs with subagents: who asks whom for what, and what people do to them meanwhile."""

from collections.abc import Callable

from edge_agent.core.approval import Decision
from edge_agent.core.events import ApprovalRequested, SubagentStarted
from edge_agent.core.model import ModelRequest
from edge_agent.loop import kin_inbox
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing.post import Trouble
from tests.faults.family_world import Family

ISOLATIONS: tuple[Isolation, ...] = ("object", "inline")
NONE_OR_SOME: tuple[tuple[Trouble, ...], ...] = ((), ("none", "late", "late", "late"))
DEAF: tuple[Trouble, ...] = ("none",) * 3 + ("lost",) * 60  # for longer than anybody waits


# -- what models say
def tasks(*names: str, also: tuple[str, ...] = (), **more: str) -> Answer:
    asked = tuple(("researcher", {"task": name, **more}) for name in names)
    return Answer(text="let me ask", calls=(*asked, *((name, {}) for name in also)))


def boss(turn: int, request: ModelRequest) -> Answer | str:
    return [tasks("a", "b", "c", also=("pay",)), tasks("d"), "all is known"][min(turn, 2)]


def researcher(turn: int, request: ModelRequest) -> Answer | str:
    task = next(message.text for message in request.messages if message.role == "user")
    return Answer(calls=(("pay", {"amount": 2}), ("look", {}))) if turn == 0 else f"{task} is done"


THREE = Family(name="three side by side, two at a time, then one more", boss=boss, child=researcher, max_concurrent=2)


# -- what people do
def cancels(inbox: Inbox) -> None:
    inbox.cancel("enough")


def deletes(inbox: Inbox) -> None:
    inbox.delete()


def resumes(inbox: Inbox) -> None:
    inbox.resume()


def stops_the_step(inbox: Inbox) -> object:
    return inbox.cancel_step()


def stops(number: int) -> Callable[[Inbox], object]:
    """A person stops the child of the n-th call that was started."""

    def act(inbox: Inbox) -> object:
        started = [r.event for r in inbox.journal.in_order() if isinstance(r.event, SubagentStarted)]
        return kin_inbox.cancel_subagent(inbox, started[number].call_id, "not this one")

    return act


def approves(inbox: Inbox) -> None:
    for record in inbox.journal.in_order():
        if isinstance(record.event, ApprovalRequested):
            inbox.decide(record.event.call_id, Decision(approved=True))
