"""Each server behind chat completions is asked in its own way, and every request keeps to the rules of the API."""

import json
from typing import Any

import pytest

from edge_agent.core.messages import AssistantMessage, Message, OpaquePart, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest, PromptCache
from edge_agent.models.adapter import Call
from edge_agent.models.endpoint import PROFILES, Endpoint
from edge_agent.models.openai_chat import OpenAIChat
from tests.conftest import Figure
from tests.wire.openai_rules import Refused, check

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (
    ToolSpec(name="weather", description="The weather.", parameters=CITY),
    ToolSpec(name="now", description="The time.", parameters={"type": "object"}),
    ToolSpec(
        name="docs__search",
        description="Searches.",
        parameters={"oneOf": [CITY, {"properties": {"limit": {"type": "integer", "default": 5}}}]},
    ),
)
THOUGHTS = (
    OpaquePart(provider="anthropic", data={"blocks": [{"type": "thinking", "thinking": "…", "signature": "s"}]}),
    OpaquePart(provider="google", data={"parts": [{"thoughtSignature": "s"}]}),
    OpaquePart(provider="test", model="another", data={"message": {"reasoning_content": "of another model"}}),
)


def round_of(number: int, opaque: tuple[OpaquePart, ...] = ()) -> tuple[Message, ...]:
    ids = [f"c{number:03}{call:05}" for call in range(2)]
    return (
        AssistantMessage(
            text="I look." if number % 2 else "",
            calls=(
                ToolCall(id=ids[0], name="weather", arguments={"city": f"Zürich {number}"}),
                ToolCall(id=ids[1], name="now", arguments={}, malformed="{"),
            ),
            opaque=opaque,
        ),
        ToolMessage(call_id=ids[0], name="weather", text="sunny " * 20, ok=True),
        ToolMessage(call_id=ids[1], name="now", text="The arguments are malformed.", ok=False),
    )


def asked(profile: str = "default", model: str = "m", **more: Any) -> Call:
    fields: dict[str, Any] = {"system": "Be brief.", "messages": (UserMessage(text="hi"),), **more}
    at = Endpoint(provider="test", base_url="https://models.example.com/v1", profile=PROFILES[profile])
    return OpenAIChat().call(ModelRequest(**fields), at, model)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("choice", ["auto", "none", "required"])
def test_a_history_that_began_elsewhere_keeps_to_the_rules_of_every_server(profile: str, choice: str) -> None:
    history = (
        UserMessage(text="hi"),
        *round_of(1, THOUGHTS),
        AssistantMessage(opaque=THOUGHTS),
        *round_of(2, THOUGHTS),
    )
    call = asked(profile, messages=history, tools=TOOLS, tool_choice=choice, max_output_tokens=99, thinking="high")
    check(call.body, profile)
    told = json.dumps(call.body["messages"], ensure_ascii=False)
    assert "of another model" not in told
    assert "signature" not in told
    assert "Zürich 2" in told


@pytest.mark.parametrize("profile", PROFILES)
def test_structured_output_keeps_to_the_rules_of_every_server(profile: str) -> None:
    optional = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    for schema in (CITY, optional, {"type": "object"}, {"$ref": "#/$defs/c", "$defs": {"c": CITY}}):
        check(asked(profile, output_schema=schema).body, profile)


def test_openai_is_held_to_schemas_that_need_no_null() -> None:
    tools = asked("openai", tools=TOOLS).body["tools"]
    assert [tool["function"].get("strict", False) for tool in tools] == [True, False, False]
    assert tools[0]["function"]["parameters"] == {**CITY, "additionalProperties": False}
    form = asked("openai", output_schema=CITY).body["response_format"]["json_schema"]
    assert form == {"name": "answer", "schema": {**CITY, "additionalProperties": False}, "strict": True}


def test_what_of_a_schema_could_not_be_told_is_a_warning_that_names_the_tool() -> None:
    loosened = "the schema is one of several objects, told as one with the properties of all"
    assert asked(tools=TOOLS).warnings == (f"In the schema of the tool docs__search, {loosened}.",)


