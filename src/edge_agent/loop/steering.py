"""Messages to a run that works: queued, and taken in at a boundary, once."""

from typing import Literal, cast

from edge_agent.core.events import DeliveredMessage, MessageDelivered, MessageQueued
from edge_agent.core.journal import Draft
from edge_agent.loop.walk import Walk


def take_in_messages(
    walk: Walk, boundary: str, where: Literal["round", "replan", "final"]
) -> tuple[tuple[DeliveredMessage, ...], list[Draft]]:
    """What waits in the queue now, and the notes that it was delivered, to be appended with the boundary's record.

    Only the boundary's record says what was taken in; the notes are for readers."""
    waiting = [cast(MessageQueued, record.event) for record in walk.journal.undelivered()]
    messages = tuple(DeliveredMessage(id=message.message_id, text=message.text) for message in waiting)
    return messages, [
        Draft(
            key=f"msg/{message.id}/end",
            event=MessageDelivered(message_id=message.id, where=where, boundary=boundary),
            by="note",
        )
        for message in messages
    ]
