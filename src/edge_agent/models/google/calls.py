"""Function calls as Gemini writes them: whole, or with their arguments in pieces (streamFunctionCallArguments)."""

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import CalledTool
from edge_agent.models.deltas import mended

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,6})\]|\[(?:'([^'\\]+)'|"([^"\\]+)")\]""")
MAX_PATH = 1_000  # characters
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class BadCall(Exception):
    """A function call that cannot be read."""


@dataclass(slots=True, eq=False)
class _Call:
    name: str
    arguments: JsonObject = field(default_factory=dict[str, Any])
    growing: set[str] = field(default_factory=set[str])  # the paths of strings that will go on


class Calls:
    """In order. Raises BadCall."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._open: _Call | None = None
        self._fresh: list[str] = []

    def take(self, part: JsonObject) -> bool:
        """The functionCall of one part; whether it begins a call."""
        name, arguments, pieces = part.get("name"), part.get("args"), part.get("partialArgs")
        begins = self._open is None or bool(name)
        if begins:
            if not isinstance(name, str) or not name:
                raise BadCall("it has no name")
            self._open = _Call(name)
            self._calls.append(self._open)
        call = cast(_Call, self._open)
        if isinstance(arguments, dict):
            call.arguments |= cast(JsonObject, arguments)
            self._fresh.append(json.dumps(arguments, ensure_ascii=False))
        for piece in cast(list[Any], pieces) if isinstance(pieces, list) else []:
            if isinstance(piece, dict):
                self._fresh.append(_put(call, cast(JsonObject, piece)))
        if not part.get("willContinue"):
            self._open = None
        return begins

    def growth(self) -> str:
        """What the calls have grown by since this was asked last."""
        grown = "".join(self._fresh)
        self._fresh.clear()
        return mended(grown)

    def whole(self, *, cut: bool) -> list[CalledTool]:
        """Every call, for the end of the answer. One that did not end is none where the answer was `cut` by its token
        limit: half its arguments are an object too."""
        if self._open is not None and not cut:
            raise BadCall("its arguments did not end")
        return [
            CalledTool(name=mended(call.name), arguments=mended(json.dumps(call.arguments, ensure_ascii=False)))
            for call in self._calls
            if call is not self._open
        ]


def _put(call: _Call, piece: JsonObject) -> str:
    """Puts one value at its place, and says how it would be written."""
    path, kind = piece.get("jsonPath"), next((name for name in _VALUES if name in piece), None)
    if not isinstance(path, str) or kind is None:
        raise BadCall("a piece of its arguments has no path or no value")
    value = None if kind == "nullValue" else piece[kind]
    *way, last = _keys(path)
    place: Any = call.arguments
    for key, following in pairwise((*way, last)):
        place = _into(place, key, [] if isinstance(following, int) else {})
    before = _into(place, last, "") if path in call.growing else ""
    _into(place, last, None)
    call.growing.discard(path)
    if not isinstance(value, str) or not isinstance(before, str):
        place[last] = value
        return json.dumps(value)
    place[last] = before + value
    if piece.get("willContinue"):
        call.growing.add(path)
    return value


def _keys(path: str) -> list[str | int]:
    """`$.a[0].b` as its steps."""
    steps = list(_STEP.finditer(path[:MAX_PATH], 1))
    if not steps or path != "$" + "".join(step[0] for step in steps):
        raise BadCall(f"the path {path[:100]!r} is not understood")
    return [int(step[2]) if step[2] is not None else step[1] or step[3] or step[4] for step in steps]


def _into(place: Any, key: str | int, otherwise: Any) -> Any:
    """What stands at the key; `otherwise`, put there, where nothing does."""
    if isinstance(place, dict) and isinstance(key, str):
        return cast(JsonObject, place).setdefault(key, otherwise)
    if isinstance(place, list) and isinstance(key, int):
        items = cast(list[Any], place)
        if key == len(items):
            items.append(otherwise)
        if key < len(items):
            return items[key]
    raise BadCall("a piece of its arguments has no place in the rest")
