"""A tool's schema as a constraint on what a model may write: the subset that grammar compilers (llama.cpp, vLLM) take.

What a compiler cannot express is loosened, never tightened: arguments are validated against the real schema before a
tool runs.
"""

from collections.abc import Mapping
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.schemas.keywords import pointed

MAX_DEPTH = 16
MAX_NODES = 500  # of a schema with its references put in; a chain of references grows exponentially
MAX_ITEMS = 64  # a compiler unrolls a bound on items
_KEPT = ("type", "enum", "const")


def grammar_schema(schema: JsonObject) -> JsonObject:
    """Local references are put in, because the schema becomes a part of another; recursive ones allow any value."""
    loosened = _Loosening(schema).of(schema, 0)
    return loosened if loosened.get("type") == "object" else {"type": "object"}


class _Loosening:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def of(self, schema: Any, depth: int, seen: tuple[str, ...] = ()) -> JsonObject:
        self._nodes += 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._nodes > MAX_NODES:
            return {}
        fields = cast(Mapping[str, Any], schema)
        if isinstance(pointer := fields.get("$ref"), str):
            target = None if pointer in seen else pointed(self._root, pointer)
            return self.of(target, depth + 1, (*seen, pointer))
        for name in ("anyOf", "oneOf"):
            if isinstance(forms := fields.get(name), list):
                return {"anyOf": [self.of(form, depth + 1, seen) for form in cast(list[Any], forms)]}
        if isinstance(forms := fields.get("allOf"), list):
            forms = cast(list[Any], forms)
            return self.of(forms[0], depth + 1, seen) if len(forms) == 1 else {}
        return self._plain(fields, depth, seen)

    def _plain(self, fields: Mapping[str, Any], depth: int, seen: tuple[str, ...]) -> JsonObject:
        kept = {name: fields[name] for name in _KEPT if name in fields}
        if isinstance(properties := fields.get("properties"), Mapping):
            of = cast(Mapping[str, Any], properties)
            kept["properties"] = {name: self.of(schema, depth + 1, seen) for name, schema in of.items()}
            kept["required"] = [name for name in cast(list[str], fields.get("required") or []) if name in of]
            extra: Any = fields.get("additionalProperties", False)
            kept["additionalProperties"] = self.of(extra, depth + 1, seen) if isinstance(extra, dict) else bool(extra)
        if isinstance(items := fields.get("items"), Mapping):
            kept["items"] = self.of(cast(Any, items), depth + 1, seen)
        for name in ("minItems", "maxItems"):
            if isinstance(bound := fields.get(name), int) and bound <= MAX_ITEMS:
                kept[name] = bound
        return kept
