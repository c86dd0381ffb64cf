"""What the objects of runs hand to a run that another run has sent: the same in workerd, in a process and in tests."""

from typing import cast

from edge_agent.core.events import RunCreated
from edge_agent.core.messages import JsonObject
from edge_agent.loop import kin_inbox
from edge_agent.loop.inbox import Inbox
from edge_agent.wire import codec


def receive(inbox: Inbox, method: str, arguments: JsonObject) -> None:
    """`method`: one of loop.kin.METHODS. Raises Refusal, which is an answer as well: the sender need not try again."""
    match method:
        case "create_child":
            kin_inbox.create_child(inbox, cast(RunCreated, codec.decode("run.created", arguments["created"])))
        case "cancel_child":
            kin_inbox.cancel_child(inbox, arguments["parent"], arguments["key"], arguments["reason"])
        case "delete_child":
            kin_inbox.delete_child(inbox)
        case "child_result":
            kin_inbox.child_result(inbox, arguments)
        case "child_events":
            kin_inbox.child_events(inbox, arguments)
        case _:
            raise ValueError(f"runs do not send {method}")
