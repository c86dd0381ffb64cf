"""The alarms of runs that lie in another's object, beside that one's log."""

from typing import cast

from edge_agent.storage.sql import Sql


class SqlAlarms:
    """The table is made by the first alarm, so that an object without such runs has none."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._made = False

    def times(self) -> dict[str, int]:
        if not self._sql.run("select 1 from sqlite_master where type = 'table' and name = 'alarm'"):
            return {}
        rows = self._sql.run("select run_id, at from alarm order by at, run_id")
        return {cast(str, run_id): int(cast(int, at)) for run_id, at in rows}

    def set(self, run_id: str, at: int) -> None:
        if not self._made:
            self._sql.run("create table if not exists alarm(run_id text primary key, at integer not null)")
            self._made = True
        self._sql.run("insert or replace into alarm(run_id, at) values(?, ?)", run_id, at)

    def clear(self, run_id: str) -> None:
        self._sql.run("delete from alarm where run_id = ?", run_id)
