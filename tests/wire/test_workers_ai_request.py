"""What goes out to models of Workers AI, held against what their schemas demand."""

import json
import re
from itertools import takewhile
from typing import Any

import pytest

from edge_agent.core.messages import (
    AssistantMessage,
    Message,
    OpaquePart,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from edge_agent.core.model import ModelRequest, PromptCache, Thinking
from edge_agent.models.adapter import Call
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.workers_ai import WorkersAI
from tests.conftest import Figure

Json = dict[str, Any]
ENDPOINT = Endpoint(provider="@cf", base_url="https://workers-binding.ai", adapter="workers_ai", route="binding")
LLAMA, SCOUT = "meta/llama-3.3-70b-instruct-fp8-fast", "meta/llama-4-scout-17b-16e-instruct"
GLM, KIMI, OSS = "zai-org/glm-4.7-flash", "moonshotai/kimi-k2.7-code", "openai/gpt-oss-120b"
DEEPSEEK, NEW = "deepseek-ai/deepseek-v4-flash-0731", "some/model-of-tomorrow"
MODELS = (LLAMA, SCOUT, GLM, KIMI, OSS, DEEPSEEK, NEW)
ADD = ToolSpec(
    name="add",
    description="Adds.",
    parameters={
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first."},
            "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "unit": {"enum": ["m", "km"]},
            "at": {"$ref": "#/$defs/Place"},
        },
        "required": ["a"],
        "$defs": {"Place": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
)
NOW = ToolSpec(name="now", description="", parameters={"type": "object"})
CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
USER = UserMessage(text="hi")


def request(**more: Any) -> ModelRequest:
    fields: Json = {"system": "Be brief.", "messages": (USER,), "max_output_tokens": 1000, **more}
    return ModelRequest(**fields)


def call(asked: ModelRequest, model: str = LLAMA, endpoint: Endpoint = ENDPOINT) -> Call:
    return WorkersAI().call(asked, endpoint, model)


def body(asked: ModelRequest, model: str = LLAMA) -> Json:
    made = call(asked, model).body
    check(made)
    return made


def check(inputs: Json) -> None:
    """The demands of the models' published schemas that requests were seen to be refused for."""
    assert inputs["messages"]
    for message in inputs["messages"]:
        content: Any = message["content"]
        pictured: list[Json] = [] if isinstance(content, str) else content
        assert pictured or type(message["content"]) is str, "content is a string, but for images, and never null"
        assert all(part["type"] in ("text", "image_url") for part in pictured)
        assert all(part["image_url"].keys() == {"url"} for part in pictured if "image_url" in part)
        assert message["role"] in ("system", "user", "assistant", "tool")
        if message["role"] == "tool":
            assert re.fullmatch("[a-zA-Z0-9]{9}", message["tool_call_id"])
            assert message["name"]
        for made in message.get("tool_calls", []):
            assert made["type"] == "function"
            assert re.fullmatch("[a-zA-Z0-9]{9}", made["id"])
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
        assert message.get("tool_calls") != []
    assert inputs.get("tools") != []
    for tool in inputs.get("tools", []):
        assert tool["type"] == "function"
        function = tool["function"]
        assert function["name"]
        assert function["description"]
        assert function["parameters"]["type"] == "object"
        assert "$ref" not in json.dumps(function["parameters"])
        for of in function["parameters"]["properties"].values():
            assert type(of["type"]) is str
            assert type(of["description"]) is str
            assert of["description"]
    caps = [inputs[name] for name in ("max_tokens", "max_completion_tokens") if name in inputs]
    assert len(caps) == 1
    assert caps[0] > 256, "the service's own cap"
    if "response_format" in inputs or "guided_json" in inputs:
        assert inputs["stream"] is False, "JSON mode and a stream exclude each other"
    assert "model" not in inputs


def history(rounds: int, opaque: tuple[OpaquePart, ...] = ()) -> tuple[Message, ...]:
    told: list[Message] = [USER]
    for number in range(rounds):
        calls = tuple(
            ToolCall(id=f"call{number:04}{letter}", name="add", arguments={"a": number, "said": letter * 60})
            for letter in "ab"
        )
        told.append(AssistantMessage(text="" if number % 2 else "Let me see.", calls=calls, opaque=opaque))
        told += [ToolMessage(call_id=one.id, name="add", text=f"{number}" * 200, ok=True) for one in calls]
    return tuple(told)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("more", [{}, {"tools": ()}, {"output_schema": CITY, "tools": ()}, {"max_output_tokens": None}])
def test_every_request_fits_what_the_models_demand(model: str, more: Json) -> None:
    body(request(**{"messages": history(3), "tools": (ADD, NOW), **more}), model)


def test_the_plain_request_has_no_field_it_does_not_need() -> None:
    assert body(request()) == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "max_tokens": 1000,
    }
    assert body(request(), GLM) == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "max_completion_tokens": 1000,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize("model", [f"@cf/{LLAMA}", LLAMA])
def test_the_model_is_named_by_the_path(model: str) -> None:
    assert call(request(), model).path == f"/run/@cf/{LLAMA}"
    assert call(request(), "@hf/nousresearch/hermes-2-pro-mistral-7b").path.startswith("/run/@hf/")
    rest = Endpoint(provider="@cf", base_url="https://api.cloudflare.com/client/v4/accounts/abc/ai")
    assert rest.url(call(request(), model).path) == f"{rest.base_url}/run/@cf/{LLAMA}"


@pytest.mark.parametrize(
    "model, told",
    [
        (LLAMA, {"response_format": {"type": "json_schema", "json_schema": CITY}}),
        (OSS, {"response_format": {"type": "json_schema", "json_schema": CITY}}),
        (SCOUT, {"guided_json": CITY}),
        (GLM, {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": CITY}}}),
        (NEW, {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": CITY}}}),
    ],
)
def test_a_schema_goes_where_the_model_looks_for_it(model: str, told: Json) -> None:
    made = body(request(output_schema=CITY), model)
    assert told.items() <= made.items()
    assert "stream_options" not in made


@pytest.mark.parametrize("model", [LLAMA, GLM, OSS])
def test_a_tool_that_must_be_called_is_named(model: str) -> None:
    made = body(request(tools=(ADD,), tool_choice="required"), model)
    assert made["tool_choice"] == {"type": "function", "function": {"name": "add"}}
    assert body(request(tools=(ADD, NOW), tool_choice="required"), model)["tool_choice"] == "required"
    assert body(request(tools=(ADD,), tool_choice="none"), model)["tool_choice"] == "none"
    assert "tool_choice" not in body(request(tools=(ADD,)), model)


def test_history_is_strings_and_a_result_has_its_tools_name() -> None:
    told = body(request(messages=history(2)))["messages"]
    assert [message["role"] for message in told] == ["system", "user", *["assistant", "tool", "tool"] * 2]
    assert [message["content"] for message in told if message["role"] == "assistant"] == ["Let me see.", ""]
    assert told[-1]["name"] == "add"


@pytest.mark.parametrize(
    "model, thinking, fields, warned",
    [
        (GLM, None, {}, False),
        (GLM, "minimal", {"reasoning_effort": "low"}, False),
        (GLM, "xhigh", {"reasoning_effort": "high"}, False),
        (GLM, 4000, {"reasoning_effort": "medium"}, False),
        (GLM, "none", {"reasoning_effort": None, "chat_template_kwargs": {"enable_thinking": False}}, False),
        (DEEPSEEK, "medium", {"reasoning_effort": "high"}, False),
        (DEEPSEEK, "xhigh", {"reasoning_effort": "max"}, False),
        (DEEPSEEK, "none", {"reasoning_effort": "none"}, False),
        (OSS, 100, {"reasoning_effort": "low"}, False),
        (OSS, 100_000, {"reasoning_effort": "high"}, False),
        (OSS, "none", {"reasoning_effort": "low"}, True),
        (KIMI, "none", {}, True),
        (KIMI, "high", {}, True),
        (LLAMA, "high", {}, True),
        (LLAMA, "none", {}, False),
        (NEW, "low", {}, True),
    ],
)
def test_thinking_is_asked_for_in_the_models_own_words(
    model: str, thinking: Thinking | None, fields: Json, warned: bool
) -> None:
    made = call(request(thinking=thinking), model)
    words = {"reasoning_effort", "chat_template_kwargs"}
    assert {name: value for name, value in made.body.items() if name in words} == fields
    assert bool(made.warnings) is warned


def test_thoughts_go_back_to_the_model_they_came_from_and_to_no_other() -> None:
    mine = OpaquePart(provider="@cf", model=f"@cf/{GLM}", data={"message": {"reasoning": "hm"}})
    told = body(request(messages=history(1, (mine,))), GLM)["messages"]
    assert told[2]["reasoning"] == "hm"
    assert told[2]["content"] == "Let me see."
    assert "reasoning" not in body(request(messages=history(1, (mine,))), OSS)["messages"][2]


def test_requests_of_one_session_say_so() -> None:
    assert call(request(cache=PromptCache(key="run-1"))).headers["x-session-affinity"] == "run-1"
    assert "x-session-affinity" not in call(request()).headers
    own = Endpoint(provider="@cf", base_url="https://x", headers={"X-Session-Affinity": "mine"})
    assert call(request(cache=PromptCache(key="run-1")), LLAMA, own).headers["x-session-affinity"] == "mine"


def test_options_win_over_everything() -> None:
    own = Endpoint(provider="@cf", base_url="https://x", options={"temperature": 0, "seed": 1})
    made = call(request(options={"seed": 2, "max_tokens": 5}), LLAMA, own).body
    assert (made["temperature"], made["seed"], made["max_tokens"]) == (0, 2, 5)


@pytest.mark.parametrize("model", MODELS)
def test_each_request_goes_on_from_the_one_before(model: str, figure: Figure) -> None:
    """What a cache of prefixes can use: the tools, then the messages, of ten rounds."""
    mine = (OpaquePart(provider="@cf", model=f"@cf/{model}", data={"message": {"reasoning": "hm " * 20}}),)
    shares: list[float] = []
    before = ""
    for rounds in range(10):
        made = body(request(messages=history(rounds, mine), tools=(ADD, NOW), thinking="low"), model)
        now = "".join(map(canonical, [*made["tools"], *made["messages"]]))
        if before:
            shares.append(len(in_common(before, now)) / len(before))
        before = now
    figure(f"{model}: at least {min(shares):.1%} of a request is the beginning of the next")
    assert min(shares) >= 0.97


def in_common(before: str, now: str) -> str:
    """The beginning that both have."""
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
