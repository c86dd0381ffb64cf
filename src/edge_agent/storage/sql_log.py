"""The log of one run in SQL tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, cast

from edge_agent.core.events import RecordedEvent
from edge_agent.core.long_strings import LONG, cut, restore
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record, Send, StoredFile, Unsent
from edge_agent.core.usage import Amount
from edge_agent.storage.sql import Sql, Value

ROW_LIMIT = 2_000_000  # bytes in one row or value on the platform; local workerd does not enforce it
ROOM = 10_000  # bytes for the other columns
CHUNK = 1_000_000  # bytes of a file in one row

SHORT = 2_000  # characters; strings longer than this leave a record that would not fit its row otherwise

TABLES = {
    "log": """seq integer primary key, key text not null unique, type text not null, batch integer not null,
        life integer not null, by text not null, at integer not null, agent text not null,
        money text not null, data text not null, cut text not null""",
    "file": "name text primary key, media_type text not null",
    "file_chunk": "name text not null, number integer not null, content blob not null, primary key(name, number)",
    "meta": "name text primary key, value text not null",
    "outbox": """number integer primary key, key text not null unique, destination text not null,
        method text not null, arguments text not null, tries integer not null, due integer not null""",
    "tombstone": "at integer not null",  # made by an erasure alone
}
FILES = ("file", "file_chunk")
ERASED = ("log", *FILES, "meta")  # the outbox stays


class Codec(Protocol):
    """How events become JSON: edge_agent.wire.codec."""

    def encode(self, event: RecordedEvent) -> JsonObject: ...
    def decode(self, kind: str, data: JsonObject) -> RecordedEvent: ...
    def encode_money(self, money: dict[str, Amount]) -> JsonObject: ...
    def decode_money(self, data: JsonObject) -> dict[str, Amount]: ...


@dataclass(frozen=True, slots=True)
class _Row:
    values: tuple[Value, ...]
    whole_strings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Piece:
    """One of the `of` pieces of a file; an empty file has none."""

    media_type: str
    content: bytes
    of: int


class SqlLog:
    """Tables are made by the first append, so that asking for an unknown run leaves nothing behind. `within`: what
    their names begin with, so that several runs can have theirs in one database."""

    def __init__(self, sql: Sql, codec: Codec, within: str = "") -> None:
        self._sql, self._codec = sql, codec
        self._names = {table: f"{within}_{table}" if within else table for table in TABLES}
        self._quoted = {table: f'"{name}"' for table, name in self._names.items()}
        self._there = self._gone = False

    def _run(self, query: str, *values: Value) -> list[tuple[Value, ...]]:
        """`query` names tables in braces."""
        return self._sql.run(query.format(**self._quoted), *values)

    def _make(self, *tables: str) -> None:
        for table in tables:
            self._sql.run(f"create table if not exists {self._quoted[table]}({TABLES[table]})")

    def _drop(self, *tables: str) -> None:
        for table in tables:
            self._sql.run(f"drop table if exists {self._quoted[table]}")

    def exists(self) -> bool:
        """Asked before every append: once there, it is only this that erases it."""
        self._there = self._there or (not self._gone and self._has("log"))
        return self._there

    def erased(self) -> bool:
        return self._has("tombstone")

    def _has(self, table: str) -> bool:
        query = "select 1 from sqlite_master where type = 'table' and name = ?"
        return bool(self._sql.run(query, self._names[table]))

    def load(self) -> list[Record]:
        if not self.exists():
            return []
        rows = self._run("select seq, key, type, batch, life, by, at, agent, money, data, cut from {log} order by seq")
        return [self._record(cast(tuple[Any, ...], row)) for row in rows]

    def append(
        self,
        records: Sequence[Record],
        files: Sequence[StoredFile] = (),
        meta: Mapping[str, str] = MappingProxyType({}),
        sends: Sequence[Send] = (),
    ) -> None:
        rows = [self._row(record) for record in records]
        out = [_outgoing(send) for send in sends]
        try:
            self._sql.transaction(lambda: self._write(rows, files, meta, out))
        except Exception as error:
            if taken := self._taken(records):
                raise ValueError(f"{taken} is on record already") from error
            raise

    def _taken(self, records: Sequence[Record]) -> str | None:
        """The first of the keys or seqs that is on record already; each database says so in its own way."""
        asked = "select 1 from {log} where key = ? or seq = ?"
        return next((r.key for r in records if self.exists() and self._run(asked, r.key, r.seq)), None)

    async def durable(self) -> None:
        await self._sql.durable()

    def file(self, name: str) -> StoredFile | None:
        found = self.exists() and self._run("select media_type from {file} where name = ?", name)
        if not found:
            return None
        chunks = self._run("select content from {file_chunk} where name = ? order by number", name)
        content = b"".join(cast(bytes, chunk) for (chunk,) in chunks)
        return StoredFile(name=name, media_type=cast(str, found[0][0]), content=content)

    def files(self) -> Iterator[StoredFile]:
        """All of them, one in memory at a time."""
        for (name,) in self._run("select name from {file} order by name"):
            if file := self.file(cast(str, name)):
                yield file

    # -- files in pieces, as they go from one object to another
    def piece(self, name: str, number: int) -> Piece | None:
        found = self.exists() and self._run("select media_type from {file} where name = ?", name)
        if not found:
            return None
        pieces = int(cast(int, self._run("select count(*) from {file_chunk} where name = ?", name)[0][0]))
        content = self._run("select content from {file_chunk} where name = ? and number = ?", name, number)
        return Piece(cast(str, found[0][0]), cast(bytes, content[0][0]) if content else b"", pieces)

    def put_piece(self, name: str, number: int, piece: Piece) -> None:
        """Also before the first append: no run exists by its files alone."""
        self._make(*FILES)
        self._run("insert or replace into {file}(name, media_type) values(?, ?)", name, piece.media_type)
        if number < piece.of:
            insert = "insert or replace into {file_chunk}(name, number, content) values(?, ?, ?)"
            self._run(insert, name, number, piece.content)

    def drop_pieces(self) -> None:
        """What was put where no run came of it. Does nothing to a run that exists."""
        if not self.exists():
            self._drop(*FILES)

    def meta(self, name: str) -> str | None:
        if not self.exists():
            return None
        found = self._run("select value from {meta} where name = ?", name)
        return cast(str, found[0][0]) if found else None

    def set_meta(self, name: str, value: str) -> None:
        if not self._gone:
            self._run("insert or replace into {meta}(name, value) values(?, ?)", name, value)

    # -- the outbox
    def outbox(self) -> list[Unsent]:
        if not self._has("outbox"):
            return []
        rows = self._run("select key, destination, method, arguments, tries, due from {outbox} order by number")
        return [
            Unsent(
                send=Send(key=key, destination=to, method=method, arguments=json.loads(arguments)),
                tries=int(tries),
                due=int(due),
            )
            for key, to, method, arguments, tries, due in cast(list[tuple[Any, ...]], rows)
        ]

    def acknowledge(self, key: str) -> None:
        self._run("delete from {outbox} where key = ?", key)

    def postpone(self, key: str, due: int) -> None:
        self._run("update {outbox} set tries = tries + 1, due = ? where key = ?", due, key)

    # -- the end of it all
    def erase(self, at: int, sends: Sequence[Send] = ()) -> None:
        out = [_outgoing(send) for send in sends]
        self._sql.transaction(lambda: self._erase(at, out))
        self._there, self._gone = False, True

    def _erase(self, at: int, sends: Sequence[tuple[Value, ...]]) -> None:
        self._drop(*ERASED)
        self._make("outbox", "tombstone")
        self._run("insert into {tombstone}(at) values(?)", at)
        self._write_sends(sends)

    # -- rows
    def _write(
        self,
        rows: Sequence[_Row],
        files: Sequence[StoredFile],
        meta: Mapping[str, str],
        sends: Sequence[tuple[Value, ...]],
    ) -> None:
        if not self.exists():
            self._make(*(table for table in TABLES if table != "tombstone"))
        for name, value in meta.items():
            self.set_meta(name, value)
        for file in files:
            self._write_file(file)
        for row in rows:
            for name, text in row.whole_strings.items():
                content = text.encode("utf-8", "surrogatepass")
                self._write_file(StoredFile(name=name, media_type="text/plain; charset=utf-8", content=content))
            self._run("insert into {log} values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *row.values)
        self._write_sends(sends)

    def _write_sends(self, sends: Sequence[tuple[Value, ...]]) -> None:
        columns = "key, destination, method, arguments, tries, due"
        for values in sends:
            self._run(f"insert or ignore into {{outbox}}({columns}) values(?, ?, ?, ?, 0, 0)", *values)

    def _write_file(self, file: StoredFile) -> None:
        self._run("insert or replace into {file}(name, media_type) values(?, ?)", file.name, file.media_type)
        self._run("delete from {file_chunk} where name = ?", file.name)
        for number, start in enumerate(range(0, len(file.content), CHUNK)):
            content = file.content[start : start + CHUNK]
            self._run("insert into {file_chunk}(name, number, content) values(?, ?, ?)", file.name, number, content)

    def _row(self, record: Record) -> _Row:
        encoded, money = self._codec.encode(record.event), _json(self._codec.encode_money(record.money))
        size = 0
        for long in (LONG, SHORT):
            data, references, whole = cut(encoded, long)
            text, where = _json(data), _json(references)
            size = sum(len(part.encode()) for part in (money, text, where, record.key)) + ROOM
            if size <= ROW_LIMIT:
                head = (record.seq, record.key, record.type, record.batch, record.life, record.by, record.at)
                return _Row((*head, record.agent, money, text, where), whole)
        raise ValueError(f"the record {record.key} ({record.type}) has {size} bytes; a row may have {ROW_LIMIT}")

    def _record(self, row: tuple[Any, ...]) -> Record:
        seq, key, kind, batch, life, by, at, agent, money, text, where = row
        data = json.loads(text)
        if where != "[]":
            restore(data, json.loads(where), self._whole_string)
        return Record(
            seq=int(seq),
            key=key,
            batch=int(batch),
            life=int(life),
            by=by,
            at=int(at),
            agent=agent,
            event=self._codec.decode(kind, data),
            money=self._codec.decode_money(json.loads(money)),
        )

    def _whole_string(self, name: str) -> str:
        file = self.file(name)
        if file is None:
            raise ValueError(f"the file {name} of a long string is missing")
        return file.content.decode("utf-8", "surrogatepass")


def _outgoing(send: Send) -> tuple[Value, ...]:
    arguments = _json(send.arguments)
    if (size := len(arguments.encode()) + ROOM) > ROW_LIMIT:
        raise ValueError(f"the send {send.key} ({send.method}) has {size} bytes; a row may have {ROW_LIMIT}")
    return send.key, send.destination, send.method, arguments


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
