"""The root of a schema: one object with properties, because providers take no other form of it for a tool."""

from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.schemas.keywords import contains, types_of
from edge_agent.models.schemas.plain import typed

_REFUSED = ("enum", "not")  # at the root, beside anyOf


def rooted(plain: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """A plain schema whose root is an object, and what was loosened. Unchanged when it means something else (a list as
    structured output)."""
    forms = cast(list[JsonObject], plain.get("anyOf", []))
    if any("object" not in (types_of(schema) or ("object",)) for schema in (plain, *forms)):
        return plain, ()
    left_out = [name for name in _REFUSED if name in plain]
    root = {name: value for name, value in plain.items() if name not in (*_REFUSED, "anyOf")}
    warnings = [f"the schema has {name!r} at its root, where it cannot be told" for name in left_out]
    if forms:
        warnings.append("the schema is one of several objects, told as one with the properties of all")
        root |= _of_all(root, forms)
    return {**root, "type": "object", "properties": root.get("properties", {})}, tuple(warnings)


def _of_all(root: JsonObject, forms: list[JsonObject]) -> JsonObject:
    """The properties of every form; required is what every form requires."""
    told: dict[str, list[JsonObject]] = {}
    for form in (root, *forms):
        for name, schema in cast(dict[str, JsonObject], form.get("properties", {})).items():
            if schema not in told.setdefault(name, []):
                told[name].append(schema)
    always: list[str] = root.get("required", [])
    common = [name for name in cast(list[str], forms[0].get("required", [])) if all(_requires(f, name) for f in forms)]
    joined: JsonObject = {"properties": {name: _either(schemas) for name, schemas in told.items()}}
    if required := list(dict.fromkeys([*always, *common])):
        joined["required"] = required
    if "additionalProperties" not in root and all(form.get("additionalProperties") is False for form in forms):
        joined["additionalProperties"] = False
    return joined


def _requires(form: JsonObject, name: str) -> bool:
    return contains(cast(list[Any], form.get("required", [])), name)


def _either(schemas: list[JsonObject]) -> JsonObject:
    return schemas[0] if len(schemas) == 1 else typed({"anyOf": schemas})
