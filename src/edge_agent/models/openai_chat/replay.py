"""Parts of an answer that only its provider understands and wants back: kept as they came."""

from typing import Any, cast

from edge_agent.core.messages import JsonObject


class Replay:
    """Collects fields of the deltas. Strings are appended; items of lists are joined where they carry an
    index (OpenRouter's reasoning_details: the text in pieces, the signature in the last), else appended.

    Thoughts are kept on their own where they go back within the text."""

    def __init__(self) -> None:
        self._fields: JsonObject = {}
        self._thoughts: list[str] = []

    def think(self, thought: str) -> None:
        """A piece of a thought that goes back within <think> tags."""
        self._thoughts.append(thought)

    def take(self, name: str, value: Any) -> None:
        """A fragment of the field of that name."""
        if isinstance(value, str):
            before = self._fields.get(name)
            self._fields[name] = (before if isinstance(before, str) else "") + value
        elif isinstance(value, list) and isinstance(items := self._fields.setdefault(name, []), list):
            for item in cast(list[Any], value):
                _join(cast(list[Any], items), item)

    def data(self) -> JsonObject:
        """What an opaque part keeps, and `put_back` reads; empty for nothing."""
        thoughts = {"thoughts": "".join(self._thoughts)} if self._thoughts else {}
        return ({"message": self._fields} if self._fields else {}) | thoughts


def put_back(message: JsonObject, data: JsonObject) -> JsonObject:
    """An assistant message of a request with what its provider wants back."""
    calls = message.get("tool_calls", [])
    extras = data.get("calls", {})
    told = [{**call, **extras.get(str(position), {})} for position, call in enumerate(calls)]
    if thoughts := data.get("thoughts"):
        message = {**message, "content": f"<think>{thoughts}</think>{message['content']}"}
    return {**message, **data.get("message", {}), **({"tool_calls": told} if told else {})}


def _join(items: list[Any], item: Any) -> None:
    """A fragment of an item known by its index and type: `text`, `summary` and `data` grow, the rest is set."""
    if not isinstance(item, dict):
        return
    fields = cast(JsonObject, item)
    index, kind = fields.get("index"), fields.get("type")
    same = next((one for one in items if (one.get("index"), one.get("type")) == (index, kind)), None)
    if index is None or same is None:
        items.append(dict(fields))
        return
    for name, value in fields.items():
        if name in ("text", "summary", "data") and isinstance(value, str):
            same[name] = (same.get(name) or "") + value
        elif value is not None:
            same[name] = value
