"""JSON Schema's words by what they hold, and local pointers into a schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
SAID = frozenset({"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"})
LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
NUMBERS = LOWER_BOUNDS | UPPER_BOUNDS | {"multipleOf", "minContains", "maxContains"}
TEXTS = frozenset({"title", "description", "pattern", "format", "contentEncoding", "contentMediaType"})
# Words whose value is a number, a text or a yes: they can be said in a description as well.
LIMITS = (
    LOWER_BOUNDS
    | UPPER_BOUNDS
    | {"multipleOf", "pattern", "format", "uniqueItems", "contentEncoding", "contentMediaType"}
)
ONE = frozenset({"items", "additionalProperties", "contains", "propertyNames"})
NEGATING = frozenset({"not", "if"})  # a looser schema in these makes the whole a narrower one
BRANCHES = frozenset({"then", "else"})
BY_NAME = frozenset({"properties", "patternProperties", "dependentSchemas"})
LISTS = frozenset({"anyOf", "prefixItems"})
OTHERS = frozenset({"type", "enum", "required", "minContains", "maxContains", "dependentRequired"})
KNOWN = SAID | LIMITS | ONE | NEGATING | BRANCHES | BY_NAME | LISTS | OTHERS
_OF_NUMBERS = frozenset({"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"})
# Words that say something about values of one type only.
ABOUT: Mapping[str, frozenset[str]] = {
    "object": BY_NAME
    | {"required", "additionalProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired"},
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"})
    | {"minContains", "maxContains"},
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}),
    "number": _OF_NUMBERS,
    "integer": _OF_NUMBERS,
}
# What says more about what other words have let through.
UNTELLABLE = frozenset({"$dynamicRef", "$recursiveRef", "additionalItems", "unevaluatedItems", "unevaluatedProperties"})
# Words that mean something only together: of two such groups one counts.
GROUPS = (frozenset({"if", "then", "else"}), frozenset({"contains", "minContains", "maxContains"}))


def pointed(root: object, pointer: str) -> Any:
    """What a local JSON pointer names; None for a remote or a broken one, which nothing is fetched for."""
    if not pointer.startswith("#"):
        return None
    value: Any = root
    for part in unquote(pointer[1:]).strip("/").split("/") if pointer != "#" else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = cast(Mapping[str, Any], value).get(name)
        elif isinstance(value, list) and re.fullmatch("[0-9]{1,4}", name):
            value = next(iter(cast(list[Any], value)[int(name) :]), None)
        else:
            return None
    return value


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types a schema names; empty where it names none."""
    named = schema.get("type")
    return (named,) if isinstance(named, str) else tuple(cast(list[str], named or ()))


def type_of(value: object) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def contains(values: Sequence[Any], value: object) -> bool:
    """Whether a list holds a value, as JSON sees it: true is not 1."""
    return any(one == value and isinstance(one, bool) == isinstance(value, bool) for one in values)
