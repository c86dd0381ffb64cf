"""JSON tool mode: what such a model is asked, and what becomes of what it writes."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import AssistantMessage, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import CalledTool, CallGrew, Finished, ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from edge_agent.models.endpoint import PROFILES, Endpoint, Profile
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.openai_chat.grammar import MAX_ITEMS, grammar_schema
from edge_agent.models.openai_chat.json_answer import JsonString, JsonToolAnswer
from edge_agent.models.openai_chat.request import build
from edge_agent.models.source import Source
from tests.wire.openai_rules import check

PARAMETERS = {
    "type": "object",
    "properties": {
        "expression": {"type": "string", "description": "What to work out.", "pattern": "x+"},
        "unit": {"enum": ["m", "km"]},
    },
    "required": ["expression"],
}
CALCULATOR = ToolSpec(name="calculator", description="Works out a number.", parameters=PARAMETERS)
NOW = ToolSpec(name="now", description="The time.", parameters={"type": "object"})
QUESTION = UserMessage(text="What is 17 * 23?")
CALL = ToolCall(id="abc123def", name="calculator", arguments={"expression": "17 * 23", "digits": 2})
RESULT = ToolMessage(call_id="abc123def", name="calculator", text="391", ok=True)
JSON = Profile(tool_mode="json")
SOURCE = Source(model="test/model", host="models.example.com")


def body(profile: Profile = JSON, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"system": "Be brief.", "messages": (QUESTION,), "tools": (CALCULATOR, NOW), **more}
    at = Endpoint(provider="test", base_url="http://127.0.0.1/v1", profile=profile)
    told = build(ModelRequest(**fields), at, "m")[0]
    check(told, "small")
    return told


def forms(told: dict[str, Any]) -> list[dict[str, Any]]:
    schema = told["response_format"]["json_schema"]["schema"]
    return schema.get("anyOf", [schema])


def answered(content: str, *, finish: str = "stop", size: int = 0) -> list[ModelEvent]:
    """The events of a model that wrote this content, in one piece or in pieces of `size` characters."""
    pieces = [content[start : start + size] for start in range(0, len(content), size)] if size else [content]
    answer = JsonToolAnswer(ChatAnswer(SOURCE, provider="test"), SOURCE, ["calculator", "now"])
    events: list[ModelEvent] = []
    for piece in pieces:
        chunk = {"choices": [{"index": 0, "delta": {"content": piece}}]}
        events += answer.feed(f"data: {json.dumps(chunk)}\n\n".encode())
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    events += answer.feed(f"data: {json.dumps(end)}\n\n".encode()) + answer.end()
    return [event for event in events if not isinstance(event, CallGrew)]  # which is there to be measured only


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# -- asking
def test_tools_are_described_in_the_prompt_and_not_sent_as_tools() -> None:
    told = body()
    assert not {"tools", "tool_choice"} & told.keys()
    system = told["messages"][0]["content"]
    assert system.startswith("Be brief.\n\n")
    arguments = '{"expression": <string: What to work out.>, "unit": <"m" | "km", optional>}'
    assert f'{{"tool": "calculator", "arguments": {arguments}}}\n  Works out a number.' in system
    assert '{"tool": "now", "arguments": {}}\n  The time.' in system
    assert '{"answer": <string>}' in system


def test_the_answer_is_constrained_to_a_call_of_an_offered_tool_or_an_answer() -> None:
    first, second, answer = forms(body())
    assert first["properties"]["tool"] == {"type": "string", "enum": ["calculator"]}
    assert first["properties"]["arguments"]["required"] == ["expression"]
    assert first["required"] == ["tool", "arguments"]
    assert second["properties"]["tool"]["enum"] == ["now"]
    assert answer["properties"] == {"answer": {"type": "string"}}


@pytest.mark.parametrize(
    "profile, choice", [(JSON, "required"), (PROFILES["small"], "auto"), (PROFILES["small"], "required")]
)
def test_where_a_tool_is_required_no_answer_is_offered(profile: Profile, choice: str) -> None:
    told = body(profile, tool_choice=choice)
    assert [list(form["properties"]) for form in forms(told)] == [["tool", "arguments"]] * 2
    assert '{"answer"' not in told["messages"][0]["content"]


@pytest.mark.parametrize("more", [{"tools": ()}, {"tool_choice": "none"}])
def test_without_tools_plain_text_is_asked_for(more: dict[str, Any]) -> None:
    told = body(PROFILES["small"], **more)
    assert "response_format" not in told
    assert told["messages"][0]["content"] == "Be brief."


def test_an_output_schema_counts_where_no_tool_is_offered() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    assert body(tools=(), output_schema=schema)["response_format"]["json_schema"]["schema"] == schema


def test_the_small_profile_is_cold() -> None:
    assert body(PROFILES["small"])["temperature"] == 0


@pytest.mark.parametrize("tools", [(), (CALCULATOR,)])
def test_what_tools_said_is_told_as_prose_in_the_user_s_turn(tools: tuple[ToolSpec, ...]) -> None:
    failed = ToolMessage(call_id="x", name="now", text="no clock", ok=False)
    told = body(messages=(QUESTION, AssistantMessage(calls=(CALL,)), RESULT, failed), tools=tools)["messages"][1:]
    assert [message["role"] for message in told] == ["user"]
    content = told[0]["content"]
    assert content.startswith("What is 17 * 23?\n\n")
    assert "The tool calculator with expression = 17 * 23, digits = 2 gave: 391" in content
    assert "The tool now failed: no clock" in content
    assert "{" not in content


def test_turns_alternate_and_an_earlier_conversation_stays_one() -> None:
    earlier = (UserMessage(text="a"), AssistantMessage(text="b"))
    now = (QUESTION, AssistantMessage(text="let me", calls=(CALL,)), RESULT, UserMessage(text="and quickly"))
    messages = (*earlier, *now, AssistantMessage(text="done"), UserMessage(text="c"))
    told = body(messages=messages)["messages"][1:]
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert told[2]["content"].endswith("and quickly")
    assert told[3]["content"] == "done"


# -- the constraint
def test_a_constraint_keeps_what_grammars_can_say_and_loosens_the_rest() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "[", "format": "uri", "minLength": 3},
            "b": {"type": "array", "items": {"type": "integer"}, "maxItems": MAX_ITEMS + 1, "minItems": 1},
            "c": {"oneOf": [{"const": 1}, {"type": "null"}]},
            "d": {"allOf": [{"$ref": "#/$defs/d"}]},
            "e": {"allOf": [{}, {}]},
            "f": {"type": "object", "additionalProperties": {"type": "number"}, "properties": {}},
            "g": True,
        },
        "required": ["a", "missing"],
        "$defs": {"d": {"type": "boolean"}},
    }
    assert grammar_schema(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "c": {"anyOf": [{"const": 1}, {"type": "null"}]},
            "d": {"type": "boolean"},
            "e": {},
            "f": {"type": "object", "additionalProperties": {"type": "number"}, "properties": {}, "required": []},
            "g": {},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "pointer, found",
    [("#/$defs/a~1b", "string"), ("#/properties/x/anyOf/1", "integer"), ("#/properties/x/anyOf/9", None),
     ("#/nothing", None), ("https://example.com/schema", None), ("#/properties/x/anyOf/1/type/y", None)],
)  # fmt: skip
def test_local_references_are_put_in_and_others_allow_anything(pointer: str, found: str | None) -> None:
    root = {
        "type": "object",
        "$defs": {"a/b": {"type": "string"}},
        "properties": {"x": {"anyOf": [{}, {"type": "integer"}]}, "y": {"$ref": pointer}},
    }
    assert grammar_schema(root)["properties"]["y"] == ({"type": found} if found else {})


def test_recursive_schemas_and_bombs_are_bounded() -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    assert grammar_schema(tree)["properties"]["kids"]["items"]["properties"]["kids"]["items"] == {}
    two = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(60)}
    bomb = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": two}
    assert len(json.dumps(grammar_schema(bomb))) < 20_000
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"type": "object", "properties": {"x": deep}}
    assert len(json.dumps(grammar_schema(deep))) < 5_000
    assert grammar_schema({"$ref": "#"}) == {"type": "object"}


# -- listening
@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_a_call_becomes_an_ordinary_call(size: int) -> None:
    events = answered(' {"tool": "calculator", "arguments": {"expression": "ü \\ud83d\\ude00"}} ', size=size)
    assert events == [
        CalledTool(name="calculator", arguments='{"expression": "ü \U0001f600"}'),
        Finished(reason="tool-calls"),
    ]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
def test_the_text_of_an_answer_is_streamed_without_its_wrapping(size: int) -> None:
    text = 'He said "no" \\ yes\n\ttab / ü \U0001f600 {"tool"} end'
    for content in (json.dumps({"answer": text}), '{ "answer" :"' + json.dumps(text, ensure_ascii=False)[1:] + " } "):
        events = answered(content, size=size)
        assert text_of(events) == text
        assert events[-1] == Finished(reason="stop")
        assert size == 0 or len([event for event in events if isinstance(event, TextDelta)]) > 3


def test_an_answer_that_is_cut_keeps_what_was_said() -> None:
    events = answered('{"answer": "half of \\u00', finish="length")
    assert (text_of(events), events[-1]) == ("half of ", Finished(reason="length"))


def test_a_call_that_is_cut_is_told_as_one_and_as_cut() -> None:
    events = answered('{"tool": "calculator", "arguments": {"expr', finish="length")
    assert isinstance(events[0], CalledTool)
    assert events[0].name == "calculator"
    assert events[1] == Finished(reason="length")


def test_an_empty_answer_is_an_empty_answer() -> None:
    assert answered("") == [Finished(reason="stop")]
    assert answered('{"answer": ""}') == [Finished(reason="stop")]


def test_plain_text_of_a_server_without_constraints_is_the_answer() -> None:
    assert text_of(answered("It is 391.", size=2)) == "It is 391."


@pytest.mark.parametrize(
    "content",
    ['```json\n{"tool": "now", "arguments": {}}\n```', '{"name": "now", "arguments": {}}', '{"tool": "now"}',
     '{"tool": "now", "parameters": {}}', '{"arguments": {}, "tool": "now"}', '{"tool": "now", "arguments": "{}"}'],
)  # fmt: skip
def test_common_ways_to_write_a_call_are_understood(content: str) -> None:
    assert answered(content)[0] == CalledTool(name="now", arguments="{}")


def test_an_answer_that_is_not_the_first_key_is_found() -> None:
    assert text_of(answered('{"thought": "x", "answer": "yes"}')) == "yes"


@pytest.mark.parametrize("content", ['{"name": "Ada", "age": 3}', "{", '{"tool": 3}', '{"answer": 3}', "`{}", "{}"])
def test_json_that_is_neither_is_a_bad_answer(content: str) -> None:
    with pytest.raises(ModelError) as caught:
        answered(content)
    assert (caught.value.kind, caught.value.retryable) == ("bad-answer", True)


def test_reasoning_and_usage_pass_through() -> None:
    answer = JsonToolAnswer(ChatAnswer(SOURCE, provider="test"), SOURCE, ["now"])
    assert answer.feed(b'data: {"choices": [{"delta": {"reasoning": "hm"}}]}\n\n') == [ReasoningDelta(text="hm")]
    assert (answer.over, answer.finished) == (False, False)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 9), st.booleans())
def test_any_string_is_decoded_however_it_is_cut(text: str, size: int, ascii_only: bool) -> None:
    raw = json.dumps(text, ensure_ascii=ascii_only)[1:] + '"ignored'
    string = JsonString()
    decoded = "".join(string.feed(raw[start : start + size]) for start in range(0, len(raw), size))
    assert decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le") == text


@settings(deadline=None)
@given(st.text(alphabet='\\u"dn0839aé'))
def test_no_escape_crashes_the_decoder(raw: str) -> None:
    one, whole = JsonString(), JsonString().feed(raw)
    assert "".join(one.feed(character) for character in raw) == whole
