"""A schema in its plain form: what it means, in as few words of JSON Schema as possible.

Local references are put in, `allOf` is merged, `oneOf` becomes `anyOf`, `const` an `enum`, a list of `items`
`prefixItems`; a type is named where it is meant. What is left out makes the schema looser, never narrower.
"""

from dataclasses import dataclass
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.schemas.keywords import (
    ABOUT,
    BRANCHES,
    BY_NAME,
    GROUPS,
    KNOWN,
    LISTS,
    LOWER_BOUNDS,
    NEGATING,
    NUMBERS,
    ONE,
    SAID,
    TEXTS,
    TYPES,
    UNTELLABLE,
    UPPER_BOUNDS,
    contains,
    pointed,
    type_of,
    types_of,
)

MAX_DEPTH = 100  # schemas in each other, references counted
MAX_COPIED = 2_000  # schemas that references put in; a chain of references grows exponentially


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the schema: the path for messages, how deep, and the references that are being followed."""

    path: str = ""
    depth: int = 0
    following: tuple[str, ...] = ()

    def inner(self, step: str) -> "Place":
        return Place(f"{self.path}.{step}" if self.path else step, self.depth + 1, self.following)

    def behind(self, pointer: str) -> "Place":
        return Place(self.path, self.depth + 1, (*self.following, pointer))


class Plain:
    """Makes one schema plain. `warnings` says what was loosened, in the order of the schema."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._copied = 0
        self.warnings: list[str] = []

    def schema(self) -> JsonObject:
        return self._of(self._root, Place())

    def _of(self, schema: Any, place: Place) -> JsonObject:
        if not isinstance(schema, dict):
            if schema is not True:
                self._warn(place, "is no schema that a value can fit")
            return {}
        self._copied += bool(place.following)
        if place.depth > MAX_DEPTH or self._copied > MAX_COPIED:
            self._warn(place, "is too deep or too large")
            return {}
        fields = cast(JsonObject, schema)
        plain = self._own(fields, place)
        if isinstance(pointer := fields.get("$ref"), str):
            plain = self._merged(plain, self._followed(pointer, place), place)
        for name in sorted(UNTELLABLE & fields.keys()):
            self._warn(place, f"has {name!r}, which only a validator can follow")
        for part in cast(list[Any], fields["allOf"]) if isinstance(fields.get("allOf"), list) else ():
            plain = self._merged(plain, self._of(part, place.inner("allOf")), place)
        forms = cast(list[JsonObject], plain.get("anyOf", []))
        if len(forms) == 1:
            plain = self._merged({name: value for name, value in plain.items() if name != "anyOf"}, forms[0], place)
        plain = typed(plain)
        return nullable(plain) if fields.get("nullable") is True else plain

    def _followed(self, pointer: str, place: Place) -> JsonObject:
        target = pointed(self._root, pointer)
        if target is None:
            self._warn(place, f"refers to {pointer!r}, which is not in this schema (nothing is fetched)")
            return {}
        if pointer in place.following:
            self._warn(place, "refers to itself")
            kind = cast(JsonObject, target).get("type") if isinstance(target, dict) else None
            return {"type": kind} if isinstance(kind, str) and kind in TYPES else {}
        return self._of(target, place.behind(pointer))

    def _own(self, fields: JsonObject, place: Place) -> JsonObject:
        """The node's own words, each in its plain form; words that JSON Schema does not know say nothing."""
        plain: JsonObject = {}
        for written, value in fields.items():
            name, plain_value = _renamed(written, value)
            if name not in KNOWN or name in plain:
                if name in plain:
                    self._warn(place, f"has two different {name!r}, and one counts")
                continue
            kept = self._value(name, plain_value, place)
            if kept is not None or name == "default":
                plain[name] = kept
        if "if" not in plain:
            for name in BRANCHES & plain.keys():
                del plain[name]
        return plain

    def _value(self, name: str, value: Any, place: Place) -> Any:
        """None for a value that is left out."""
        inner = place.inner(name)
        if name in ONE | NEGATING | BRANCHES:
            return self._single(name, value, inner)
        if name in LISTS and isinstance(value, list):
            return [self._of(item, inner) for item in cast(list[Any], value)] or None
        if name in BY_NAME and isinstance(value, dict):
            return {key: self._of(item, place.inner(key)) for key, item in cast(JsonObject, value).items()}
        if _is_sound(name, value):
            return value
        self._warn(place, f"has a {name!r} that is not JSON Schema")
        return None

    def _single(self, name: str, value: Any, place: Place) -> Any:
        if isinstance(value, bool) and name in ONE:
            return None if name == "items" and value else value  # any items: nothing to say
        plain = self._of(value, place)
        if name in NEGATING and plain != value:
            self._warn(place, "is said in words that cannot be made plain")
            return None
        return plain

    def _merged(self, first: JsonObject, second: JsonObject, place: Place) -> JsonObject:
        """What fits both, or looser: of two values for one word that cannot be joined the first counts."""
        both = dict(first)
        for name, value in second.items():
            group = next((group for group in GROUPS if name in group), frozenset({name}))
            if not group & first.keys():
                both[name] = value
            elif first.get(name) != value and name not in SAID:
                both[name] = self._joined(name, first.get(name), value, place)
                if both[name] is None:
                    del both[name]
        return both

    def _joined(self, name: str, one: Any, other: Any, place: Place) -> Any:
        if name == "properties":
            return self._side_by_side(cast(JsonObject, one), cast(JsonObject, other), place)
        if name == "items" and isinstance(one, dict) and isinstance(other, dict):
            return self._merged(cast(JsonObject, one), cast(JsonObject, other), place.inner("items"))
        joined = _both(name, one, other)
        if joined is None:
            self._warn(place, f"has two different {name!r} at once, and the first counts")
        return joined if joined is not None else cast(object, one)

    def _side_by_side(self, ones: JsonObject, others: JsonObject, place: Place) -> JsonObject:
        joined = dict(ones)
        for key, schema in others.items():
            joined[key] = self._merged(joined[key], schema, place.inner(key)) if key in joined else schema
        return joined

    def _warn(self, place: Place, fault: str) -> None:
        warning = f"{f'`{place.path}`' if place.path else 'the schema'} {fault}"
        if warning not in self.warnings:
            self.warnings.append(warning)


