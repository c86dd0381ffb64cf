"""What a walk over records alone works with: a log that takes nothing, nobody who listens, tools that only describe."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from edge_agent.core.events import OfferedTools, PassingEvent
from edge_agent.core.messages import ToolSpec
from edge_agent.core.ports import Record, Send, StoredFile, Unsent
from edge_agent.core.tooling import SignIn, Tool
from edge_agent.loop.offer import file_name


class NothingIsWritten(BaseException):
    """A walk over records tried to write: a fault of the walk. No handler of errors may swallow it."""


class RecordedLog:
    """The `Log` of records that are there already. Whatever would change it raises NothingIsWritten."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def exists(self) -> bool:
        return True

    def load(self) -> list[Record]:
        return list(self._records)

    def append(
        self,
        records: Sequence[Record],
        files: Sequence[StoredFile] = (),  # noqa: ARG002 - nothing is kept of it
        meta: Mapping[str, str] = MappingProxyType({}),  # noqa: ARG002
        sends: Sequence[Send] = (),  # noqa: ARG002
    ) -> None:
        raise NothingIsWritten(records[0].key)

    async def durable(self) -> None:
        raise NothingIsWritten("durable")

    def file(self, name: str) -> StoredFile | None:  # noqa: ARG002
        return None

    def meta(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def set_meta(self, name: str, value: str) -> None:  # noqa: ARG002
        raise NothingIsWritten(name)

    def outbox(self) -> list[Unsent]:
        return []

    def acknowledge(self, key: str) -> None:
        raise NothingIsWritten(key)

    def postpone(self, key: str, due: int) -> None:  # noqa: ARG002
        raise NothingIsWritten(key)

    def erase(self, at: int, sends: Sequence[Send] = ()) -> None:  # noqa: ARG002
        raise NothingIsWritten("erase")

    def erased(self) -> bool:
        return False


class NoClock:
    """Time stands still: nothing that is on record depends on it."""

    def now(self) -> int:
        return 0


class Unheard:
    """The `Sink` that nobody listens to."""

    def recorded(self, records: Sequence[Record]) -> None: ...

    def passing(self, event: PassingEvent) -> None: ...


class RecordedTools:
    """The tools as the log says that they were offered: those of servers by its own files, functions by the code.

    None of them can be called. `at` goes to what one record offered."""

    def __init__(self, functions: Iterable[ToolSpec], files: Iterable[StoredFile]) -> None:
        self.functions = {tool.name: tool for tool in functions}
        self._files = {file.name: file.content for file in files if file.name.startswith("tools-")}
        self._of_servers: dict[str, Mapping[str, ToolSpec]] = {}
        self._now: tuple[ToolSpec, ...] = ()

    def at(self, offered: OfferedTools) -> Sequence[str]:
        """From here on these are offered. Returns the names that nobody can describe any more."""
        theirs = self._described(file_name(offered))
        found = {name: self.functions.get(name) or theirs.get(name) for name in offered.names}
        unknown = [name for name, tool in found.items() if tool is None]
        self._now = tuple(
            found.get(name) or ToolSpec(name=name, description="", parameters={}) for name in offered.names
        )
        return unknown

    def _described(self, name: str) -> Mapping[str, ToolSpec]:
        if name not in self._of_servers:
            entries = json.loads(self._files.get(name, b"[]"))
            self._of_servers[name] = {entry["name"]: ToolSpec(**entry) for entry in entries}
        return self._of_servers[name]

    async def refresh(self) -> tuple[str, ...]:
        return ()

    def sign_ins(self) -> tuple[SignIn, ...]:
        return ()

    def offered(self) -> tuple[ToolSpec, ...]:
        return self._now

    def find(self, name: str) -> Tool | None:  # noqa: ARG002 - it must not be called
        return None

    async def close(self) -> None: ...
