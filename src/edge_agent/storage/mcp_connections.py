"""What the object of one MCP connection keeps: sealed credentials and logins under way, and the runs that wait.

The name of the connection, the last faults and who waits are no secrets and are not sealed; nor is a login's digest.

Tables are made by the first write, so that asking for a connection that nobody has leaves nothing behind.
"""

from dataclasses import dataclass
from typing import cast

from edge_agent.storage.sql import Sql, Value

_TABLES = (
    "create table if not exists kept(name text primary key, value text not null)",
    "create table if not exists login(state text primary key, value text not null, expires integer not null)",
    """create table if not exists waiter(run_id text not null, question_id text not null, due integer not null,
    tries integer not null, expires integer not null, primary key(run_id, question_id))""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """A question of a run that a login answers. `due`: ms since the epoch; 0: not before there is one."""

    run_id: str
    question_id: str
    due: int
    tries: int


class SqlConnection:
    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._made: bool | None = None

    def _exists(self) -> bool:
        if not self._made:
            self._made = bool(self._sql.run("select 1 from sqlite_master where name = 'waiter'"))
        return self._made

    def _make(self) -> None:
        if not self._exists():
            for table in _TABLES:
                self._sql.run(table)

    # -- what is kept by name
    def get(self, name: str) -> str | None:
        rows = self._sql.run("select value from kept where name = ?", name) if self._exists() else ()
        return str(rows[0][0]) if rows else None

    def put(self, name: str, value: str | None) -> None:
        """None forgets it."""
        if value is None and not self._exists():
            return
        self._make()
        if value is None:
            self._sql.run("delete from kept where name = ?", name)
        else:
            self._sql.run("insert or replace into kept values(?, ?)", name, value)

    # -- logins under way, each known by its state alone
    def begin(self, state: str, value: str, expires: int, now: int) -> None:
        """Times in ms since the epoch. Those whose time is over are forgotten."""
        self._make()
        self._sql.run("delete from login where expires <= ?", now)
        self._sql.run("insert into login values(?, ?, ?)", state, value, expires)

    def login(self, state: str, now: int) -> str | None:
        rows = (
            self._sql.run("select value from login where state = ? and expires > ?", state, now)
            if self._exists()
            else ()
        )
        return str(rows[0][0]) if rows else None

    def spend(self, state: str) -> None:
        """A state is good for one callback."""
        self._sql.run("delete from login where state = ?", state)

    # -- runs that wait
    def wait(self, run_id: str, question_id: str, expires: int, now: int) -> None:
        """Until it is released. A repeat changes nothing. Those whose time is over are forgotten."""
        self._make()
        self._sql.run("delete from waiter where expires <= ?", now)
        self._sql.run("insert or ignore into waiter values(?, ?, 0, 0, ?)", run_id, question_id, expires)

    def release(self, now: int) -> None:
        """They are to be told now. Those whose time is over are forgotten."""
        if self._exists():
            self._sql.run("delete from waiter where expires <= ?", now)
            self._sql.run("update waiter set due = ? where due = 0", now)

    def due(self, now: int) -> list[Waiter]:
        rows = (
            self._sql.run(
                "select run_id, question_id, due, tries from waiter where due > 0 and due <= ? order by due", now
            )
            if self._exists()
            else ()
        )
        return [Waiter(run_id=str(r[0]), question_id=str(r[1]), due=_int(r[2]), tries=_int(r[3])) for r in rows]

    def next_due(self) -> int | None:
        rows = self._sql.run("select min(due) from waiter where due > 0") if self._exists() else ()
        return None if not rows or rows[0][0] is None else _int(rows[0][0])

    def told(self, waiter: Waiter) -> None:
        self._sql.run("delete from waiter where run_id = ? and question_id = ?", waiter.run_id, waiter.question_id)

    def postpone(self, waiter: Waiter, due: int) -> None:
        self._sql.run(
            "update waiter set due = ?, tries = tries + 1 where run_id = ? and question_id = ?",
            due,
            waiter.run_id,
            waiter.question_id,
        )


def _int(value: Value) -> int:
    return int(cast(int, value))
