"""Items of a live run as the text that goes to clients."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edge_agent.core.events import PassingEvent
from edge_agent.core.journal import Journal
from edge_agent.core.ports import Record
from edge_agent.wire import sse
from edge_agent.wire.codec import passing_json, recorded_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Framer:
    """The events of one run as JSON, and as frames of server-sent events (`id` on recorded ones only)."""

    run_id: str
    journal: Journal

    def json(self, items: Sequence[Record | PassingEvent]) -> Iterator[str]:
        for item in items:
            if isinstance(item, Record):
                yield recorded_json(item, self.run_id)
            else:
                yield passing_json(item, self.run_id, self.journal.clock.now(), self.journal.agent)

    def sse(self, items: Sequence[Record | PassingEvent]) -> str:
        return "".join(
            sse.encode(item.type, data, str(item.seq) if isinstance(item, Record) else None)
            for item, data in zip(items, self.json(items), strict=True)
        )
