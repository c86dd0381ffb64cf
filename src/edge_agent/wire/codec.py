"""Events and records as JSON, both ways."""

import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

from pydantic import TypeAdapter

from edge_agent.core.events import PassingEvent, RecordedEvent, RunCreated
from edge_agent.core.long_strings import cut
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.core.strings import in_event
from edge_agent.core.usage import Amount

_CLASSES = {
    cls.__dataclass_fields__["type"].default: cls for cls in (*get_args(RecordedEvent), *get_args(PassingEvent))
}


_KEYWORDS = {"for_": "for", "from_": "from"}  # fields that are no names in Python


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_CLASSES[kind])


def encode(event: RecordedEvent | PassingEvent) -> JsonObject:
    """The event's own fields, without its type. Those that are None are left out, but for limits: no cap is said."""
    data = _adapter(event.type).dump_python(event, mode="json", exclude_none=True)
    del data["type"]
    for name, keyword in _KEYWORDS.items():
        if name in data:
            data[keyword] = data.pop(name)
    if isinstance(event, RunCreated):
        data["limits"] = asdict(event.limits)
    return data


def decode(kind: str, data: JsonObject) -> RecordedEvent:
    """Raises KeyError for an unknown type, pydantic.ValidationError for a wrong shape."""
    named = {**data, "type": kind}
    for name, keyword in _KEYWORDS.items():
        if keyword in named:
            named[name] = named.pop(keyword)
    return _adapter(kind).validate_python(named)


def encode_money(money: dict[str, Amount]) -> JsonObject:
    return {key: {name: value for name, value in _amount(amount).items() if value} for key, amount in money.items()}


def decode_money(data: JsonObject) -> dict[str, Amount]:
    return {key: Amount(**amount) for key, amount in data.items()}


def _amount(amount: Amount) -> JsonObject:
    return {
        "input": amount.input,
        "output": amount.output,
        "reasoning": amount.reasoning,
        "tool_calls": amount.tool_calls,
        "usd": amount.usd,
    }


def timestamp(at: int) -> str:
    """ISO 8601 UTC with milliseconds, from ms since the epoch."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def recorded_json(record: Record, run_id: str) -> str:
    """A recorded event as clients see it. Long strings are cut; `cut` says where, and which file holds each whole."""
    data, references, _ = cut(encode(record.event))
    envelope: JsonObject = {
        "seq": record.seq,
        "type": record.type,
        "run_id": run_id,
        "at": timestamp(record.at),
        "agent": record.agent,
        "key": record.key,
        "batch": record.batch,
        "life": record.life,
        **data,
    }
    if record.money:
        envelope["money"] = encode_money(record.money)
    if references:
        envelope["cut"] = references
    return json.dumps(envelope, separators=(",", ":"), ensure_ascii=False)


def passing_json(event: PassingEvent, run_id: str, at: int, agent: str) -> str:
    envelope = {"type": event.type, "run_id": run_id, "at": timestamp(at), "agent": agent, **encode(event)}
    return json.dumps(envelope, separators=(",", ":"), ensure_ascii=False)


def masked(event: RecordedEvent, mask: Callable[[str], str]) -> RecordedEvent:
    """The event with `mask` applied to its free text; names, ids and the words of our own vocabulary stay."""
    return in_event(event, mask)
