"""Long strings of an event are kept beside its record: the record stays small, the event keeps its shape.

In the stored and sent JSON such a string is cut to its beginning, and a reference says where it was and which file
holds it whole.
"""

import hashlib
from collections.abc import Callable
from typing import Any, cast

from edge_agent.core.messages import JsonObject

LONG = 65_536  # characters
KEPT = 1_000  # characters of a long string that stay in the event

Path = list[str | int]
Reference = dict[str, Any]  # {"path": [...], "file": name, "chars": n}


def cut(data: JsonObject, long: int = LONG) -> tuple[JsonObject, list[Reference], dict[str, str]]:
    """(the data with strings longer than `long` cut, references to them, the whole strings by file name)."""
    references: list[Reference] = []
    whole: dict[str, str] = {}

    def walk(value: Any, path: Path) -> Any:
        if isinstance(value, str):
            if len(value) <= long:
                return value
            name = "text-" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:32]
            references.append({"path": path, "file": name, "chars": len(value)})
            whole[name] = value
            return value[:KEPT]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {key: walk(item, [*path, key]) for key, item in items}
        if isinstance(value, list):
            return [walk(item, [*path, index]) for index, item in enumerate(cast("list[Any]", value))]
        return value

    return walk(data, []), references, whole


def restore(data: JsonObject, references: list[Reference], read: Callable[[str], str]) -> None:
    """Puts the whole strings back, in place."""
    for reference in references:
        *way, last = reference["path"]
        holder: Any = data
        for part in way:
            holder = holder[part]
        holder[last] = read(reference["file"])
