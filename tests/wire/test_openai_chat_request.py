"""What goes out: the body and the headers of a chat completion."""

import json
from typing import Any

import pytest

from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.asking import headers
from edge_agent.models.endpoint import PROFILES, Endpoint, Profile
from edge_agent.models.openai_chat.request import build
from tests.wire.openai_rules import check

ADD = ToolSpec(name="add", description="Adds.", parameters={"type": "object", "properties": {"a": {"type": "integer"}}})
NOW = ToolSpec(name="now", description="The time.", parameters={"type": "object"})
USER = UserMessage(text="hi")


def endpoint(profile: Profile | None = None, **more: Any) -> Endpoint:
    return Endpoint(provider="test", base_url="https://models.example.com/v1", profile=profile or Profile(), **more)


def request(**more: Any) -> ModelRequest:
    fields: dict[str, Any] = {"system": "Be brief.", "messages": (USER,), **more}
    return ModelRequest(**fields)


def body(asked: ModelRequest, profile: Profile | None = None, rules: str = "default") -> dict[str, Any]:
    """rules: those of which profile's server it has to keep."""
    told = build(asked, endpoint(profile), "m")[0]
    check(told, rules)
    return told


def test_the_plain_request_has_no_field_it_does_not_need() -> None:
    assert body(request()) == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_an_empty_system_prompt_is_left_out() -> None:
    assert body(request(system=""))["messages"] == [{"role": "user", "content": "hi"}]


def test_tools_are_functions_and_an_object_schema_has_properties() -> None:
    tools = body(request(tools=(ADD, NOW)))["tools"]
    assert tools[0]["function"] == {"name": "add", "description": "Adds.", "parameters": ADD.parameters}
    assert tools[1]["function"]["parameters"] == {"type": "object", "properties": {}}
    assert "properties" not in NOW.parameters


def test_no_tools_means_no_field_for_tools() -> None:
    assert not {"tools", "tool_choice"} & body(request(tool_choice="required")).keys()


@pytest.mark.parametrize(
    "profile, choice, told",
    [
        (Profile(), "auto", None),
        (Profile(), "none", "none"),
        (Profile(), "required", "required"),
        (PROFILES["moonshot"], "required", None),
        (Profile(auto_requires_tool=True), "auto", "required"),
        (Profile(auto_requires_tool=True), "none", "none"),
    ],
)
def test_the_tool_choice_is_told_where_the_server_takes_it(profile: Profile, choice: str, told: str | None) -> None:
    assert body(request(tools=(ADD,), tool_choice=choice), profile).get("tool_choice") == told


def test_history_holds_calls_as_well_formed_text_and_results_by_our_ids() -> None:
    calls = (
        ToolCall(id="abc123def", name="add", arguments={"a": 1, "b": "ü"}),
        ToolCall(id="abc123deg", name="now", arguments={}, malformed="{"),
    )
    results = (
        ToolMessage(call_id="abc123def", name="add", text="2", ok=True),
        ToolMessage(call_id="abc123deg", name="now", text="The arguments are malformed.", ok=False),
    )
    told = body(request(messages=(USER, AssistantMessage(calls=calls), *results), system=""))["messages"]
    functions = [call["function"] for call in told[1]["tool_calls"]]
    assert functions == [{"name": "add", "arguments": '{"a": 1, "b": "ü"}'}, {"name": "now", "arguments": "{}"}]
    assert [call["id"] for call in told[1]["tool_calls"]] == ["abc123def", "abc123deg"]
    assert told[1]["content"] == ""
    assert told[2:] == [
        {"role": "tool", "tool_call_id": "abc123def", "content": "2"},
        {"role": "tool", "tool_call_id": "abc123deg", "content": "The arguments are malformed."},
    ]


def test_an_answer_that_said_nothing_is_left_out() -> None:
    assert len(body(request(messages=(USER, AssistantMessage(), USER)))["messages"]) == 3


def test_opaque_parts_go_back_to_their_provider_only() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "s"}}}
    data = {"message": {"reasoning_content": "thought"}, "calls": {"0": extra}}
    parts = (OpaquePart(provider="test", data=data), OpaquePart(provider="other", data={"message": {"x": 1}}))
    calls = (ToolCall(id="abc123def", name="now", arguments={}),)
    answer = AssistantMessage(text="t", calls=calls, opaque=parts)
    result = ToolMessage(call_id="abc123def", name="now", text="noon", ok=True)
    told = body(request(messages=(USER, answer, result)), rules="deepseek")["messages"][-2]
    assert told["reasoning_content"] == "thought"
    assert told["content"] == "t"
    assert told["tool_calls"][0]["extra_content"] == extra["extra_content"]
    assert "x" not in told


@pytest.mark.parametrize("name, field", [("default", "max_tokens"), ("openai", "max_completion_tokens")])
def test_the_output_cap_has_the_name_of_the_profile(name: str, field: str) -> None:
    told = body(request(max_output_tokens=9), PROFILES[name])
    assert told[field] == 9
    assert len({"max_tokens", "max_completion_tokens"} & told.keys()) == 1


def test_usage_is_not_asked_for_where_it_is_refused() -> None:
    assert "stream_options" not in body(request(), Profile(include_usage=False))


def test_an_output_schema_is_a_response_format_or_words() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    told = body(request(output_schema=schema))
    assert told["response_format"] == {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    told = body(request(output_schema=schema), Profile(structured_output="prompt"))
    assert "response_format" not in told
    assert json.dumps(schema) in told["messages"][0]["content"]


def test_options_win_over_everything_and_the_endpoint_s_over_the_profile_s() -> None:
    profile = Profile(options={"temperature": 0, "seed": 1})
    own = {"temperature": 1, "max_tokens": 7, "stream": False}
    told, _ = build(request(max_output_tokens=5), endpoint(profile, options=own), "m")
    assert (told["temperature"], told["seed"], told["max_tokens"], told["stream"]) == (1, 1, 7, False)


def test_the_key_is_a_bearer_token_and_own_headers_win() -> None:
    told = headers(request(), endpoint(key="sk-1", headers={"X-Title": "mine", "Accept": "x"}))
    assert (told["authorization"], told["x-title"], told["accept"]) == ("Bearer sk-1", "mine", "x")
    assert "authorization" not in headers(request(), endpoint())


def test_metadata_goes_to_a_gateway_that_takes_it_and_to_nobody_else() -> None:
    asked = request(metadata={f"k{number}": "v" for number in range(9)})
    told = headers(asked, endpoint(metadata_header="cf-aig-metadata"))
    assert len(json.loads(told["cf-aig-metadata"])) == 5
    assert headers(asked, endpoint()) == headers(request(), endpoint())


@pytest.mark.parametrize(
    "base_url, url, host",
    [
        ("https://a.example/v1", "https://a.example/v1/chat/completions", "a.example"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions", "127.0.0.1:8080"),
        ("https://a.example", "https://a.example/chat/completions", "a.example"),
        ("https://a.example/x/chat/completions", "https://a.example/x/chat/completions", "a.example"),
        ("https://a.example/o?api-version=1", "https://a.example/o/chat/completions?api-version=1", "a.example"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1/chat/completions", "[::1]:9"),
    ],
)
def test_the_path_is_put_behind_the_base_url(base_url: str, url: str, host: str) -> None:
    one = Endpoint(provider="p", base_url=base_url)
    assert (one.url("/chat/completions"), one.host) == (url, host)


def test_a_key_and_headers_are_in_no_repr() -> None:
    assert "sk-1" not in repr(endpoint(key="sk-1", headers={"x-key": "sk-1"}))
