"""Killing an object at a chosen record: before it is made, or right after."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from edge_agent.core.ports import Log, Record, Send, StoredFile, Unsent

When = Literal["before", "after"]


class Killed(BaseException):
    """The instance is gone. A BaseException: no handler of errors may catch it."""


@dataclass(frozen=True, slots=True)
class Kill:
    """At the n-th append of all instances together, counted from 1."""

    append: int
    when: When


@dataclass(slots=True)
class Faults:
    """The plan of kills of one run, and how many appends there have been. Outlives the instances it kills."""

    kills: frozenset[Kill] = frozenset()
    appends: int = 0
    deaths: int = field(default=0, init=False)


class FaultyLog:
    """A `Log` around another that dies by plan. From then on every use of this instance raises Killed; the log inside
    lives on, as the disk does. `on_killed` is called once, at the moment of death."""

    def __init__(self, log: Log, faults: Faults, on_killed: Callable[[], None] = lambda: None) -> None:
        self._log, self._faults, self._on_killed = log, faults, on_killed
        self.dead = False

    def kill(self) -> None:
        """Dies now, not by plan."""
        if not self.dead:
            self.dead = True
            self._faults.deaths += 1
            self._on_killed()

    def append(
        self,
        records: Sequence[Record],
        files: Sequence[StoredFile] = (),
        meta: Mapping[str, str] = MappingProxyType({}),
        sends: Sequence[Send] = (),
    ) -> None:
        self._alive()
        self._faults.appends += 1
        number = self._faults.appends
        self._die_by_plan(number, "before")
        self._log.append(records, files, meta, sends)
        self._die_by_plan(number, "after")

    def exists(self) -> bool:
        self._alive()
        return self._log.exists()

    def load(self) -> list[Record]:
        self._alive()
        return self._log.load()

    async def durable(self) -> None:
        self._alive()
        await self._log.durable()

    def file(self, name: str) -> StoredFile | None:
        self._alive()
        return self._log.file(name)

    def meta(self, name: str) -> str | None:
        self._alive()
        return self._log.meta(name)

    def set_meta(self, name: str, value: str) -> None:
        self._alive()
        self._log.set_meta(name, value)

    def outbox(self) -> list[Unsent]:
        self._alive()
        return self._log.outbox()

    def acknowledge(self, key: str) -> None:
        self._alive()
        self._log.acknowledge(key)

    def postpone(self, key: str, due: int) -> None:
        self._alive()
        self._log.postpone(key, due)

    def erase(self, at: int, sends: Sequence[Send] = ()) -> None:
        self._alive()
        self._log.erase(at, sends)

    def erased(self) -> bool:
        self._alive()
        return self._log.erased()

    def _alive(self) -> None:
        if self.dead:
            raise Killed

    def _die_by_plan(self, number: int, when: When) -> None:
        if Kill(number, when) in self._faults.kills:
            self.kill()
            raise Killed
