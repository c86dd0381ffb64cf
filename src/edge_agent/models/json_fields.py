"""What stands in a field of somebody else's JSON, where it is of the kind that is looked for."""

import math
from typing import Any, cast

from edge_agent.core.messages import JsonObject


def object_in(fields: JsonObject, name: str) -> JsonObject:
    """Empty where it is none."""
    value = fields.get(name)
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def list_in(fields: JsonObject, name: str) -> list[Any]:
    value = fields.get(name)
    return cast(list[Any], value) if isinstance(value, list) else []


def objects_in(fields: JsonObject, name: str) -> list[JsonObject]:
    """Those of a list; what else stands in it is passed over."""
    return [cast(JsonObject, one) for one in list_in(fields, name) if isinstance(one, dict)]


def count_in(fields: JsonObject, name: str) -> int | None:
    """A number of tokens, never below 0; None where it is none."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(0, int(value))
