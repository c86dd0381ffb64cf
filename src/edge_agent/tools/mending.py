"""Schemas of tools that are not quite JSON Schema, mended where they come in: type names of other languages, words of
older drafts. What is JSON Schema stays as it is."""

from collections.abc import Mapping
from typing import Any, cast

from edge_agent.core.messages import JsonObject

_TYPES: Mapping[str, str] = {
    "str": "string", "text": "string", "char": "string",
    "int": "integer", "long": "integer",
    "float": "number", "double": "number", "decimal": "number",
    "bool": "boolean",
    "list": "array", "tuple": "array", "set": "array", "arraylist": "array",
    "dict": "object", "map": "object", "hashmap": "object",
    "none": "null",
}  # fmt: skip
_PROPER = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("enum", "const", "default", "examples")
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def mended(schema: JsonObject) -> JsonObject:
    """The schema with types JSON Schema knows (`any` and others it does not: no type at all), a list of what is
    required, and bounds that are numbers. Not for schemas deeper than `schema_fault` allows."""
    told = {name: _inner(name, value) for name, value in schema.items()}
    if "type" in told and (kind := _type(told.pop("type"))) is not None:
        told = {"type": kind, **told}
    for exclusive, inclusive in _BOUNDS:
        if isinstance(flag := told.get(exclusive), bool):
            del told[exclusive]
            if flag and inclusive in told:
                told[exclusive] = told.pop(inclusive)
    required = _required(schema)
    told.pop("required", None)
    return {**told, "required": required} if required else told


def _inner(name: str, value: Any) -> Any:
    if name in _VALUES:
        return value
    if isinstance(value, dict):
        of = cast(JsonObject, value)
        return {key: _part(part) for key, part in of.items()} if name in _BY_NAME else mended(of)
    return [_part(part) for part in cast(list[Any], value)] if isinstance(value, list) else value


def _part(part: Any) -> Any:
    return mended(cast(JsonObject, part)) if isinstance(part, dict) else part


def _type(kind: Any) -> Any:
    """None for any type."""
    if isinstance(kind, list):
        kinds = [proper for one in cast(list[Any], kind) if (proper := _type(one)) is not None]
        return kinds if kinds and len(kinds) == len(cast(list[Any], kind)) else None
    if not isinstance(kind, str):
        return None
    name = kind.strip().lower()
    return name if name in _PROPER else _TYPES.get(name)


def _required(schema: JsonObject) -> list[str]:
    """What the object lists, and what its properties say of themselves (draft 3)."""
    listed = schema.get("required")
    names = [name for name in cast(list[Any], listed) if isinstance(name, str)] if isinstance(listed, list) else []
    properties = schema.get("properties")
    for name, part in cast(JsonObject, properties).items() if isinstance(properties, dict) else ():
        if isinstance(part, dict) and cast(JsonObject, part).get("required") is True:
            names.append(name)
    return list(dict.fromkeys(names))
