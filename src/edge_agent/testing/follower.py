"""A client that follows a run by its cursor and checks what it is told."""

from collections.abc import Sequence

from edge_agent.core.events import ModelAnswered, Retry, StepReasoningDelta, StepTextDelta
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Journal
from edge_agent.core.ports import Record


class Follower:
    """Joins a hub, again and again where it is lost, and raises AssertionError for a record missed or told twice, a gap
    in a text, and a text that is not the record's. `whole`: texts that were heard to their end."""

    def __init__(self, after: int = 0) -> None:
        self.seq, self.whole = after, 0
        self.records: list[Record] = []
        self._said: dict[str, str] = {}
        self._thought: dict[str, str] = {}
        self.faults: list[str] = []

    def join(self, hub: Hub, journal: Journal) -> None:
        """A new connection knows nothing of open parts, and is told them from their beginning."""
        self._said, self._thought = {}, {}
        hub.join(journal, self.seq, self.tell)

    def tell(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Record):
                self._record(item)
            elif isinstance(item, StepTextDelta):
                self._add(self._said, item)
            elif isinstance(item, StepReasoningDelta):
                self._add(self._thought, item)
            elif isinstance(item, Retry):
                self._said.pop(item.part, None)

    def assert_heard_all(self, records: Sequence[Record]) -> None:
        """Raises AssertionError where anything was missed, told twice, or told wrongly."""
        if self.faults:
            raise AssertionError("; ".join(self.faults))
        heard = [record.key for record in self.records]
        expected = [record.key for record in records][len(records) - len(heard) :]
        if self.seq != records[-1].seq or heard != expected:
            raise AssertionError(f"heard up to {self.seq} of {records[-1].seq}")

    def _record(self, record: Record) -> None:
        self._expect(record.seq == self.seq + 1, f"record {record.seq} after {self.seq}")
        self.seq = record.seq
        self.records.append(record)
        part = record.key.removesuffix("/end")
        said = self._said.pop(part, None)
        self._thought.pop(part, None)
        if said is not None and isinstance(record.event, ModelAnswered):
            self._expect(said == record.event.message.text, f"the text of {part} differs from its record")
            self.whole += 1

    def _add(self, texts: dict[str, str], delta: StepTextDelta | StepReasoningDelta) -> None:
        had = texts.get(delta.part, "")
        self._expect(delta.offset == len(had), f"a gap in {delta.part}: {delta.offset} after {len(had)}")
        texts[delta.part] = had + delta.delta

    def _expect(self, holds: bool, fault: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not holds:
            self.faults.append(fault)
