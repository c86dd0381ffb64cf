"""One part of the directory of runs, in SQL: the runs whose id falls to it, and what they have used."""

import json
from collections.abc import Mapping
from typing import Any, Literal, cast

from edge_agent.core.listing import ACTIVE
from edge_agent.core.messages import JsonObject
from edge_agent.storage.sql import Sql, Value

By = Literal["agent", "day", "model"]
REMEMBERED_MS = 86_400_000  # how long a forgotten run is known as such: no report is under way for a day

TABLES = (
    """create table if not exists run(
        run_id text primary key, created integer not null, seq integer not null, status text not null,
        agent text not null, listing text not null)""",
    "create index if not exists run_by_age on run(created, run_id)",
    "create index if not exists run_by_status on run(status, created, run_id)",
    # A run that was erased stays here under a name that nobody knows: what it used was used.
    """create table if not exists spent(
        run_id text not null, created integer not null, agent text not null, model text not null,
        input integer not null, cached integer not null, cache_write integer not null, output integer not null,
        reasoning integer not null, cost_usd real not null, primary key(run_id, model))""",
    "create index if not exists spent_by_age on spent(created)",
    "create table if not exists forgotten(run_id text primary key, at integer not null)",
)
_GROUPS: Mapping[By, str] = {"agent": "agent", "day": "date(created / 1000, 'unixepoch')", "model": "model"}
_TOKENS = ("input", "cached", "cache_write", "output", "reasoning")
_SUMS = ", ".join(f"sum({column})" for column in (*_TOKENS, "cost_usd"))


class SqlDirectory:
    """Tables are made by the first report, so that asking leaves nothing behind. A listing is the JSON of a `Listing`.

    Reports come more than once and in any order: what is newer by `seq` counts, and what was forgotten stays so."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def answer(self, method: str, payload: JsonObject, now: int) -> JsonObject:
        """Of `report` and `forget` the payload is a listing; of the others what the method takes. `now` in ms."""
        match method:
            case "report":
                self.report(payload)
            case "forget":
                self.forget(payload, now)
            case "page":
                return {"runs": self.page(**payload)}
            case "active":
                return {"active": self.active()}
            case "usage":
                return self.usage(**payload)
            case _:
                raise ValueError(f"the directory has no method {method}")
        return {}

    # -- what runs tell
    def report(self, listing: JsonObject) -> None:
        self._sql.transaction(lambda: self._report(listing))

    def forget(self, listing: JsonObject, now: int) -> None:
        """The run was erased. What it used up to then still counts, without its name."""
        self._sql.transaction(lambda: self._forget(listing, now))

    def _report(self, listing: JsonObject) -> None:
        for table in TABLES:
            self._sql.run(table)
        run_id, seq = listing["run_id"], listing["seq"]
        if self._sql.run("select 1 from forgotten where run_id = ?", run_id):
            return
        if self._sql.run("select 1 from run where run_id = ? and seq >= ?", run_id, seq):
            return
        values = (run_id, listing["created"], seq, listing["status"], listing["agent"], json.dumps(listing))
        self._sql.run("insert or replace into run values(?, ?, ?, ?, ?, ?)", *values)
        self._sql.run("delete from spent where run_id = ?", run_id)
        uses: list[JsonObject] = listing["uses"] or [{"model": "", "usage": {}, "cost_usd": 0.0}]
        for use in uses:
            tokens = [use["usage"].get(kind, 0) for kind in _TOKENS]
            spent = (run_id, listing["created"], listing["agent"], use["model"], *tokens, float(use["cost_usd"]))
            self._sql.run("insert into spent values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *spent)

    def _forget(self, listing: JsonObject, now: int) -> None:
        self._report(listing)
        run_id = listing["run_id"]
        self._sql.run("delete from run where run_id = ?", run_id)
        nameless = self._sql.run("select '/' || lower(hex(randomblob(8)))")[0][0]
        self._sql.run("update spent set run_id = ? where run_id = ?", nameless, run_id)
        self._sql.run("insert or ignore into forgotten values(?, ?)", run_id, now)
        self._sql.run("delete from forgotten where at < ?", now - REMEMBERED_MS)

    # -- what is asked
    def page(
        self,
        *,
        limit: int,
        status: str | None = None,
        agent: str | None = None,
        before: tuple[int, str] | None = None,
    ) -> list[JsonObject]:
        """Newest first. `before`: (created, run_id) of the last run that was seen."""
        if not self._begun():
            return []
        asked: dict[str, tuple[Value, ...]] = {}
        if status is not None:
            asked["status = ?"] = (status,)
        if agent is not None:
            asked["agent = ?"] = (agent,)
        if before is not None:
            asked["(created, run_id) < (?, ?)"] = tuple(before)
        where = f"where {' and '.join(asked)} " if asked else ""
        query = f"select listing from run {where}order by created desc, run_id desc limit ?"  # noqa: S608
        values = [value for some in asked.values() for value in some]
        return [json.loads(cast(str, listing)) for (listing,) in self._sql.run(query, *values, limit)]

    def active(self) -> int:
        """How many runs have not ended."""
        if not self._begun():
            return 0
        marks = ", ".join("?" for _ in ACTIVE)
        (found,) = self._sql.run(f"select count(*) from run where status in ({marks})", *ACTIVE)  # noqa: S608
        return int(cast(int, found[0]))

    def usage(self, *, since: int | None = None, by: By | None = None) -> JsonObject:
        """{"total": spent, "groups": {name: spent}} of the runs created at `since` (ms) or later. A day is one of UTC,
        that of the run's creation."""
        if not self._begun():
            return {"total": None, "groups": {}}
        (total,) = self._spent("''", since, "")
        named = self._spent(_GROUPS[by], since, f"group by {_GROUPS[by]}") if by else []
        return {"total": total[1], "groups": dict(named)}

    def _spent(self, name: str, since: int | None, group: str) -> list[tuple[str, JsonObject]]:
        query = f"select {name}, count(distinct run_id), {_SUMS} from spent where created >= ? {group}"  # noqa: S608
        found: list[tuple[str, JsonObject]] = []
        for key, runs, *tokens, cost in cast(list[tuple[Any, ...]], self._sql.run(query, since or 0)):
            counts = {kind: int(count or 0) for kind, count in zip(_TOKENS, tokens, strict=True)}
            found.append((str(key), {"runs": int(runs), **counts, "cost_usd": float(cost or 0)}))
        return found

    def _begun(self) -> bool:
        return bool(self._sql.run("select 1 from sqlite_master where type = 'table' and name = 'run'"))
