"""The small door to SQLite, and its sqlite3 side. The object's side is in edge_agent/cloudflare/sql.py."""

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")
Value = None | int | float | str | bytes


class Sql(Protocol):
    def run(self, query: str, *values: Value) -> list[tuple[Value, ...]]:
        """One statement; its rows. Integers come back as int only from columns declared INTEGER."""
        ...

    def transaction(self, work: Callable[[], T]) -> T:
        """Runs `work` in one transaction; any exception rolls it back and comes out as it was."""
        ...

    async def durable(self) -> None:
        """Returns when every write so far has reached the disk."""
        ...


class Sqlite:
    """On a sqlite3 connection in autocommit mode (`isolation_level=None`)."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def run(self, query: str, *values: Value) -> list[tuple[Value, ...]]:
        return self._connection.execute(query, values).fetchall()

    def transaction(self, work: Callable[[], T]) -> T:
        self._connection.execute("begin")
        try:
            result = work()
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")
        return result

    async def durable(self) -> None:
        """sqlite3 has written when execute returns."""


def in_memory() -> Sqlite:
    return Sqlite(sqlite3.connect(":memory:", isolation_level=None))
