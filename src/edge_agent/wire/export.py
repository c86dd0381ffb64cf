"""A whole log as JSON lines: a header, every record with its long strings whole, every file."""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any

from edge_agent.core.ports import Record, StoredFile
from edge_agent.wire.codec import encode, encode_money, timestamp

FORMAT = "edge-agent-log/1"


def lines(run_id: str, records: Iterable[Record], files: Iterable[StoredFile]) -> Iterator[str]:
    yield _json({"format": FORMAT, "run_id": run_id})
    for record in records:
        yield _json(
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
    for file in files:
        content = base64.b64encode(file.content).decode()
        yield _json({"file": file.name, "media_type": file.media_type, "base64": content})


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
