"""The note that a run waits for someone, for whoever reads of it."""

from collections.abc import Sequence

from edge_agent.core.events import RunWaiting, WaitReason
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.signals import Wait


def note_waiting(journal: Journal, waits: Sequence[Wait]) -> None:
    """A restart or an alarm too early says nothing new, and writes nothing."""
    reasons: list[WaitReason] = sorted({wait.reason for wait in waits})
    asked = next((wait.question for wait in waits if wait.question), None)
    waiting = RunWaiting(
        for_=tuple(reasons),
        keys=tuple(sorted({wait.key for wait in waits})),
        until=min((wait.until for wait in waits if wait.until is not None), default=None),
        url=asked.url if asked else None,
        question=asked.question if asked else None,
        schema=asked.schema if asked else None,
    )
    if journal.last.event != waiting:
        journal.append("note", Draft(key=f"wait/{journal.last.seq + 1}", event=waiting))
