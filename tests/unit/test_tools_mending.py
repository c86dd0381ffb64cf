"""Schemas of tools that are not quite JSON Schema."""

from typing import Any

import pytest

from edge_agent.tools.mending import mended


@pytest.mark.parametrize(
    "kind, proper",
    [
        ("dict", {"type": "object"}),
        ("float", {"type": "number"}),
        ("tuple", {"type": "array"}),
        ("any", {}),
        ("String", {"type": "string"}),
        ("INTEGER", {"type": "integer"}),
        ("whatever", {}),
        (["str", "null"], {"type": ["string", "null"]}),
        (["str", "any"], {}),
        (3, {}),
    ],
)
def test_names_of_types_become_those_of_json_schema(kind: Any, proper: dict[str, Any]) -> None:
    assert mended({"type": kind}) == proper
    assert mended({"properties": {"type": {"type": kind}}}) == {"properties": {"type": proper}}
    assert mended({"anyOf": [{"items": {"type": kind}}]}) == {"anyOf": [{"items": proper}]}


def test_what_is_json_schema_stays_as_it_is() -> None:
    schema = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["dict", "float"], "default": "dict"},
            "at": {"type": "array", "prefixItems": [{"type": "number"}, True], "exclusiveMinimum": 3},
            "of": {"const": {"type": "float"}},
        },
        "required": ["type"],
        "additionalProperties": False,
        "$defs": {"x": {"$ref": "#/properties/type"}},
    }
    assert mended(schema) == schema


def test_what_properties_say_of_themselves_is_required_of_the_object() -> None:
    schema = {"properties": {"a": {"type": "str", "required": True}, "b": {"required": False}}, "required": True}
    assert mended(schema) == {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]}


def test_bounds_of_older_drafts_are_numbers() -> None:
    assert mended({"minimum": 1, "exclusiveMinimum": True}) == {"exclusiveMinimum": 1}
    assert mended({"maximum": 1, "exclusiveMaximum": False}) == {"maximum": 1}
