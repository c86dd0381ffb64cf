"""What goes out: calls of the Messages API, each of which the rules of that API let pass."""

import json
from itertools import product

import pytest

from edge_agent.core.canonical import canonical
from edge_agent.core.messages import AssistantMessage, Message, OpaquePart, ToolSpec, UserMessage
from edge_agent.core.model import PromptCache
from edge_agent.models.endpoint import Profile
from tests.conftest import Figure
from tests.wire.messages_calls import (
    ADAPTIVE,
    ADD,
    ALWAYS,
    BUDGETED,
    CACHE,
    DEMANDS,
    MODELS,
    NOW,
    OLD,
    SCHEMA,
    THOUGHT,
    USER,
    WISHES,
    Json,
    body,
    call,
    calling,
    opaque,
    request,
    result,
)


def test_the_plain_request_has_no_field_it_does_not_need() -> None:
    made = call(request())
    assert made.body == {
        "model": ADAPTIVE,
        "max_tokens": 4_000,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    assert (made.path, made.warnings) == ("/messages", ())
    assert (made.headers["x-api-key"], made.headers["anthropic-version"]) == ("sk-1", "2023-06-01")
    assert "anthropic-beta" not in made.headers


def test_a_blank_system_prompt_is_left_out() -> None:
    assert "system" not in body(request(system=" "))


@pytest.mark.parametrize(
    "model, wanted, told",
    [(OLD, 20_000, 8_192), (BUDGETED, None, 64_000), (ALWAYS, 20_000, 20_000), ("glm-5", None, 8_192), ("glm-5", 9, 9)],
)
def test_the_output_cap_is_always_there_and_within_what_the_model_can_say(
    model: str, wanted: int | None, told: int
) -> None:
    assert body(request(max_output_tokens=wanted), model)["max_tokens"] == told


# -- tools
def test_tools_have_an_object_schema_with_properties() -> None:
    assert body(request(tools=(ADD, NOW)))["tools"] == [
        {"name": "add", "description": "Adds.", "input_schema": ADD.parameters},
        {"name": "now", "description": "The time.", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize(
    "model, choice, told",
    [(ADAPTIVE, "auto", None), (ADAPTIVE, "none", {"type": "none"}), (ADAPTIVE, "required", {"type": "any"}),
     (ALWAYS, "required", None)],
)  # fmt: skip
def test_the_tool_choice_is_told_where_the_model_takes_it(model: str, choice: str, told: Json | None) -> None:
    made = call(request(tools=(ADD,), tool_choice=choice), model)
    assert made.body.get("tool_choice") == told
    assert bool(made.warnings) == (model == ALWAYS)


def test_a_conversation_with_calls_names_its_tools_when_none_is_offered() -> None:
    told = body(request(messages=(USER, calling("abc123def"), result("abc123def")), tool_choice="none"))
    assert [tool["name"] for tool in told["tools"]] == ["add"]
    assert told["tool_choice"] == {"type": "none"}
    assert not {"tools", "tool_choice"} & body(request(tool_choice="required")).keys()


# -- messages
def test_the_results_of_an_answer_stand_in_one_turn_before_what_was_said_meanwhile() -> None:
    messages = (
        USER,
        calling("a1", "b2", text="Both."),
        result("b2", ok=False),
        UserMessage(text="hurry"),
        result("a1"),
    )
    told = body(request(messages=messages, tools=(ADD,)))["messages"]
    assert told[1]["content"] == [
        {"type": "text", "text": "Both."},
        {"type": "tool_use", "id": "a1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "b2", "name": "add", "input": {"a": 1}},
    ]
    assert told[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a1", "content": "2"},
        {"type": "tool_result", "tool_use_id": "b2", "content": "2", "is_error": True},
        {"type": "text", "text": "hurry"},
    ]


@pytest.mark.parametrize(
    "messages, roles",
    [((), "u"), ((USER, USER), "u"), ((USER, AssistantMessage(), USER), "u"),
     ((AssistantMessage(text="hello"), USER), "uau"), ((UserMessage(text=" "), USER), "u"),
     ((USER, AssistantMessage(text="a"), AssistantMessage(text="b"), USER), "uau"),
     ((USER, AssistantMessage(text="a"), UserMessage(text=""), AssistantMessage(text="b"), USER), "uau"),
     ((USER, calling("a1"), USER), "uau"), ((USER, calling("a1")), "uau"), ((result("z9"),), "u"),
     ((USER, calling("a1"), result("z9"), result("a1", "")), "uau")],
)  # fmt: skip
def test_turns_alternate_whatever_the_conversation_looks_like(messages: tuple[Message, ...], roles: str) -> None:
    told = body(request(messages=messages, tools=(ADD,)))["messages"]
    assert "".join(message["role"][0] for message in told) == roles


def test_a_result_whose_call_is_gone_is_told_in_words_and_a_call_without_result_says_so() -> None:
    told = body(request(messages=(USER, calling("a1"), result("z9", "lost")), tools=(ADD,)))["messages"][-1]["content"]
    assert [block["type"] for block in told] == ["tool_result", "text"]
    assert told[0]["is_error"]
    assert "lost" in told[1]["text"]


# -- structured output
@pytest.mark.parametrize(
    "model, tools, told",
    [(BUDGETED, (), None), (DEMANDS, (), {"type": "tool", "name": "answer"}),
     (DEMANDS, (ADD,), {"type": "any"})],
)  # fmt: skip
def test_a_schema_is_a_format_or_a_demanded_tool(model: str, tools: tuple[ToolSpec, ...], told: Json | None) -> None:
    asked = body(request(output_schema=SCHEMA, tools=tools), model)
    assert asked.get("tool_choice") == told
    if told is None:
        assert asked["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    else:
        assert asked["tools"][-1] == {"name": "answer", "description": "Gives the answer.", "input_schema": SCHEMA}


def test_schemas_are_told_in_the_words_the_api_takes_and_what_is_lost_is_said() -> None:
    xs: Json = {"type": "array", "items": {"type": "integer"}, "maxItems": 3}
    told = body(request(output_schema={"type": "object", "properties": {"xs": xs}}))["output_config"]["format"][
        "schema"
    ]
    assert told["additionalProperties"] is False
    assert "maxItems" not in told["properties"]["xs"]
    free: Json = {"type": "object", "additionalProperties": {"type": "integer"}}
    asked = body(request(output_schema=free))
    assert "output_config" not in asked
    assert asked["tools"][-1]["input_schema"]["additionalProperties"] == {"type": "integer"}
    either = ToolSpec(name="either", description="", parameters={"anyOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"b": {}}}
    ]})  # fmt: skip
    made = call(request(tools=(either,)))
    assert made.body["tools"][0]["input_schema"]["properties"].keys() == {"a", "b"}
    assert made.warnings[0].startswith("The tool either: ")


def test_the_answer_s_tool_takes_no_name_of_another_and_leaves_no_room_for_thinking() -> None:
    taken = ToolSpec(name="answer", description="", parameters={"type": "object"})
    made = call(request(output_schema=SCHEMA, tools=(taken,), thinking="high"), DEMANDS)
    assert [tool["name"] for tool in made.body["tools"]] == ["answer", "answer_"]
    assert made.body["thinking"] == {"type": "disabled"}
    assert "demanded" in made.warnings[0]


def test_a_schema_is_told_in_words_where_there_is_no_other_way() -> None:
    numbers: Json = {"type": "array", "items": {"type": "number"}}
    for profile, schema in ((Profile(structured_output="prompt"), SCHEMA), (Profile(), numbers)):
        told = body(request(output_schema=schema), DEMANDS, profile)
        assert json.dumps(schema) in told["system"][0]["text"]
        assert not {"output_config", "tools"} & told.keys()


# -- the cache
def marks(told: Json) -> list[Json]:
    blocks = [*told.get("system", []), *(block for message in told["messages"] for block in message["content"])]
    return [block for block in blocks if "cache_control" in block]


def test_the_system_prompt_and_the_newest_block_are_marked() -> None:
    messages = (USER, calling("a1"), result("a1"), UserMessage(text="and?"))
    told = body(request(messages=messages, tools=(ADD,), cache=CACHE))
    assert [block.get("text") for block in marks(told)] == ["Be brief.", "and?"]
    assert [block["cache_control"] for block in marks(told)] == [{"type": "ephemeral"}] * 2
    told = body(request(messages=messages, tools=(ADD,), cache=PromptCache(key="k", ttl="1h")))
    assert [block["cache_control"]["ttl"] for block in marks(told)] == ["1h", "1h"]
    assert marks(body(request(messages=messages, tools=(ADD,)))) == []


def test_options_win_over_everything_and_the_request_s_over_the_endpoint_s() -> None:
    profile = Profile(options={"temperature": 0, "top_k": 1})
    told = body(request(options={"top_k": 3}), profile=profile, options={"temperature": 1, "max_tokens": 7, "top_k": 2})
    assert (told["temperature"], told["top_k"], told["max_tokens"]) == (1, 3, 7)
    told = body(request(output_schema=SCHEMA, options={"output_config": {"effort": "max"}}))["output_config"]
    assert (told["effort"], told["format"]["type"]) == ("max", "json_schema")


def test_metadata_goes_to_a_gateway_that_takes_it_and_to_nobody_else() -> None:
    asked = request(metadata={"run": "r"})
    assert json.loads(call(asked, metadata_header="cf-aig-metadata").headers["cf-aig-metadata"]) == {"run": "r"}
    assert call(asked).headers == call(request()).headers


# -- every combination, against the rules
def histories() -> list[tuple[Message, ...]]:
    own = calling("a1", "b2", text="Let me see.", opaque=(opaque(THOUGHT, {"text": 11}, {"call": 0}, {"call": 1}),))
    foreign = OpaquePart(provider="google", model="gemini", data={"parts": [{"thoughtSignature": "x"}]})
    elsewhere = calling("c3", text="Hm.", opaque=(foreign,))
    said = AssistantMessage(text="Done.", opaque=(opaque(THOUGHT, {"text": 5}, model=ALWAYS),))
    return [
        (USER,),
        (USER, own, result("a1"), result("b2")),
        (USER, elsewhere, result("c3")),
        (USER, elsewhere, result("c3"), said, USER, own, result("a1"), result("b2", ok=False), USER),
        (USER, AssistantMessage(text="x"), USER, USER, own, result("b2"), result("a1"), calling("d4"), result("d4")),
    ]


def test_every_model_with_every_wish_and_every_history_keeps_the_rules(figure: Figure) -> None:
    count = 0
    for model, wish, history in product(MODELS, WISHES, histories()):
        for tools, choice, schema in product(((), (ADD, NOW)), ("auto", "none", "required"), (None, SCHEMA)):
            asked = request(messages=history, thinking=wish, tools=tools, tool_choice=choice, output_schema=schema,
                            cache=CACHE, include_thoughts=bool(count % 2))  # fmt: skip
            told = call(asked, model).body
            assert len(marks(told)) == 2
            count += 1
    figure(f"{count} requests, no fault")


def test_a_request_begins_with_the_one_before_it(figure: Figure) -> None:
    """Ten rounds: what a cache holds of one request is used by the next."""
    messages: list[Message] = [UserMessage(text="Add up everything. " * 20)]
    before, shares = "", list[float]()
    for number in range(10):
        asked = request(messages=tuple(messages), tools=(ADD, NOW), thinking="high", cache=CACHE)
        told = body(asked, BUDGETED)
        text = canonical([told["system"], told["tools"], *told["messages"]])
        for mark in marks(told):
            text = text.replace(f'"cache_control":{canonical(mark["cache_control"])},', "")
        common = next(
            (at for at, pair in enumerate(zip(before, text, strict=False)) if pair[0] != pair[1]), len(before)
        )
        if before:
            shares.append(common / len(before))
        before = text
        ids = (f"call{number}a", f"call{number}b")
        layout = opaque({**THOUGHT, "signature": f"sig-{number}"}, {"text": 9}, {"call": 0}, {"call": 1})
        messages += [calling(*ids, text="Let me go", opaque=(layout,)), *(result(id_, "42 " * 30) for id_ in ids)]
        if number == 5:
            messages.append(UserMessage(text="Use metres."))
    figure(f"share of a request the next one begins with: at least {min(shares):.4f} in {len(shares)} rounds")
    assert min(shares) >= 0.97
