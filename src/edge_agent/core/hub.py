"""Everyone who follows a run: the records after their cursor, what open parts have said so far, then what comes.

Nothing lost, nothing twice.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from edge_agent.core.events import Delta, PassingEvent, Retry
from edge_agent.core.journal import Journal
from edge_agent.core.ports import Record

Item = Record | PassingEvent
Tell = Callable[[Sequence[Item]], None]


@dataclass(frozen=True, slots=True)
class _Part:
    """What one stream of a part has said so far; joined only when somebody asks."""

    first: Delta
    pieces: list[str]


class Hub:
    """The Sink of a live run. A follower who raises (a socket that broke) is no fault of the run."""

    def __init__(self) -> None:
        self._tells: list[Tell] = []
        self._open: dict[tuple[str, str], _Part] = {}

    def join(self, journal: Journal, after: int, tell: Tell) -> Callable[[], None]:
        """One synchronous block, so that nothing falls between what was and what comes.

        Returns the way to leave."""
        missed: list[Item] = [record for record in journal.in_order() if record.seq > after]
        tell([*missed, *self.open_parts()])
        self._tells.append(tell)
        return lambda: self._leave(tell)

    def follow(self, tell: Tell) -> None:
        """From now on, for as long as the hub lives."""
        self._tells.append(tell)

    def open_parts(self) -> list[PassingEvent]:
        """One delta from offset 0 for each part under way, thoughts and text apart."""
        return [replace(part.first, offset=0, delta="".join(part.pieces)) for part in self._open.values()]

    def recorded(self, records: Sequence[Record]) -> None:
        items: list[Item] = []
        for record in records:
            items.append(record)
            part = record.key.removesuffix("/end")
            for open_part in [key for key in self._open if key[1] == part]:
                del self._open[open_part]
            if record.event.type == "model.failed":
                items.append(Retry(part=part, error=record.event.error))
        self._tell(items)

    def passing(self, event: PassingEvent) -> None:
        if isinstance(event, Delta):
            self._open.setdefault((event.type, event.part), _Part(event, [])).pieces.append(event.delta)
        self._tell([event])

    def _tell(self, items: Sequence[Item]) -> None:
        for tell in list(self._tells):
            with contextlib.suppress(Exception):  # the record is made: whoever cannot be told comes back with a cursor
                tell(items)

    def _leave(self, tell: Tell) -> None:
        with contextlib.suppress(ValueError):
            self._tells.remove(tell)
