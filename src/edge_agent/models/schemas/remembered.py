"""Conversions that are made once: a run asks with the same schemas in each of its rounds."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import TypeVar

from edge_agent.core.messages import JsonObject

C = TypeVar("C")
MOST = 512  # schemas of one conversion: those of some large tool servers
MAX_CHARS = 20_000  # of one that is kept; what is kept must not fill an isolate


@dataclass(frozen=True, slots=True)
class _Schema:
    """Known by what it says, in its order: that decides what comes out."""

    text: str
    said: JsonObject = field(compare=False)


def remembered(convert: Callable[[JsonObject], C]) -> Callable[[JsonObject], C]:
    """The same pure function. What it gives is shared from then on: nobody may change it."""

    @lru_cache(maxsize=MOST)
    def known(schema: _Schema) -> C:
        return convert(schema.said)

    @wraps(convert)
    def converted(schema: JsonObject) -> C:
        try:
            text = json.dumps(schema)
        except (TypeError, ValueError, RecursionError):  # no JSON, or too deep for it
            return convert(schema)
        return known(_Schema(text, schema)) if len(text) <= MAX_CHARS else convert(schema)

    return converted
