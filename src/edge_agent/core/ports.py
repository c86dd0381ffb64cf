"""What the core needs from outside, one page. `Model` stands in model.py, `Tool` and `Tools` in tooling.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from edge_agent.core.events import PassingEvent, RecordedEvent
from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Amount

By = Literal["loop", "input", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the log.

    by: loop (a walk asks for it), input (from outside, or a deadline), note (nobody asks, it is for readers).
    batch: the seq of the last record of its append. at: ms since the epoch. money: the last word per key counts.
    """

    seq: int
    key: str
    batch: int
    life: int
    by: By
    at: int
    agent: str
    event: RecordedEvent
    money: dict[str, Amount]

    @property
    def type(self) -> str:
        return self.event.type


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """What a run has to tell another object, written down with the records that it goes with.

    It may arrive more than once, late, and after what was sent later: the receiver knows a repeat by what it holds, or
    by `key`, which is unique in the run. `destination`: see the `Post`. `arguments` are JSON."""

    key: str
    destination: str
    method: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """A send that nobody has acknowledged yet. `due`: ms since the epoch."""

    send: Send
    tries: int
    due: int


class Log(Protocol):
    """The durable log of one run, and its outbox. Not shared: one object owns it."""

    def exists(self) -> bool:
        """Whether the run was created. Makes nothing."""
        ...

    def load(self) -> list[Record]:
        """Every record in order, by one select. Empty before the first append."""
        ...

    def append(
        self,
        records: Sequence[Record],
        files: Sequence[StoredFile] = (),
        meta: Mapping[str, str] = MappingProxyType({}),
        sends: Sequence[Send] = (),
    ) -> None:
        """All or nothing, synchronous; `meta` and `sends` are written in the same transaction. A send whose key was
        sent before is not sent again.

        Raises ValueError for a record or a send that exceeds the row limit, and for a seq or key that is taken."""
        ...

    async def durable(self) -> None:
        """Returns when every append so far has reached the disk."""
        ...

    def file(self, name: str) -> StoredFile | None:
        """None for an unknown one, also before the first append."""
        ...

    def meta(self, name: str) -> str | None:
        """A word beside the log (restarts, fingerprint of the request): no record, not exported. None before the first
        append."""
        ...

    def set_meta(self, name: str, value: str) -> None:
        """Not before the first append. Kept nowhere once the log was erased."""
        ...

    def outbox(self) -> list[Unsent]:
        """What is not acknowledged, in the order it was appended; also after the end and the erasure."""
        ...

    def acknowledge(self, key: str) -> None:
        """The send under `key` has arrived. Acknowledgements are no history: its row goes."""
        ...

    def postpone(self, key: str, due: int) -> None:
        """One more try was in vain; the next one is at `due`."""
        ...

    def erase(self, at: int, sends: Sequence[Send] = ()) -> None:
        """In one transaction: records, files and meta go for good, a tombstone stays, and so does the outbox with
        `sends` added. Nothing may be appended any more."""
        ...

    def erased(self) -> bool:
        """Whether there is a tombstone. Makes nothing."""
        ...


class Sink(Protocol):
    """Whoever is listening. Must not raise and must not wait: a closed socket is no fault of the run."""

    def recorded(self, records: Sequence[Record]) -> None:
        """Called in the same synchronous block as the append."""
        ...

    def passing(self, event: PassingEvent) -> None: ...


class Post(Protocol):
    """The way to other objects."""

    async def send(self, send: Send) -> None:
        """Returns when the receiver has acknowledged; raises whatever it likes where that is not known. May be
        cancelled, and will be repeated after that."""
        ...


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Alarm(Protocol):
    """The one wake-up of the object, or of a run in it."""

    def set(self, at: int) -> None:
        """Replaces what was set; synchronous, and durable with the writes of the same block. `at`: ms since the epoch,
        above 0: the platform refuses anything else."""
        ...


class Alarms(Protocol):
    """What is kept of the alarms of runs that lie in another's object, durable with the writes of the same block."""

    def times(self) -> dict[str, int]:
        """When each run that has one is to be woken (ms since the epoch), by its id."""
        ...

    def set(self, run_id: str, at: int) -> None: ...

    def clear(self, run_id: str) -> None: ...