@pytest.mark.parametrize(
    "profile, model, thinking, told",
    [
        ("openai", "gpt-5-mini", "minimal", {"reasoning_effort": "minimal"}),
        ("openai", "gpt-5.1", "none", {"reasoning_effort": "none"}),
        ("openai", "gpt-5.2", "xhigh", {"reasoning_effort": "xhigh"}),
        ("openai", "o3", 9_000, {"reasoning_effort": "high"}),
        ("openai", "gpt-4.1", "none", {}),
        ("openai", "gpt-5", None, {}),
        ("xai", "grok-3-mini", "low", {"reasoning_effort": "low"}),
        ("groq", "openai/gpt-oss-120b", "medium", {"reasoning_effort": "medium"}),
        ("gemini", "gemini-2.5-flash", "none", {"reasoning_effort": "none"}),
        ("deepseek", "deepseek-chat", "medium", {"thinking": {"type": "enabled"}}),
        ("zai", "glm-5", "none", {"thinking": {"type": "disabled"}}),
        ("moonshot", "kimi-k2.5", "high", {"thinking": {"type": "enabled"}}),
        ("vllm", "qwen3", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("ollama", "qwen3", "none", {"reasoning_effort": "none"}),
        ("openrouter", "anthropic/claude-opus-5", 2_000, {"reasoning": {"max_tokens": 2_000}}),
        ("vercel", "openai/gpt-5", "low", {"reasoning": {"effort": "low"}}),
        ("openrouter", "x/y", "none", {"reasoning": {"enabled": False}}),
    ],
)
def test_thinking_is_told_as_each_family_takes_it(
    profile: str, model: str, thinking: Any, told: dict[str, Any]
) -> None:
    body = asked(profile, model, thinking=thinking).body
    check(body, profile)
    fields = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs")
    assert {name: body[name] for name in fields if name in body} == told


@pytest.mark.parametrize(
    "profile, model, thinking, warning",
    [
        ("openai", "gpt-4.1", "high", "gpt-4.1 cannot be told to think; thinking=high was left out."),
        ("openai", "gpt-5-mini", "none", "gpt-5-mini cannot think with thinking=none; minimal was asked for instead."),
        ("openai", "o3", "xhigh", "o3 cannot think with thinking=xhigh; high was asked for instead."),
        ("default", "m", 2_000, "m cannot be told to think; thinking=2000 was left out."),
        ("xai", "grok-4", "low", "grok-4 cannot be told to think; thinking=low was left out."),
    ],
)
def test_thinking_that_is_not_taken_is_a_warning(profile: str, model: str, thinking: Any, warning: str) -> None:
    assert asked(profile, model, thinking=thinking).warnings == (warning,)


def test_thoughts_nobody_wants_are_not_asked_for_where_that_can_be_said() -> None:
    assert asked("openrouter", include_thoughts=False).body["reasoning"] == {"exclude": True}
    assert "reasoning" not in asked("openrouter").body


def test_the_key_of_the_cache_goes_to_servers_that_take_it() -> None:
    assert asked("openai", cache=PromptCache(key="run1")).body["prompt_cache_key"] == "run1"
    assert "prompt_cache_key" not in asked("openai").body
    assert "prompt_cache_key" not in asked("groq", cache=PromptCache(key="run1")).body


def test_what_was_asked_before_is_the_beginning_of_what_is_asked_next(figure: Figure) -> None:
    history: tuple[Message, ...] = (UserMessage(text="hi"),)
    before, least = "", 1.0
    for number in range(10):
        body = asked("openai", messages=history, tools=TOOLS, cache=PromptCache(key="run1")).body
        parts = {"system": body["messages"][0], "tools": body["tools"], "messages": body["messages"][1:]}
        told = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        common = next(
            (at for at, pair in enumerate(zip(before, told, strict=False)) if pair[0] != pair[1]), len(before)
        )
        least = min(least, common / len(before)) if before else least
        before, history = told, (*history, *round_of(number))
    figure(f"kept from one request to the next, at least: {least:.2%}")
    assert least >= 0.97


@pytest.mark.parametrize(
    "change, words",
    [
        ({"messages": [{"role": "tool", "tool_call_id": "abc123def", "content": "x"}]}, "a result without its call"),
        ({"messages": [{"role": "assistant", "content": ""}]}, "an empty answer"),
        ({"tools": []}, "an empty list of tools"),
        ({"thinking": {"type": "enabled"}}, "unknown fields"),
        ({"max_tokens": 1, "max_completion_tokens": 1}, "two caps"),
    ],
)
def test_the_rules_refuse_what_servers_refuse(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        check(asked().body | change)
