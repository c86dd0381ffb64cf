"""Everyone who follows a run: the records after their cursor, what open parts have said so far, then what comes. Nothing lost, nothing twice."""

from collections.abc import Callable, Sequence

from edge_agent.core.events import PassingEvent, Retry, StepReasoningDelta, StepTextDelta
from edge_agent.core.journal import Journal
from edge_agent.core.ports import Record

Item = Record | PassingEvent
Tell = Callable[[Sequence[Item]], None]


class Hub:
    """The Sink of a live run."""

    def __init__(self) -> None:
        self._tells: list[Tell] = []
        self._texts: dict[str, StepTextDelta] = {}
        self._thoughts: dict[str, StepReasoningDelta] = {}

    def join(self, journal: Journal, after: int, tell: Tell) -> Callable[[], None]:
        """One synchronous block, so that nothing falls between what was and what comes. Returns the way to leave."""
        missed: list[Item] = [record for record in journal.in_order() if record.seq > after]
        tell([*missed, *self.open_parts()])
        self._tells.append(tell)
        return lambda: self._tells.remove(tell) if tell in self._tells else None

    def follow(self, tell: Tell) -> None:
        """From now on, for as long as the hub lives."""
        self._tells.append(tell)

    def open_parts(self) -> list[PassingEvent]:
        """One delta from offset 0 for each part under way."""
        return [*self._thoughts.values(), *self._texts.values()]

    def recorded(self, records: Sequence[Record]) -> None:
        items: list[Item] = []
        for record in records:
            items.append(record)
            part = record.key.removesuffix("/end")
            self._texts.pop(part, None)
            self._thoughts.pop(part, None)
            if record.event.type == "model.failed":
                items.append(Retry(part=part, error=record.event.error))
        self._tell(items)

    def passing(self, event: PassingEvent) -> None:
        if isinstance(event, StepTextDelta):
            said = self._texts[event.part].delta if event.offset else ""
            self._texts[event.part] = StepTextDelta(
                part=event.part, offset=0, delta=said + event.delta, step=event.step
            )
        elif isinstance(event, StepReasoningDelta):
            said = self._thoughts[event.part].delta if event.offset else ""
            self._thoughts[event.part] = StepReasoningDelta(
                part=event.part, offset=0, delta=said + event.delta, step=event.step
            )
        self._tell([event])

    def _tell(self, items: Sequence[Item]) -> None:
        for tell in list(self._tells):
            tell(items)