def _renamed(name: str, value: Any) -> tuple[str, Any]:
    """Older and rarer words in today's: equal or looser."""
    if name == "const":
        return "enum", [value]
    if name == "oneOf":
        return "anyOf", value
    if name == "items" and isinstance(value, list):
        return "prefixItems", cast(list[Any], value)
    return name, value


def _is_sound(name: str, value: Any) -> bool:
    if name == "type":
        kinds = cast(list[Any], value) if isinstance(value, list) else [value]
        return bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)
    if name == "required":
        return isinstance(value, list) and all(isinstance(key, str) for key in cast(list[Any], value))
    if name in ("enum", "examples"):
        return isinstance(value, list) and bool(cast(list[Any], value))
    if name in TEXTS:
        return isinstance(value, str)
    if name in NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return name not in LISTS | BY_NAME and (name != "dependentRequired" or isinstance(value, dict))


def _both(name: str, one: Any, other: Any) -> Any:
    """What two values of one word say together; None where that cannot be said in one."""
    joined: Any = None
    if name == "required":
        joined = list(dict.fromkeys([*one, *other]))
    elif name in LOWER_BOUNDS:
        joined = max(one, other)
    elif name in UPPER_BOUNDS:
        joined = min(one, other)
    elif name == "enum":
        joined = [value for value in one if contains(other, value)] or None
    elif name == "type":
        joined = _common_types(types_of({"type": one}), types_of({"type": other}))
    elif name == "additionalProperties" and (one is False or other is False):
        joined = False
    elif name == "additionalProperties" and (one is True or other is True):
        joined = one if other is True else other
    return joined


def _common_types(ones: tuple[str, ...], others: tuple[str, ...]) -> str | list[str] | None:
    """Every integer is a number."""
    common = [kind for kind in ones if kind in others or (kind == "integer" and "number" in others)]
    if "integer" in others and "number" in ones and "integer" not in common:
        common.append("integer")
    return (common if len(common) > 1 else common[0]) if common else None


def _folded(schema: JsonObject) -> JsonObject:
    """`anyOf` of nothing but values is one `enum`: some providers refuse the former."""
    forms = cast(list[JsonObject], schema.get("anyOf", []))
    if not forms or "enum" in schema or any("enum" not in form or form.keys() - {"enum", "type"} for form in forms):
        return schema
    values: list[Any] = [value for form in forms for value in form["enum"]]
    kept = {name: value for name, value in schema.items() if name != "anyOf"}
    return {**kept, "enum": [value for at, value in enumerate(values) if not contains(values[:at], value)]}


def typed(schema: JsonObject) -> JsonObject:
    """With the type that its words are about, where it names none, and without words about other types."""
    schema = _folded(schema)
    kinds = types_of(schema) or _meant(schema)
    if not kinds:
        return schema
    idle = frozenset[str]().union(*ABOUT.values()).difference(*(ABOUT.get(kind, ()) for kind in kinds))
    named: JsonObject = {} if "type" in schema else {"type": kinds[0] if len(kinds) == 1 else list(kinds)}
    return {**named, **{name: value for name, value in schema.items() if name not in idle}}


def _meant(schema: JsonObject) -> tuple[str, ...]:
    if "properties" in schema or "additionalProperties" in schema:
        return ("object",)
    if "items" in schema or "prefixItems" in schema:
        return ("array",)
    return tuple(dict.fromkeys(type_of(value) for value in schema.get("enum", [])))


def nullable(schema: JsonObject) -> JsonObject:
    """The schema, and null."""
    if "anyOf" in schema:
        forms = cast(list[JsonObject], schema["anyOf"])
        takes_null = any("null" in types_of(form) for form in forms)
        return schema if takes_null else {**schema, "anyOf": [*forms, {"type": "null"}]}
    kinds = types_of(schema)
    if not kinds or "null" in kinds:
        return schema
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **values}
