"""Schemas as each provider takes them."""

import json
from copy import deepcopy
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from edge_agent.models.schemas import (
    Converted,
    for_anthropic,
    for_anthropic_strict,
    for_google,
    for_openai,
    for_openai_strict,
    for_workers_ai,
)
from edge_agent.models.schemas.remembered import MAX_CHARS
from tests.conftest import Figure

ALL = (
    for_openai,
    for_openai_strict,
    for_anthropic,
    for_anthropic_strict,
    for_google,
    for_workers_ai,
)
STRICT = (for_openai_strict, for_anthropic_strict)
LOOSE = (for_openai, for_anthropic, for_google)

Json = dict[str, Any]


def of(**properties: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def named(convert: Any) -> str:
    return convert.__name__


# -- any schema a tool may have
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 3, "description": "A word."},
        {"type": "string", "pattern": "^a", "format": "date"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": ["string", "null"]},
        {"type": ["string", "null"], "enum": ["a", None], "default": None},
        {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
        {"type": "boolean", "title": "Flag"},
        {"enum": [1, True, "x", None]},
        {"const": "x"},
        {"const": 1, "deprecated": True},
        {"$ref": "#/$defs/name"},
        {"$ref": "#/$defs/name", "description": "Mine.", "maxLength": 2},
        {"$ref": "#/$defs/tree"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.com/schema.json"},
        {},
        True,
        {"type": "null"},
    ]
)
NAMES = st.sampled_from(["a", "b", "type", "$ref", "c d"])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Json:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    schema: Json = {"type": "object", "properties": properties}
    if draw(st.booleans()):
        schema["required"] = [name for name in properties if draw(st.booleans())]
    extra = draw(st.sampled_from([None, False, True, {"type": "integer"}]))
    return schema if extra is None else {**schema, "additionalProperties": extra}


@st.composite
def lists(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Json:
    bounds = draw(st.sampled_from([{}, {"minItems": 1}, {"minItems": 2, "maxItems": 3, "uniqueItems": True}]))
    kind = draw(st.sampled_from(["items", "tuple", "tuple7", "bare"]))
    if kind == "bare":
        return {"type": "array", **bounds}
    if kind == "items":
        return {"type": "array", "items": draw(inner), **bounds}
    forms = draw(st.lists(inner, min_size=1, max_size=2))
    if kind == "tuple7":
        return {"type": "array", "items": forms, "maxItems": len(forms)}
    return {"type": "array", "prefixItems": forms, "maxItems": len(forms)}


def either(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    forms = st.lists(inner, min_size=1, max_size=3)
    return st.tuples(st.sampled_from(["anyOf", "oneOf", "allOf"]), forms).map(lambda pair: {pair[0]: pair[1]})


ANYTHING = st.recursive(SCALARS, lambda inner: objects(inner) | lists(inner) | either(inner), max_leaves=6)
DEFINITIONS: Json = {
    "name": {"type": "string", "minLength": 1},
    "tree": {"type": "object", "properties": {"under": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}},
}
TOOLS = objects(ANYTHING).map(lambda schema: {**schema, "$defs": DEFINITIONS})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 6) | st.sampled_from([0.5, 1.0, "", "a", "x", "abcd", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)


@given(schema=TOOLS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_converted_schema_is_a_json_schema_and_converting_it_again_changes_nothing(schema: Json) -> None:
    before = deepcopy(schema)
    for convert in ALL:
        converted = convert(schema)
        assert schema == before
        Draft202012Validator.check_schema(converted.schema)
        assert converted.schema["type"] == "object"
        assert "properties" in converted.schema
        assert '"$ref": "#' not in json.dumps(converted.schema)
        again = convert(converted.schema)
        assert again.schema == converted.schema
        assert list(again.schema["properties"]) == list(schema["properties"])
        assert again.strict == converted.strict
        assert convert(schema) == converted


@given(schema=TOOLS, values=st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=8))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_what_a_schema_accepts_its_looser_form_accepts(schema: Json, values: list[Json]) -> None:
    schema = json.loads(json.dumps(schema).replace("https://example.com/schema.json", "#/$defs/nowhere"))
    schema["$defs"]["nowhere"] = {}
    original: Any = Draft202012Validator(_current(schema))
    accepted = [value for value in values if original.is_valid(value)]
    for convert in LOOSE:
        converted: Any = Draft202012Validator(convert(schema).schema)
        assert all(converted.is_valid(value) for value in accepted)


def _current(schema: Any) -> Any:
    """The lists of `items` of older drafts in the words the validator of the newest one knows."""
    if isinstance(schema, list):
        return [_current(one) for one in schema]  # pyright: ignore[reportUnknownVariableType] - JSON of any shape
    if not isinstance(schema, dict):
        return schema
    return {
        ("prefixItems" if name == "items" and isinstance(value, list) else name): _current(value)
        for name, value in schema.items()  # pyright: ignore[reportUnknownVariableType] - JSON of any shape
    }


# -- what all have in common
@pytest.mark.parametrize("convert", ALL, ids=named)
def test_an_object_without_properties_gets_empty_ones(convert: Any) -> None:
    assert convert({"type": "object"}).schema["properties"] == {}
    assert convert({}).schema["type"] == "object"


@pytest.mark.parametrize("pointer", ["#/$defs/name", "#/definitions/name", "#/properties/b", "#/$defs/a~1b%20c"])
def test_any_local_pointer_is_put_in(pointer: str) -> None:
    name = {"type": "string", "description": "A name."}
    schema = of(a={"type": "array", "items": {"$ref": pointer}}, b=name)
    schema |= {"$defs": {"name": name, "a/b c": name}, "definitions": {"name": name}}
    converted = for_openai(schema)
    assert converted.schema == of(a={"type": "array", "items": name}, b=name)
    assert not converted.warnings


@pytest.mark.parametrize("pointer", ["https://example.com/schema.json", "file:///etc/passwd", "other.json#/a", "#/x"])
def test_other_references_allow_anything_and_are_told(pointer: str) -> None:
    converted = for_openai(of(a={"$ref": pointer, "description": "What it is."}))
    assert converted.schema == of(a={"description": "What it is."})
    assert converted.warnings == (f"`a` refers to {pointer!r}, which is not in this schema (nothing is fetched)",)


def test_what_refers_to_itself_is_told_once_and_allows_anything_further_in() -> None:
    tree = of(under={"type": "array", "items": {"$ref": "#/$defs/tree"}})
    converted = for_openai({**of(root={"$ref": "#/$defs/tree"}), "$defs": {"tree": tree}})
    assert converted.schema == of(root=of(under={"type": "array", "items": {"type": "object"}}))
    assert converted.warnings == ("`root.under.items` refers to itself",)


def test_bombs_of_references_and_bottomless_schemas_end() -> None:
    bomb = {f"d{at}": {"anyOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 10} for at in range(30)}
    converted = for_openai({**of(a={"$ref": "#/$defs/d0"}), "$defs": {**bomb, "d30": {"type": "string"}}})
    assert len(json.dumps(converted.schema)) < 100_000
    assert any("too large" in warning for warning in converted.warnings)
    deep: Json = {"type": "string"}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert any("too deep" in warning for warning in for_openai(of(a=deep)).warnings)


def test_all_of_is_merged_and_what_cannot_be_joined_is_told() -> None:
    schema = {
        "allOf": [
            of(a={"type": "string", "minLength": 2}),
            {"properties": {"a": {"minLength": 3}, "b": {"type": ["integer", "null"]}}, "required": ["b"]},
            {"properties": {"b": {"type": "integer", "multipleOf": 2}}},
        ]
    }
    assert for_openai(schema).schema == of(a={"type": "string", "minLength": 3}, b={"type": "integer", "multipleOf": 2})
    patterns = for_openai(of(a={"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "z$"}]}))
    assert patterns.schema == of(a={"type": "string", "pattern": "^a"})
    assert patterns.warnings == ("`a` has two different 'pattern' at once, and the first counts",)


def test_constants_are_values_and_a_choice_of_them_is_one_list() -> None:
    choice = {"anyOf": [{"const": "a"}, {"const": "b"}], "description": "Which."}
    assert for_openai(of(a=choice)).schema == of(a={"type": "string", "description": "Which.", "enum": ["a", "b"]})


def test_several_objects_at_the_root_become_one() -> None:
    by_id = {**of(kind={"const": "id"}, id={"type": "integer"}), "additionalProperties": False}
    by_name = {**of(kind={"const": "name"}, name={"type": "string"}), "additionalProperties": False}
    converted = for_openai({"oneOf": [by_id, by_name]})
    assert converted.schema == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["id", "name"]},
            "id": {"type": "integer"},
            "name": {"type": "string"},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }
    assert converted.warnings == ("the schema is one of several objects, told as one with the properties of all",)


def test_a_negation_that_cannot_be_said_plainly_is_left_out_rather_than_said_wrongly() -> None:
    converted = for_openai(of(a={"type": "object", "not": {"$ref": "#/nowhere"}}, b={"not": {"type": "null"}}))
    assert converted.schema == of(a={"type": "object"}, b={"not": {"type": "null"}})
    assert any("`a.not`" in warning for warning in converted.warnings)


# -- strict
def test_openai_strict_requires_everything_and_allows_null_for_what_may_be_missing() -> None:
    schema = {
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "What to look for."},
            "limit": {"type": "integer", "default": 5, "minimum": 1},
            "sort": {"type": "string", "enum": ["new", "old"]},
            "near": {"anyOf": [{"type": "string"}, of(lat={"type": "number"})]},
        },
        "required": ["query"],
    }
    converted = for_openai_strict(schema)
    place = {**of(lat={"type": "number"}), "additionalProperties": False}
    assert converted.strict
    assert converted.schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for. (minLength: 1)"},
            "limit": {"type": ["integer", "null"], "minimum": 1, "description": "(default: 5)"},
            "sort": {"type": ["string", "null"], "enum": ["new", "old", None]},
            "near": {"anyOf": [{"type": "string"}, place, {"type": "null"}]},
        },
        "required": ["query", "limit", "sort", "near"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("convert", STRICT, ids=named)
@pytest.mark.parametrize(
    "inner",
    [{}, {"type": "object"}, {"type": "array"}, {"type": "object", "additionalProperties": {"type": "integer"}}],
)
def test_what_a_strict_schema_cannot_say_is_sent_without_strictness(convert: Any, inner: Json) -> None:
    converted = convert(of(a=inner))
    assert not converted.strict
    assert converted.schema == for_openai(of(a=inner)).schema


@pytest.mark.parametrize("convert", STRICT, ids=named)
def test_a_list_at_the_root_is_never_strict(convert: Any) -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert convert(schema) == Converted(schema=schema)


@given(schema=TOOLS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_a_strict_schema_closes_every_object_and_types_every_value(schema: Json) -> None:
    for convert in STRICT:
        converted = convert(schema)
        if converted.strict:
            _require_strict(converted.schema, all_required=convert is for_openai_strict)


def _require_strict(schema: Json, *, all_required: bool) -> None:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        assert "type" in part or "anyOf" in part
        assert not {"oneOf", "allOf", "const", "not", "if", "prefixItems", "maxLength", "uniqueItems"} & part.keys()
        if "properties" in part:
            assert part["additionalProperties"] is False
            waiting += part["properties"].values()
            assert not all_required or part["required"] == list(part["properties"])
        assert "items" in part or "array" not in part.get("type", ())
        waiting += [part["items"]] if "items" in part else []
        waiting += part.get("anyOf", [])


def test_anthropic_strict_tells_limits_in_words() -> None:
    schema = of(
        steps={"type": "array", "items": {"type": "integer", "maximum": 3}, "minItems": 2, "maxItems": 8},
        day={"type": "string", "format": "date"},
        color={"type": "string", "format": "color", "description": "Hex."},
    )
    assert for_anthropic_strict(schema).schema["properties"] == {
        "steps": {
            "type": "array",
            "items": {"type": "integer", "description": "(maximum: 3)"},
            "description": "(minItems: 2, maxItems: 8)",
        },
        "day": {"type": "string", "format": "date"},
        "color": {"type": "string", "description": 'Hex. (format: "color")'},
    }


# -- Google and Workers AI
def test_google_takes_lists_of_values_of_text_and_numbers_and_says_null_apart() -> None:
    schema = of(a={"type": ["string", "null"], "enum": ["x", None]}, b={"enum": [True]}, c={"type": "array"})
    assert for_google(schema).schema["properties"] == {
        "a": {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "null"}]},
        "b": {"type": "boolean", "description": "(enum: [true])"},
        "c": {"type": "array"},
    }


def test_workers_ai_gets_a_type_and_a_description_for_every_property() -> None:
    schema = of(
        a={"type": "string"},
        b={"type": ["integer", "null"], "description": "How many."},
        c={"anyOf": [of(x={"type": "string"}), {"type": "null"}]},
        d={"enum": ["x", "y"]},
        e={},
    )
    assert for_workers_ai(schema).schema["properties"] == {
        "a": {"type": "string", "description": "a"},
        "b": {"type": "integer", "description": "How many. (or null)"},
        "c": {**of(x={"type": "string"}), "description": "c (or null)"},
        "d": {"type": "string", "enum": ["x", "y"], "description": "d"},
        "e": {"type": "string", "description": "e"},
    }


# -- schemas that come again
@pytest.mark.parametrize("convert", ALL, ids=named)
def test_a_schema_that_comes_again_is_not_converted_again(convert: Any) -> None:
    schema = of(a={"type": "string"}, b={"anyOf": [{"type": "integer"}, {"type": "null"}]})
    first = convert(deepcopy(schema))
    assert convert(deepcopy(schema)) is first
    turned = convert(of(b=schema["properties"]["b"], a=schema["properties"]["a"]))
    assert list(turned.schema["properties"]) == ["b", "a"]


def test_what_is_too_large_or_too_deep_to_be_kept_is_converted_all_the_same() -> None:
    large = of(a={"type": "string", "description": "x" * MAX_CHARS})
    assert for_openai(large) == for_openai(large)
    assert for_openai(large) is not for_openai(large)
    deep: Json = {"type": "string"}
    for _ in range(100_000):
        deep = {"type": "array", "items": deep}
    assert for_openai(of(a=deep)).warnings


def test_the_tools_of_a_large_server_are_converted_once_for_all_rounds(figure: Figure) -> None:
    inner = {"anyOf": [of(x={"type": "string", "minLength": 1}), {"type": "null"}], "description": "One of both."}
    schemas = [of(**{f"field{field}_{tool}": inner for field in range(8)}) for tool in range(160)]
    rounds: list[float] = []
    for _ in range(2):
        began = perf_counter()
        for schema in schemas:
            for_openai_strict(schema)
        rounds.append((perf_counter() - began) * 1000)
    figure(f"160 schemas: {rounds[0]:.0f} ms in the first round, {rounds[1]:.1f} ms in the next")
