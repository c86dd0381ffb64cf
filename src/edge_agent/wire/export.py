"""A whole log as JSON lines: a header, every record with its long strings whole, every file. Both ways."""

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast, get_args

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import By, Record, StoredFile
from edge_agent.wire.codec import decode, decode_money, encode, encode_money, timestamp

FORMAT = "edge-agent-log/1"


# -- out
def lines(run_id: str, records: Iterable[Record], files: Iterable[StoredFile]) -> Iterator[str]:
    yield _json({"format": FORMAT, "run_id": run_id})
    for record in records:
        yield record_line(record)
    for file in files:
        content = base64.b64encode(file.content).decode()
        yield _json({"file": file.name, "media_type": file.media_type, "base64": content})


def record_line(record: Record) -> str:
    return _json(
        {
            "seq": record.seq,
            "key": record.key,
            "type": record.type,
            "at": timestamp(record.at),
            "batch": record.batch,
            "life": record.life,
            "by": record.by,
            "agent": record.agent,
            "money": encode_money(record.money),
            "data": encode(record.event),
        }
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


# -- in
@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A log that was exported. `records` are at least one, gap-free from 1."""

    run_id: str
    records: tuple[Record, ...]
    files: tuple[StoredFile, ...]


def read(text: str | bytes) -> Exported:
    """JSON lines, as they were exported, or one JSON array of them.

    Raises Refusal 422 `not_a_log` naming the line that is none."""
    reading = _Reading()
    for number, line in _lines(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text):
        reading.take(number, line)
    return reading.whole()


def record_of(line: JsonObject) -> Record:
    """Raises ValueError, KeyError and TypeError for what is no record."""
    if line["by"] not in get_args(By):
        raise ValueError(f"`by` is one of {', '.join(get_args(By))}")
    return Record(
        seq=_whole(line["seq"]),
        key=_text(line["key"]),
        batch=_whole(line["batch"]),
        life=_whole(line["life"]),
        by=cast(By, line["by"]),
        at=_moment(line["at"]),
        agent=_text(line["agent"]),
        event=decode(line["type"], line["data"]),
        money=decode_money(line["money"]),
    )


class _Reading:
    def __init__(self) -> None:
        self._run_id: str | None = None
        self._records: list[Record] = []
        self._files: list[StoredFile] = []
        self._keys: set[str] = set()

    def take(self, number: int, line: Any) -> None:
        try:
            self._take(line)
        except Refusal:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise _no_log(
                f"line {number} is neither a record nor a file: {type(error).__name__}: {error}"[:600]
            ) from None

    def _take(self, line: Any) -> None:
        if not isinstance(line, dict):
            raise TypeError("a line is a JSON object")
        fields = cast(JsonObject, line)
        if self._run_id is None:
            if fields.get("format") != FORMAT:
                raise _no_log(f'the first line says {{"format": "{FORMAT}", "run_id": …}}')
            self._run_id = _text(fields["run_id"])
        elif "file" in fields:
            content = base64.b64decode(fields["base64"], validate=True)
            self._files.append(
                StoredFile(name=_text(fields["file"]), media_type=_text(fields["media_type"]), content=content)
            )
        else:
            self._add(record_of(fields))

    def _add(self, record: Record) -> None:
        expected = len(self._records) + 1
        if record.seq != expected or record.key in self._keys:
            raise ValueError(
                f"record {expected} was expected here, and each key once; this is {record.seq}, {record.key}"
            )
        if expected == 1 and record.type != "run.created":
            raise ValueError("the first record is run.created")
        self._keys.add(record.key)
        self._records.append(record)

    def whole(self) -> Exported:
        if self._run_id is None or not self._records:
            raise _no_log("it holds no record")
        if self._records[-1].batch != self._records[-1].seq:
            raise _no_log(f"it was cut off: the last batch goes on to record {self._records[-1].batch}")
        return Exported(run_id=self._run_id, records=tuple(self._records), files=tuple(self._files))


def _lines(text: bytes) -> Iterator[tuple[int, Any]]:
    """Parsed one by one, so that no more than one of them is in memory twice."""
    if text.lstrip()[:1] == b"[":
        yield from enumerate(cast("list[Any]", _parsed(1, text)), start=1)
        return
    start, number = 0, 0
    while start < len(text):
        end = text.find(b"\n", start)
        line, start = text[start : len(text) if end < 0 else end], len(text) if end < 0 else end + 1
        number += 1
        if line.strip():
            yield number, _parsed(number, line)


def _parsed(number: int, line: bytes) -> Any:
    try:
        return json.loads(line, parse_constant=_not_finite)
    except (ValueError, RecursionError) as error:
        raise _no_log(f"line {number} is not JSON: {error}") from None


def _not_finite(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _no_log(fault: str) -> Refusal:
    return Refusal(422, "not_a_log", f"This is no exported log: {fault}. Send what GET /v1/runs/{{id}}/log gives.")


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("a number that is whole and not negative was expected")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text was expected")
    return value


def _moment(value: object) -> int:
    """From ISO 8601, ms since the epoch."""
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError("a time without its zone")
    return int(moment.replace(microsecond=0).timestamp()) * 1000 + moment.microsecond // 1000
