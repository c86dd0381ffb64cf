"""Tool calls put together from their fragments, however a server cuts, numbers and names them.

The rules are those that survive every known deviation.
"""

import json
from dataclasses import dataclass, field
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import CalledTool
from edge_agent.models.deltas import mended


@dataclass(slots=True, eq=False)
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    extra: JsonObject = field(default_factory=dict[str, Any])

    @property
    def text(self) -> str:
        return "".join(self.arguments)

    @property
    def whole(self) -> bool:
        """Whether the arguments are a JSON object already; nothing but space could follow."""
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False  # the text is put together only where it may be one
        try:
            return isinstance(json.loads(self.text), dict)
        except (ValueError, RecursionError):
            return False


@dataclass(frozen=True, slots=True)
class _Fragment:
    index: int | None
    id: str
    name: str
    arguments: str
    extra: JsonObject


class ToolCalls:
    """In order of appearance. A name and an id are set once; arguments are appended."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._fresh: list[str] = []

    def __bool__(self) -> bool:
        return any(call.name or call.text for call in self._calls)

    def take(self, entries: Any) -> None:
        """The tool_calls of one delta or message. What is no list of objects says nothing."""
        named: list[_Call] = []  # by this delta
        for entry in cast(list[Any], entries) if isinstance(entries, list) else []:
            fragment = _fragment(entry)
            if fragment is None:
                continue
            call = self._call_of(fragment, named)
            if call is not None:
                self._add(call, fragment)
                if fragment.name:
                    named.append(call)

    def growth(self) -> str:
        """What the calls have grown by since this was asked last."""
        grown = "".join(self._fresh)
        self._fresh.clear()
        return grown

    def whole(self) -> list[CalledTool]:
        """Every call, for the end of the answer."""
        return [CalledTool(name=mended(call.name), arguments=mended(call.text)) for call in self._spoken()]

    def extras(self) -> JsonObject:
        """By position, what a provider wants back with a call (Gemini: extra_content with the thought's signature)."""
        return {str(position): call.extra for position, call in enumerate(self._spoken()) if call.extra}

    def _spoken(self) -> list[_Call]:
        return [call for call in self._calls if call.name or call.text]

    def _call_of(self, fragment: _Fragment, named: list[_Call]) -> _Call | None:
        """The call a fragment belongs to; None for the repetition of a whole call."""
        call = self._known(fragment)
        if call is None:
            return self._new(fragment)
        again = fragment.arguments.lstrip().startswith("{") and call.whole
        if again and _repeats(call, fragment):
            return None
        return self._new(fragment) if again or _begins(call, fragment, named) else call

    def _known(self, fragment: _Fragment) -> _Call | None:
        if fragment.index is not None and fragment.index in self._by_index:
            return self._by_index[fragment.index]
        if fragment.id:
            return next((call for call in self._calls if call.id == fragment.id), None)
        return self._calls[-1] if self._calls and fragment.index is None else None

    def _new(self, fragment: _Fragment) -> _Call:
        call = _Call()
        self._calls.append(call)
        if fragment.index is not None:
            self._by_index[fragment.index] = call
        return call

    def _add(self, call: _Call, fragment: _Fragment) -> None:
        call.id = call.id or fragment.id
        call.name = call.name or fragment.name
        call.extra.update(fragment.extra)
        if fragment.arguments:
            call.arguments.append(fragment.arguments)
            self._fresh.append(fragment.arguments)
        if fragment.index is not None:
            self._by_index.setdefault(fragment.index, call)


def _repeats(call: _Call, fragment: _Fragment) -> bool:
    """Whether a server says a whole call once more, as some do in their last chunk."""
    same = fragment.id == call.id and fragment.name in ("", call.name)
    numbered = bool(fragment.id) or fragment.index is not None
    return same and numbered and fragment.arguments.strip() == call.text.strip()


def _begins(call: _Call, fragment: _Fragment, named: list[_Call]) -> bool:
    """Whether a fragment that points at `call` begins another one: a server that gives all calls the same index, or
    none."""
    if not fragment.name or (fragment.id and fragment.id == call.id):
        return False
    if fragment.name != call.name and call.name:
        return True
    if call in named:  # two named entries in one delta are two calls
        return True
    return call.whole and (bool(fragment.id and call.id) or fragment.index is None)


def _fragment(entry: Any) -> _Fragment | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(JsonObject, entry)
    function = fields.get("function", fields)  # Workers AI's own form is flat
    function = cast(JsonObject, function) if isinstance(function, dict) else {}
    index, id_, name = fields.get("index"), fields.get("id"), function.get("name")
    extra = fields.get("extra_content")
    return _Fragment(
        index=index if isinstance(index, int) else None,
        id=id_ if isinstance(id_, str) and id_ != "null" else "",
        name=name if isinstance(name, str) else "",
        arguments=_arguments(function.get("arguments")),
        extra={"extra_content": extra} if isinstance(extra, dict) else {},
    )


def _arguments(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
