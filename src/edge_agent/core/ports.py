"""What the core needs from outside, one page. `Model` stands in model.py, `Tool` and `Tools` in tooling.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from edge_agent.core.events import PassingEvent, RecordedEvent
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


class Log(Protocol):
    """The durable log of one run. Not shared: one object owns it."""

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
    ) -> None:
        """All or nothing, synchronous; `meta` is set in the same transaction.

        Raises ValueError for a record that exceeds the row limit, and for a seq or key that is taken."""
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
        """Not before the first append."""
        ...


class Sink(Protocol):
    """Whoever is listening. Must not raise and must not wait: a closed socket is no fault of the run."""

    def recorded(self, records: Sequence[Record]) -> None:
        """Called in the same synchronous block as the append."""
        ...

    def passing(self, event: PassingEvent) -> None: ...


class Clock(Protocol):
    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Alarm(Protocol):
    """The one wake-up of the object. `set` replaces what was set; synchronous, and durable with the writes of the same
    block."""

    def set(self, at: int) -> None: ...
