"""The log of a run in memory: indexed, always in step with the durable one. `append` is the only way in."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar, cast

from edge_agent.core import keys
from edge_agent.core.errors import Closed
from edge_agent.core.events import (
    TERMINAL_TYPES,
    Fault,
    Handoff,
    ModelRequested,
    QuestionAsked,
    RecordedEvent,
    RunCreated,
    RunRefused,
    SubagentStarted,
    ToolCalled,
)
from edge_agent.core.listing import Listed
from edge_agent.core.ports import By, Clock, Log, Record, Send, Sink, StoredFile
from edge_agent.core.strings import in_event, well_formed
from edge_agent.core.usage import Amount, total_of

E = TypeVar("E")
R = TypeVar("R", bound=RecordedEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A record to be: everything but what the append itself gives it. `by` None: that of the append."""

    key: str
    event: RecordedEvent
    money: Mapping[str, Amount] = field(default_factory=dict[str, Amount])
    by: By | None = None


class Journal:
    """Loaded by one select, then kept in step. Nothing is appended to a run that has ended, but the next life.

    `mask` turns declared secrets in an event into a placeholder before anything sees it. `listed` keeps the directory
    of runs told; without it nobody is told anything. `on_sends` is called after an append that others are to hear of.
    """

    def __init__(
        self,
        log: Log,
        clock: Clock,
        sink: Sink,
        mask: Callable[[RecordedEvent], RecordedEvent] = lambda event: event,
        listed: Listed | None = None,
    ) -> None:
        self.log, self.clock, self.sink, self.mask, self._listed = log, clock, sink, mask, listed
        self.records: dict[str, Record] = {}
        self.under: dict[str, list[str]] = {}
        self.types: dict[str, list[Record]] = {}
        self.money: dict[str, Amount] = {}
        self.life = 0
        self.agent = ""
        self.on_sends: Callable[[], None] = lambda: None
        self._awaited: dict[str, asyncio.Event] = {}
        for record in log.load():
            self._index(record)
        self.erased = not self.records and log.erased()

    def _index(self, record: Record) -> None:
        self.records[record.key] = record
        for scope in keys.scopes(record.key):
            self.under.setdefault(scope, []).append(record.key)
        self.types.setdefault(record.type, []).append(record)
        self.money.update(record.money)
        self.life = record.life
        self.agent = record.agent
        if came := self._awaited.pop(record.key, None):
            came.set()

    async def comes(self, key: str) -> None:
        """Returns when a record is under `key`."""
        if key not in self.records:
            await self._awaited.setdefault(key, asyncio.Event()).wait()

    # -- reading
    @property
    def created(self) -> RunCreated:
        return cast(RunCreated, self.records[keys.RUN].event)

    @property
    def refused(self) -> bool:
        """Whether there is nothing but a tombstone."""
        return self.event(keys.RUN, RunRefused) is not None

    @property
    def ended(self) -> Record | None:
        return self.records.get(keys.end(self.life))

    @property
    def spent(self) -> Amount:
        return total_of(self.money.values())

    def spent_with(self, *drafts: Draft) -> Amount:
        """As it will be when these are on record."""
        said = {key: amount for draft in drafts for key, amount in draft.money.items()}
        return total_of({**self.money, **said}.values())

    @property
    def last(self) -> Record:
        return next(reversed(self.records.values()))

    def in_order(self) -> list[Record]:
        return list(self.records.values())

    def event(self, key: str, kind: type[E]) -> E | None:
        """The event under `key` if there is one of that kind."""
        record = self.records.get(key)
        return record.event if record and isinstance(record.event, kind) else None

    def open_attempts(self) -> Iterator[tuple[Record, ModelRequested]]:
        for record in self.types.get("model.requested", ()):
            if f"{record.key}/end" not in self.records:
                yield record, cast(ModelRequested, record.event)

    def open_calls(self) -> Iterator[tuple[str, ToolCalled]]:
        """(key of the call, its first intent) for each call without a result."""
        for record in self.types.get("tool.called", ()):
            key, _, again = record.key.partition("/call")
            if not again and f"{key}/result" not in self.records:
                yield key, cast(ToolCalled, record.event)

    def open_children(self) -> Iterator[tuple[str, SubagentStarted]]:
        """(key of the call, its start) for each child that is waited for."""
        for record in self.types.get("subagent.started", ()):
            key = record.key.removesuffix("/call")
            if f"{key}/result" not in self.records:
                yield key, cast(SubagentStarted, record.event)

    def open_questions(self) -> Iterator[tuple[str, QuestionAsked]]:
        """(key of the answer, question) for each that nobody answered and whose call is still open."""
        for record in self.types.get("question.asked", ()):
            call = record.key.rpartition("/ask/")[0]
            if f"{record.key}/answer" not in self.records and f"{call}/result" not in self.records:
                yield f"{record.key}/answer", cast(QuestionAsked, record.event)

    # -- what may be written down
    def cleaned(self, event: R) -> R:
        """The event as it would be recorded: without declared secrets and half characters.

        Cleaning twice changes nothing."""
        return cast(R, in_event(self.mask(event), well_formed))

    def cleaned_text(self, text: str) -> str:
        return self.cleaned(Fault(kind="storage", message=text, action="continued")).message

    def open_steps(self) -> Iterator[str]:
        """Keys of steps that have begun and not ended."""
        return (record.key for record in self.types.get("step.started", ()) if f"{record.key}/end" not in self.records)

    def undelivered(self) -> Iterator[Record]:
        """The queued messages that no boundary has taken in, in order."""
        for record in self.types.get("message.queued", ()):
            if f"{record.key}/end" not in self.records:
                yield record

    # -- the one way in
    def append(
        self,
        by: By,
        *drafts: Draft,
        files: Sequence[StoredFile] = (),
        meta: Mapping[str, str] = MappingProxyType({}),
        new_life: bool = False,
        sends: Sequence[Send] = (),
    ) -> Record:
        """Synchronous and atomic: store, index, tell. `sends` go into the outbox in the same transaction. Returns the
        last record.

        Raises Closed when the run has ended (unless this begins a new life), and when it was erased."""
        if self.erased:
            raise Closed("the run was deleted")
        if self.ended and not new_life:
            raise Closed(f"the run has ended with {self.ended.type}")
        made = self._made(by, drafts, self.life + new_life)
        self._store(made, files, meta, sends)
        return made[-1]

    def begin(self, records: Sequence[Record], meta: Mapping[str, str] = MappingProxyType({})) -> None:
        """The first append of a fork: records that are numbered already, all of them or none.

        Raises Closed where something is on record, and when the run was erased."""
        if self.erased or self.records:
            raise Closed("there is a run already, or was one")
        self._store([replace(record, event=self.cleaned(record.event)) for record in records], (), meta, ())

    def _store(
        self,
        made: Sequence[Record],
        files: Sequence[StoredFile],
        meta: Mapping[str, str],
        sends: Sequence[Send],
    ) -> None:
        waits = self.types.get("run.waiting", ())
        reports = self._listed.after(self.records, waits[-1] if waits else None, made) if self._listed else ()
        self.log.append(made, files, meta, (*sends, *reports))
        for record in made:
            self._index(record)
        self.sink.recorded(made)
        if sends or reports:
            self.on_sends()

    def erase(self, sends: Sequence[Send] = ()) -> None:
        """Everything on record goes for good, but for what is still to be sent, now with `sends`. The run must have
        ended, or never have begun.

        What is in memory stays until the object lets go of it: a loop that is still under way meets Closed."""
        reports = self._listed.erased(self.in_order()) if self._listed and self.ended else ()
        self.log.erase(self.clock.now(), (*sends, *reports))
        self.erased = True

    def _made(self, by: By, drafts: Sequence[Draft], life: int) -> list[Record]:
        seq, at, agent = len(self.records), self.clock.now(), self.agent
        made: list[Record] = []
        for number, draft in enumerate(drafts, start=1):
            if isinstance(draft.event, RunCreated):
                agent = draft.event.agent_name
            elif isinstance(draft.event, Handoff):
                agent = draft.event.to
            made.append(
                Record(
                    seq=seq + number,
                    key=draft.key,
                    batch=seq + len(drafts),
                    life=life,
                    by=draft.by or by,
                    at=at,
                    agent=agent,
                    event=self.cleaned(draft.event),
                    money=dict(draft.money),
                )
            )
        return made


def is_terminal(record: Record) -> bool:
    return record.type in TERMINAL_TYPES
