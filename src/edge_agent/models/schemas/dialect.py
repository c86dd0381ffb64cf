"""A plain schema in what one provider takes. A word it does not take is said in the description where it is a limit,
and left out with a warning where it is more."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.schemas.keywords import BY_NAME, LIMITS, LISTS, ONE, SAID, types_of
from edge_agent.models.schemas.plain import nullable, typed

_TOLD = LIMITS | {"default", "enum"}  # words said in the description where they are not taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """keeps: the words taken. formats: the values of `format` taken; None: all.
    closed: every object lists all its properties; `strict` says when a schema cannot be said so.
    optional: how a property that may be missing is said; nullable: it is required and may be null.
    values: the types of values an `enum` may hold.
    most_min_items: the highest `minItems` taken.
    """

    keeps: frozenset[str]
    formats: frozenset[str] | None = None
    closed: bool = False
    optional: Literal["absent", "nullable"] = "absent"
    values: tuple[type, ...] | None = None
    most_min_items: int | None = None


class Narrowing:
    """Says one plain schema in a dialect.

    misfits: why it cannot be closed; empty when it can. widened: whether null was let in."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.warnings: list[str] = []
        self.misfits: list[str] = []
        self.widened = False

    def of(self, schema: JsonObject, path: str = "") -> JsonObject:
        shaped = self._shaped(schema, path)
        narrowed = {name: self._value(name, value, path) for name, value in shaped.items() if self._takes(name, value)}
        left_out = {name: value for name, value in shaped.items() if name not in narrowed}
        if told := [f"{name}: {json.dumps(left_out[name], ensure_ascii=False)}" for name in left_out if name in _TOLD]:
            said = f"({', '.join(told)})"
            narrowed["description"] = f"{narrowed['description']} {said}" if narrowed.get("description") else said
        for name, value in left_out.items():
            if name not in _TOLD | SAID and value is not True:
                self._warn(path, repr(name))
        narrowed = typed(narrowed)
        return self._closed(narrowed, shaped, path) if self._dialect.closed else narrowed

    def _shaped(self, schema: JsonObject, path: str) -> JsonObject:
        """The same or looser, in the forms of this dialect."""
        dialect = self._dialect
        shaped = _distributed(schema) if dialect.closed else schema
        if "anyOf" in schema and "anyOf" not in shaped:
            self._warn(path, "'anyOf' beside other words")
        if dialect.values is not None and type(None) not in dialect.values:
            shaped = _null_apart(shaped)
        return shaped if "prefixItems" in dialect.keeps else _one_kind_of_items(shaped)

    def _takes(self, name: str, value: Any) -> bool:
        dialect = self._dialect
        if name == "format" and dialect.formats is not None and value not in dialect.formats:
            return False
        if name == "minItems" and dialect.most_min_items is not None and value > dialect.most_min_items:
            return False
        if name == "enum" and dialect.values is not None:
            return all(type(one) in dialect.values for one in value)
        if name == "additionalProperties" and dialect.closed:
            return True  # judged by _closed
        return name in dialect.keeps

    def _value(self, name: str, value: Any, path: str) -> Any:
        if name in ONE and isinstance(value, dict):
            return self.of(cast(JsonObject, value), f"{path}.{name}" if path else name)
        if name in LISTS:
            return [self.of(item, f"{path}.{name}" if path else name) for item in cast(list[JsonObject], value)]
        if name in BY_NAME:
            of = cast(Mapping[str, JsonObject], value)
            return {key: self.of(item, f"{path}.{key}" if path else key) for key, item in of.items()}
        return value

    def _closed(self, narrowed: JsonObject, schema: JsonObject, path: str) -> JsonObject:
        kinds = types_of(narrowed)
        if not kinds and "anyOf" not in narrowed:
            self._misfit(path, "takes any value")
        if "array" in kinds and not isinstance(narrowed.get("items"), dict):
            self._misfit(path, "is a list of anything")
        if "object" not in kinds:
            return narrowed
        properties = cast(dict[str, JsonObject], narrowed.get("properties", {}))
        if schema.get("additionalProperties", not properties) is not False:
            self._misfit(path, "takes properties of any name")
        required = cast(list[str], narrowed.get("required", []))
        if not set(required) <= properties.keys():
            self._misfit(path, "requires a property that it does not describe")
        if self._dialect.optional == "nullable":
            told = {key: one if key in required else nullable(one) for key, one in properties.items()}
            self.widened = self.widened or told != properties
            properties, required = told, list(told)
        return {**narrowed, "properties": properties, "required": required, "additionalProperties": False}

    def _warn(self, path: str, what: str) -> None:
        self.warnings.append(f"{f'`{path}`' if path else 'the schema'} has {what}, which this provider does not take")

    def _misfit(self, path: str, what: str) -> None:
        self.misfits.append(f"{f'`{path}`' if path else 'the schema'} {what}")


def _distributed(schema: JsonObject) -> JsonObject:
    """`anyOf` alone, with what stands beside it in each branch; without it where there is too much beside it."""
    beside = {name: value for name, value in schema.items() if name != "anyOf" and name not in SAID}
    if "anyOf" not in schema or not beside:
        return schema
    if beside.keys() - {"type"} - LIMITS:
        return _without(schema, "anyOf")
    said = {name: value for name, value in schema.items() if name in SAID}
    return {**said, "anyOf": [{**beside, **branch} for branch in cast(list[JsonObject], schema["anyOf"])]}


def _one_kind_of_items(schema: JsonObject) -> JsonObject:
    """A list whose items differ by place as one whose items are any of these; their number is kept."""
    if "prefixItems" not in schema:
        return schema
    forms = cast(list[JsonObject], schema["prefixItems"])
    rest = schema.get("items", True)
    closed = rest is False or schema.get("maxItems", len(forms) + 1) <= len(forms)
    if not closed:
        forms = [*forms, cast(JsonObject, rest)] if isinstance(rest, dict) else []
    forms = [form for at, form in enumerate(forms) if form not in forms[:at]]
    kept = {name: value for name, value in schema.items() if name not in ("prefixItems", "items")}
    if not forms:
        return kept
    return {**kept, "items": forms[0] if len(forms) == 1 else typed({"anyOf": forms})}


def _null_apart(schema: JsonObject) -> JsonObject:
    """Null as a form of its own beside values that are listed."""
    if None not in schema.get("enum", []):
        return schema
    values = [value for value in schema["enum"] if value is not None]
    said = {name: value for name, value in schema.items() if name in SAID}
    rest = {name: value for name, value in schema.items() if name not in SAID | {"type", "enum"}}
    forms: list[JsonObject] = [typed({**rest, "enum": values})] if values else []
    return {**said, "anyOf": [*forms, {"type": "null"}]} if forms else {**said, "type": "null"}


def _without(schema: JsonObject, word: str) -> JsonObject:
    return {name: value for name, value in schema.items() if name != word}
