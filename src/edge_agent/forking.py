"""How the records of a run get into the object of its fork: the new object pulls them, page by page.

It keeps what comes in memory and begins with all of it in one append; until then it is no run and nothing can start it.
A kill in the middle leaves nothing but pieces of files, which the object's alarm sweeps up.
"""

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from edge_agent.core.events import RunCreated
from edge_agent.core.journal import Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.loop.fork import files_of, kept, numbered, up_to
from edge_agent.loop.inbox import Inbox, known
from edge_agent.storage.sql_log import Piece, SqlLog
from edge_agent.wire.export import record_line, record_of
from edge_agent.wire.http import ForkChanges

PAGE = 500_000  # characters of records in one answer, and at least one record
LENT = ("lend_records", "lend_file")
SWEEP_MS = 600_000  # after that an object that is no run has no files either


class Objects(Protocol):
    """The objects of runs."""

    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal."""
        ...


# -- the run it comes from
def lend(journal: Journal, log: SqlLog, method: str, payload: JsonObject) -> JsonObject:
    """lend_records  {"at", "after"} -> {"at": the end of its batch, "lines": […], "next": the `after` of the next page}
    lend_file     {"name", "number"} -> {"media_type", "base64", "of": how many pieces there are} or nothing

    Raises Refusal."""
    known(journal)
    if method == "lend_records":
        return _page(up_to(journal.in_order(), int(payload["at"])), int(payload["after"]))
    piece = log.piece(str(payload["name"]), int(payload["number"]))
    if piece is None:
        return {}
    return {"media_type": piece.media_type, "base64": base64.b64encode(piece.content).decode(), "of": piece.of}


def _page(records: Sequence[Record], after: int) -> JsonObject:
    lines: list[str] = []
    size = 0
    for record in records[after:]:
        line = record_line(record)
        size += len(line)
        if lines and size > PAGE:
            break
        lines.append(line)
    last = after + len(lines)
    return {"at": len(records), "lines": lines, "next": last if last < len(records) else None}


# -- the fork
@dataclass(slots=True, kw_only=True)
class Taker:
    """Of one object, which may become a fork. `configure` makes the new run.created, and raises Refusal."""

    objects: Objects
    inbox: Inbox
    log: SqlLog
    configure: Callable[[RunCreated, ForkChanges], RunCreated]
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def fork(self, payload: JsonObject) -> None:
        """{"source": run id, "user", "at", "changes", "fingerprint", "idempotent"}. Raises Refusal.

        One at a time: two requests with one key are one fork."""
        async with self._one:
            asked: JsonObject = {"fingerprint": payload["fingerprint"], "idempotent": payload["idempotent"]}
            if self.inbox.found(**asked):
                return
            try:
                self.inbox.fork(await self._taken(payload), **asked)
            finally:
                self.log.drop_pieces()

    async def _taken(self, payload: JsonObject) -> list[Record]:
        source, changes = str(payload["source"]), ForkChanges.model_validate(payload["changes"])
        records = await self._records(source, int(payload["at"]))
        configured = self.configure(cast(RunCreated, records[0].event), changes)
        created = replace(configured, user=payload.get("user"))
        taken = kept(records, approval_changes=changes.approval is not None, limits_change=changes.limits is not None)
        for name in files_of([records[0], *taken]):
            await self._file(source, name)
        return numbered(created, source, len(records), taken, self.inbox.journal.clock.now())

    async def _records(self, source: str, at: int) -> list[Record]:
        records: list[Record] = []
        after: int | None = 0
        while after is not None:
            page = await self.objects.call(source, "lend_records", {"at": at, "after": after})
            records += [record_of(json.loads(line)) for line in page["lines"]]
            after = page["next"]
        return records

    async def _file(self, source: str, name: str) -> None:
        """Piece by piece: no more than one is in memory."""
        self._wake_for_the_sweep()
        number, of = 0, 1
        while number < of:
            answer = await self.objects.call(source, "lend_file", {"name": name, "number": number})
            if not answer:
                return
            of = int(answer["of"])
            piece = Piece(answer["media_type"], base64.b64decode(answer["base64"]), of)
            self.log.put_piece(name, number, piece)
            number += 1

    def sweep(self) -> None:
        """For the alarm of an object that is no run."""
        if self._one.locked():
            self._wake_for_the_sweep()
        else:
            self.log.drop_pieces()

    def _wake_for_the_sweep(self) -> None:
        self.inbox.driver.wake(self.inbox.journal.clock.now() + SWEEP_MS)
