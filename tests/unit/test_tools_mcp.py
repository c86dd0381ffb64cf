"""The pure parts of the MCP tools: names, schemas, results."""

import base64
import re
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent import ConfigError, McpServer, OAuth, ToolError
from edge_agent.core.tooling import Answers
from edge_agent.tools.json_schema import SchemaCheck, parameters, schema_fault
from edge_agent.tools.mcp_elicitation import needs_answer, responses
from edge_agent.tools.mcp_import import types
from edge_agent.tools.mcp_names import mounted
from edge_agent.tools.mcp_results import tool_output
from edge_agent.tools.names import NAME


# -- names
def test_plain_names_stay_and_strange_letters_become_underscores() -> None:
    assert mounted("docs", ["search", "a.b/c", "näh"]) == {
        "search": "docs__search",
        "a.b/c": "docs__a_b_c",
        "näh": "docs__n_h",
    }


def test_clashes_are_numbered_the_same_whatever_the_order() -> None:
    names = mounted("s", ["a.b", "a_b", "a/b"])
    assert names == {"a.b": "s__a_b_2", "a_b": "s__a_b", "a/b": "s__a_b_3"}
    assert mounted("s", ["a/b", "a.b", "a_b"]) == names


def test_a_long_name_keeps_its_head_and_gets_a_stable_end() -> None:
    long = "x" * 100
    names = mounted("server", [long, long + "y"])
    assert [len(name) for name in names.values()] == [64, 64]
    assert len(set(names.values())) == 2
    assert mounted("server", [long]) == {long: names[long]}
    assert re.fullmatch("server__x+_[0-9a-f]{8}", names[long])


@given(st.lists(st.text(max_size=90)))
def test_every_name_is_allowed_and_no_two_are_equal(originals: list[str]) -> None:
    names = mounted("my_server", originals)
    assert list(names) == list(dict.fromkeys(originals))
    assert len(set(names.values())) == len(names)
    assert all(NAME.fullmatch(name) and name.startswith("my_server__") for name in names.values())


# -- schemas
def test_a_schema_without_properties_gets_some_and_dialects_are_not_told_to_models() -> None:
    assert parameters({"type": "object"}) == {"type": "object", "properties": {}}
    assert parameters({}) == {"type": "object", "properties": {}}
    assert parameters({"properties": None, "$schema": "x"}) == {"type": "object", "properties": {}}
    kept = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}
    assert parameters(kept) == kept


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    return SchemaCheck(schema).faults(value)


def test_faults_name_the_field() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "required": ["a"],
        "additionalProperties": False,
        "$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    }
    assert faults(schema, {"a": [{"n": 1}]}) == []
    assert faults(schema, {"a": [{"n": 1}, {"n": "x"}]}) == ["`a[1].n`: 'x' is not of type 'integer'"]
    assert faults(schema, {}) == ["'a' is a required property"]
    assert faults(schema, {"a": [], "b": 1}) == ["Additional properties are not allowed ('b' was unexpected)"]


def test_an_older_dialect_is_understood() -> None:
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#/definitions/a"}},
        "definitions": {"a": {"type": "string"}},
    }
    assert faults(old, {"a": 1}) == ["`a`: 1 is not of type 'string'"]


def test_a_tree_that_refers_to_itself_by_its_members_is_checked() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}}
    assert faults(tree, {"children": [{"children": []}]}) == []
    assert faults(tree, {"children": [{"children": 1}]}) == ["`children[0].children`: 1 is not of type 'array'"]


DOUBLING: dict[str, Any] = {
    "$ref": "#/$defs/d0",
    "$defs": {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)}
    | {"d60": {"type": "string"}},
}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "nonsense"},
        {"properties": 5},
        {"patternProperties": {"^(a+)+$": {"type": "string"}}},
        DOUBLING,
    ],
)
def test_a_schema_that_cannot_be_applied_in_bounded_time_refuses_nothing(schema: dict[str, Any]) -> None:
    assert faults(schema, {"a": 1}) == []


def test_a_pattern_is_left_to_the_server() -> None:
    assert faults({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "a" * 50 + "b"}) == []


def test_a_bottomless_or_endless_schema_is_not_taken() -> None:
    deep: dict[str, Any] = {}
    for _ in range(101):
        deep = {"not": deep}
    assert schema_fault(deep) == "its schema is nested deeper than 100 levels"
    assert schema_fault({"enum": list(range(30_000))}) == "its schema has more than 20000 parts"
    assert schema_fault({"type": "object"}) is None


