"""The contract of the log, over SQL on sqlite3: in memory, in a file, and under the log that dies by plan."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from edge_agent.core.ports import Log
from edge_agent.storage.sql import Sqlite
from edge_agent.storage.sql_log import SqlLog
from edge_agent.testing import Faults, FaultyLog, Kill, Killed
from edge_agent.wire import codec
from tests.contracts.log_contract import CONTRACT, Subject, created, fault, record


class Opened:
    """Logs over sqlite3, closed at the end of a test. `within`: beside the log of another run."""

    def __init__(self, folder: Path | None, within: str = "") -> None:
        self.within, self.folder, self.connections, self.number = within, folder, list[sqlite3.Connection](), 0

    def fresh(self) -> Log:
        self.number += 1
        return self._log()

    def again(self) -> Log:
        return self._log() if self.folder else SqlLog(Sqlite(self.connections[-1]), codec, self.within)

    def _log(self) -> Log:
        name = str(self.folder / f"{self.number}.sqlite") if self.folder else ":memory:"
        self.connections.append(sqlite3.connect(name, isolation_level=None))
        if self.within:
            SqlLog(Sqlite(self.connections[-1]), codec).append([record(1, "run", created("x" * 70_000))])
        return SqlLog(Sqlite(self.connections[-1]), codec, self.within)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def _name(check: Callable[[Subject], Awaitable[None]]) -> str:
    return getattr(check, "__name__", "").replace("_", " ")


@pytest.mark.parametrize("check", CONTRACT, ids=_name)
@pytest.mark.parametrize("kind", ["memory", "file", "faulty", "inline"])
async def test_the_log_over_sql_keeps_its_contract(
    check: Callable[[Subject], Awaitable[None]], kind: str, tmp_path: Path
) -> None:
    opened = Opened(tmp_path if kind == "file" else None, within="sub-1" if kind == "inline" else "")

    def wrap(log: Log) -> Log:
        return FaultyLog(log, Faults()) if kind == "faulty" else log

    await check(Subject(fresh=lambda: wrap(opened.fresh()), again=lambda: wrap(opened.again())))
    opened.close()


async def test_a_log_that_died_by_plan_answers_nothing_any_more_and_the_disk_lives_on() -> None:
    opened = Opened(None)
    disk, told = opened.fresh(), list[str]()
    before = FaultyLog(disk, Faults(frozenset({Kill(2, "before")})), lambda: told.append("dead"))
    before.append([record(1, "run", created())])
    with pytest.raises(Killed):
        before.append([record(2, "a", fault("a"))])
    before.kill()
    assert told == ["dead"]
    for use in (before.exists, before.load, lambda: before.file("x"), lambda: before.meta("x")):
        with pytest.raises(Killed):
            use()
    with pytest.raises(Killed):
        before.set_meta("x", "y")
    with pytest.raises(Killed):
        await before.durable()
    assert [r.key for r in disk.load()] == ["run"]
    after = FaultyLog(disk, Faults(frozenset({Kill(1, "after")})))
    with pytest.raises(Killed):
        after.append([record(2, "a", fault("a"))])
    assert [r.key for r in disk.load()] == ["run", "a"]
    opened.close()


def test_a_long_string_whose_file_is_gone_is_said_so() -> None:
    opened = Opened(None)
    log = opened.fresh()
    log.append([record(1, "run", created("x" * 70_000))])
    opened.connections[0].execute("delete from file")
    with pytest.raises(ValueError, match=r"the file text-.* of a long string is missing"):
        log.load()
    opened.close()


def test_another_fault_of_the_database_comes_out_as_it_was() -> None:
    opened = Opened(None)
    log = opened.fresh()
    log.append([record(1, "run", created())])
    opened.connections[0].execute("drop table meta")
    with pytest.raises(sqlite3.OperationalError, match="no such table: meta"):
        log.append([record(2, "a", fault("a"))], (), {"restarts": "1"})
    assert [r.key for r in log.load()] == ["run"]
    opened.close()


@pytest.mark.parametrize("erased,other", [("", "sub-1"), ("sub-1", "")])
def test_an_erasure_takes_nothing_of_the_other_runs_of_a_database(erased: str, other: str) -> None:
    opened = Opened(None)
    opened.fresh()
    gone, stays = (SqlLog(Sqlite(opened.connections[0]), codec, within) for within in (erased, other))
    for log in (gone, stays):
        log.append([record(1, "run", created("x" * 70_000))])
    gone.erase(1)
    assert (gone.exists(), gone.erased()) == (False, True)
    assert (stays.erased(), len(stays.load()), len(list(stays.files()))) == (False, 1, 1)
    opened.close()


def test_files_are_listed_by_name() -> None:
    opened = Opened(None)
    opened.fresh()
    log = SqlLog(Sqlite(opened.connections[0]), codec)
    log.append([record(1, "run", created("x" * 70_000)), record(2, "a", fault("y" * 70_000))])
    assert [len(file.content) for file in log.files()] == [70_000, 70_000]
    opened.close()
