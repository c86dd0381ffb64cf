"""A child's record as the followers of its parent see it: with every string clipped, and not too deep."""

import json
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Record
from edge_agent.wire.codec import recorded_json

LONGEST = 4_000  # characters of a string
DEEPEST = 8
MOST = 100_000  # characters of an event as JSON; of a longer one only its head is shown
_HEAD = ("seq", "type", "run_id", "at", "agent", "key", "batch", "life", "call_id", "name", "step", "round")


def forwarded(record: Record, run_id: str) -> JsonObject:
    event: JsonObject = _clipped(json.loads(recorded_json(record, run_id)), 0)
    if len(json.dumps(event)) <= MOST:
        return event
    return {**{name: event[name] for name in _HEAD if name in event}, "clipped": True}


def _clipped(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    if not isinstance(value, dict | list):
        return value
    if depth == DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {name: _clipped(item, depth + 1) for name, item in cast("dict[str, Any]", value).items()}
    return [_clipped(item, depth + 1) for item in cast("list[Any]", value)]