KEYWORDS = st.sampled_from(["type", "properties", "items", "$ref", "allOf", "not", "enum", "required", "$defs", "a"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYWORDS, inner),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYWORDS, JSON), JSON)
def test_no_schema_makes_a_check_raise(schema: dict[str, Any], value: Any) -> None:
    assert isinstance(faults(schema, value), list)
    assert parameters(schema)["type"] == "object"


# -- results
def output(*content: Any, **more: Any) -> Any:
    return tool_output(types.CallToolResult(content=list(content), **more), "draw", None)


def test_texts_are_joined_by_lines_and_a_structured_value_nobody_said_is_added() -> None:
    said = output(types.TextContent(text="a"), types.TextContent(text="b"), structured_content={"n": 1})
    assert (said.text, said.structured) == ('a\nb\n{"n": 1}', {"n": 1})
    assert output(structured_content=[1, 2]).text == "[1, 2]"
    assert output(structured_content=[1, 2]).structured is None


def test_an_empty_result_is_empty_text() -> None:
    assert output().text == ""


def test_files_of_one_name_are_told_apart_and_names_are_harmless() -> None:
    def blob(uri: str) -> types.EmbeddedResource:
        data = base64.b64encode(b"x").decode()
        return types.EmbeddedResource(resource=types.BlobResourceContents(uri=uri, blob=data, mime_type="text/x"))

    made = output(blob("file:///a/../../etc/report.pdf"), blob("file:///b/report.pdf"), blob("x://h/sp%20ace%2F..;"))
    assert [file.name for file in made.files] == ["report.pdf", "report-2.pdf", "sp_20ace_2F.._"]


def test_a_file_that_cannot_be_decoded_is_told() -> None:
    made = output(types.ImageContent(data="!", mime_type="image/png"))
    assert (made.text, made.files) == ("[image that could not be decoded, image/png]", ())


def test_a_failed_result_is_never_checked_against_the_schema() -> None:
    declared = SchemaCheck({"type": "object", "required": ["n"]})
    failed = types.CallToolResult(content=[types.TextContent(text="no")], is_error=True)
    assert tool_output(failed, "t", declared).text == "no"


# -- logins
def test_a_grant_that_needs_no_person_needs_an_issuer() -> None:
    with pytest.raises(ConfigError, match="needs a client_id and an issuer for the grant client_credentials"):
        OAuth(grant="client_credentials", client_id="agent", client_secret="SECRET")
    with pytest.raises(ConfigError, match="either a client_secret or a private_key"):
        OAuth(grant="client_credentials", client_id="agent", issuer="https://auth.example")
    with pytest.raises(ConfigError, match="an identity_provider for the grant cross_app"):
        OAuth(grant="cross_app", client_id="agent", client_secret="SECRET", issuer="https://auth.example")


def test_what_is_no_way_to_authorize_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match='is None, "oauth" or an OAuth'):
        McpServer(url="https://docs.example/mcp", auth=cast(Any, "basic"))


# -- questions of servers
def test_several_questions_of_a_server_are_one_form_and_a_model_is_not_lent_out() -> None:
    form = {"type": "object", "properties": {"n": {"type": "integer"}}}
    asked = {
        key: types.ElicitRequest(
            params=types.ElicitRequestFormParams.model_validate({"message": f"{key}?", "requestedSchema": form})
        )
        for key in ("rows", "seats")
    }
    needs = needs_answer("docs", types.InputRequiredResult(input_requests=dict(asked), request_state="s"))
    assert (needs.question, needs.requests, needs.request_state) == ("rows? seats?", ("rows", "seats"), "s")
    assert needs.schema == {
        "type": "object",
        "properties": {"rows": form, "seats": form},
        "required": ["rows", "seats"],
    }
    said = Answers.to(needs.requests, "s", "accept", {"rows": {"n": 1}, "seats": {"n": 2}})
    back, state = responses([said])
    assert back is not None
    assert [back[key].model_dump(exclude_none=True)["content"] for key in needs.requests] == [{"n": 1}, {"n": 2}]
    assert state == "s"
    lend = types.InputRequiredResult(input_requests={"m": types.ListRootsRequest()})
    with pytest.raises(ToolError, match="asks for roots/list, which this agent does not offer"):
        needs_answer("docs", lend)
