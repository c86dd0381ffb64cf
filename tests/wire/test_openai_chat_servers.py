"""How each server behind chat completions deviates, one answer a deviation, wherever it is cut; and what goes back.

Sources: the servers' own documentation and their issue trackers, as of 2026-11. Every text here is our own."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, ToolMessage, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Usage
from edge_agent.models.endpoint import PROFILES, Endpoint
from edge_agent.models.failures import failed_status
from edge_agent.models.openai_chat import OpenAIChat
from edge_agent.models.source import Source
from tests.conftest import Figure
from tests.wire.heard import TOOLS, Heard, assert_heard_wherever_cut
from tests.wire.openai_rules import check

Json = dict[str, Any]
USAGE = {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26}
COUNTED = Usage(input=20, output=6)
ONE = (("f", '{"x": 1}'),)
TWO = (*ONE, ("g", '{"y": 2}'))


def stream(*payloads: Json | list[Json] | str) -> bytes:
    """A text goes out as it is."""
    lines = [payload if isinstance(payload, str) else f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}


def calls(*entries: Json) -> Json:
    return {"tool_calls": list(entries)}


def call(name: str | None, arguments: Any, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def more_of(arguments: str, **more: Any) -> Json:
    return {"function": {"arguments": arguments}, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """profile: of the server. back: fields of the assistant's message in the next request; None: no opaque part."""

    profile: str = "default"
    model: str = "m"
    body: bytes
    says: Heard
    back: Json | None = None


THOUGHT = Heard(text="It is four.", reasoning="Two and two.", usage=COUNTED)
DETAIL = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
DETAILS = [{**DETAIL, "text": "Two and two.", "signature": "c2ln"}, {"type": "reasoning.encrypted", "data": "eHl6"}]
SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}

DEVIATIONS: dict[str, Deviation] = {
    "DeepSeek: null content beside reasoning_content, usage and cache hits with the finish reason": Deviation(
        profile="deepseek",
        body=stream(
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
            chunk({"content": None, "reasoning_content": "Two "}),
            chunk({"content": None, "reasoning_content": "and two."}),
            chunk({"content": "It is ", "reasoning_content": None}),
            chunk({"content": "four.", "reasoning_content": None}),
            chunk({"content": "", "reasoning_content": None}, "stop",
                  usage={**USAGE, "prompt_cache_hit_tokens": 16, "prompt_cache_miss_tokens": 4,
                         "completion_tokens_details": {"reasoning_tokens": 4}}),
        ),
        says=Heard(text="It is four.", reasoning="Two and two.",
                   usage=Usage(input=20, cached=16, output=6, reasoning=4),
                   kept={"message": {"reasoning_content": "Two and two."}}),
        back={"reasoning_content": "Two and two."},
    ),
    "xAI: a proxy leaves the index of calls out, reasoning is counted apart": Deviation(
        profile="xai",
        body=stream(
            chunk({"reasoning_content": "Both."}),
            chunk(calls(call("f", '{"x": 1}', id="call_a"), call("g", '{"y": 2}', id="call_b")), "tool_calls"),
            {"choices": [],
             "usage": {**USAGE, "total_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 4}}},
        ),
        says=Heard(reasoning="Both.", calls=TWO, usage=Usage(input=20, output=10, reasoning=4), finish="tool-calls"),
    ),
    "Groq: reasoning with a channel, usage in x_groq": Deviation(
        profile="groq",
        body=stream(
            chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            chunk({"reasoning": "Two ", "channel": "analysis"}),
            chunk({"reasoning": "and two.", "channel": "analysis"}),
            chunk({"content": "It is four."}), chunk({}, "stop", x_groq={"id": "req_1", "usage": USAGE}),
        ),
        says=THOUGHT,
    ),
    "Groq: a tool call that failed to parse, in mid-stream": Deviation(
        profile="groq",
        body=stream(
            chunk({"content": "I "}),
            'event: error\ndata: {"error": {"message": "Failed to call a function.", "type": "invalid_request_error",'
            ' "code": "tool_use_failed", "failed_generation": "{"}}\n\n',
        ),
        says=Heard(error=("bad-answer", True)),
    ),
    "OpenRouter: comments, details that go back, usage beside a choice": Deviation(
        profile="openrouter",
        body=stream(
            ": OPENROUTER PROCESSING\n\n", ": OPENROUTER PROCESSING\n\n",
            chunk({"content": "", "reasoning": "Two ", "reasoning_details": [{**DETAIL, "text": "Two "}]}),
            chunk({"content": "", "reasoning": "and two.", "reasoning_details": [{**DETAIL, "text": "and two."}]}),
            chunk({"content": "", "reasoning_details": [{**DETAIL, "text": "", "signature": "c2ln"}, DETAILS[1]]}),
            chunk({"content": "It is four."}),
            {"choices": [{"index": 0, "delta": {"content": ""},
                          "finish_reason": "stop", "native_finish_reason": "end"}]},
            chunk({"content": ""}, usage={**USAGE, "cost": 0.0001}),
        ),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=COUNTED,
                   kept={"message": {"reasoning_details": DETAILS}}),
        back={"reasoning_details": DETAILS},
    ),
    "OpenRouter: an error beside choices and usage, after the finish reason": Deviation(
        profile="openrouter",
        body=stream(
            chunk({"content": "It"}), chunk({"content": ""}, "length"),
            chunk({"content": ""}, "length", usage=USAGE, error={"code": 400, "message": "Token limit reached"}),
        ),
        says=Heard(error=("bad-request", False)),
    ),
    "vLLM: reasoning as it is called now": Deviation(
        profile="vllm",
        body=stream(chunk({"reasoning": "Two and two."}), chunk({"content": "It is four."}), chunk({}, "stop"),
                    {"choices": [], "usage": USAGE}),
        says=THOUGHT,
    ),
    "vLLM: reasoning as it was called before": Deviation(
        profile="vllm",
        body=stream(chunk({"reasoning_content": "Two and two."}), chunk({"content": "It is four."}), chunk({}, "stop"),
                    {"choices": [], "usage": USAGE}),
        says=THOUGHT,
    ),
    "llama-server: timings, and usage after the finish reason": Deviation(
        profile="llama-server",
        body=stream(
            chunk({"role": "assistant", "content": None}), chunk({"reasoning_content": "Two and two."}),
            chunk({"content": "It is four."}, timings={"predicted_n": 5, "predicted_ms": 0.2}), chunk({}, "stop"),
            {"choices": [], "usage": USAGE, "timings": {"prompt_n": 20}},
        ),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=COUNTED,
                   kept={"message": {"reasoning_content": "Two and two."}}),
        back={"reasoning_content": "Two and two."},
    ),
    "Ollama: whole calls, all at index 0": Deviation(
        profile="ollama",
        body=stream(
            chunk({"role": "assistant", "content": "", "reasoning": "Both."}),
            chunk({"content": "", **calls(call("f", '{"x": 1}', id="call_1a", index=0))}),
            chunk({"content": "", **calls(call("g", '{"y": 2}', id="call_2b", index=0))}),
            chunk({"content": ""}, "stop"),
        ),
        says=Heard(reasoning="Both.", calls=TWO, finish="tool-calls"),
    ),
    "Ollama: an older one without an index": Deviation(
        profile="ollama",
        body=stream(chunk(calls(call("f", '{"x": 1}', id="call_1a"))),
                    chunk(calls(call("g", '{"y": 2}', id="call_2b"))), chunk({"content": ""}, "stop")),
        says=Heard(calls=TWO, finish="tool-calls"),
    ),
    "Mistral: content in parts, null for no calls, cached tokens by another name": Deviation(
        profile="mistral",
        body=stream(
            chunk({"role": "assistant", "content": "", "tool_calls": None}),
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Two and two."}]}]}),
            chunk({"content": [{"type": "text", "text": "It is "}]}), chunk({"content": "four.", "tool_calls": None}),
            chunk({"content": ""}, "stop", usage={**USAGE, "num_cached_tokens": 16}),
        ),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=Usage(input=20, cached=16, output=6)),
    ),
    "Mistral: whole calls without a type in one chunk": Deviation(
        profile="mistral",
        body=stream(
            chunk({"content": "", "tool_calls": [
                {"id": "Xk3bT849a", "function": {"name": "f", "arguments": '{"x": 1}'}, "index": 0},
                {"id": "Xk3bT849b", "function": {"name": "g", "arguments": '{"y": 2}'}, "index": 1}]},
                "tool_calls", usage=USAGE),
        ),
        says=Heard(calls=TWO, usage=COUNTED, finish="tool-calls"),
    ),
    'Mistral: a proxy says "null" for an id': Deviation(
        profile="mistral",
        body=stream(chunk(calls(call("f", '{"x": 1}', id="null"), call("g", '{"y": 2}', id="null")), "tool_calls")),
        says=Heard(calls=TWO, finish="tool-calls"),
    ),
    "Fireworks: id, type and name again in each piece": Deviation(
        profile="fireworks",
        body=stream(
            *(chunk(calls(call("f", piece, id="call_a", index=0))) for piece in ("", '{"x"', ": 1}")),
            *(chunk(calls(call("g", piece, id="call_b", index=1))) for piece in ('{"y": ', "2}")),
            chunk({}, "tool_calls", usage=USAGE),
        ),
        says=Heard(calls=TWO, usage=COUNTED, finish="tool-calls"),
    ),
    "LocalAI: one call at several indexes": Deviation(
        body=stream(
            chunk(calls(call("f", "", id="call_a", index=0))), chunk(calls(more_of('{"x"', id="call_a", index=1))),
            chunk(calls(more_of(": 1}", id="call_a", index=2))), chunk({}, "tool_calls"),
        ),
        says=Heard(calls=ONE, finish="tool-calls"),
    ),
    "Z.ai: no finish reason on the way, a role in every delta, details of usage at the end": Deviation(
        profile="zai",
        model="glm-5",
        body=stream(
            *({"id": "z", "choices": [{"index": 0, "delta": {"role": "assistant", **delta}}]} for delta in (
                {"reasoning_content": "Two "}, {"reasoning_content": "and two."}, {"content": "It is four."})),
            chunk({"role": "assistant", "content": ""}, "stop",
                  usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 8},
                         "completion_tokens_details": {"reasoning_tokens": 3}}),
        ),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=Usage(input=20, cached=8, output=6, reasoning=3),
                   kept={"message": {"reasoning_content": "Two and two."}}),
        back={"reasoning_content": "Two and two."},
    ),
    "Cerebras: GLM's reasoning goes back within tags": Deviation(
        profile="cerebras",
        model="zai-glm-4.7",
        body=stream(chunk({"reasoning": "Two "}), chunk({"reasoning": "and two."}), chunk({"content": "It is four."}),
                    chunk({}, "stop", usage=USAGE)),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=COUNTED, kept={"thoughts": "Two and two."}),
        back={"content": "<think>Two and two.</think>It is four."},
    ),
    "Cerebras: the reasoning of other models does not go back": Deviation(
        profile="cerebras",
        model="gpt-oss-120b",
        body=stream(chunk({"reasoning": "Two and two."}), chunk({"content": "It is four."}, "stop", usage=USAGE)),
        says=THOUGHT,
    ),
    "Gemini compat: calls without index and id, a signature that goes back, hidden thinking": Deviation(
        profile="gemini",
        model="gemini-3-flash",
        body=stream(
            chunk({"role": "assistant", **calls(call("f", '{"x": 1}', id="", **SIGNED), call("g", '{"y": 2}', id=""))}),
            chunk({}, "stop", usage={"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 40}),
        ),
        says=Heard(calls=TWO, usage=Usage(input=20, output=20, reasoning=14), kept={"calls": {"0": SIGNED}},
                   finish="tool-calls"),
        back=SIGNED,
    ),
    "Gemini compat: an error in a list": Deviation(
        profile="gemini",
        body=stream([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}]),
        says=Heard(error=("overloaded", True)),
    ),
    "Moonshot: usage within the choice": Deviation(
        profile="moonshot",
        body=stream(
            chunk({"reasoning_content": "Two and two."}), chunk({"content": "It is four."}),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}], "usage": USAGE},
        ),
        says=Heard(text="It is four.", reasoning="Two and two.", usage=COUNTED,
                   kept={"message": {"reasoning_content": "Two and two."}}),
        back={"reasoning_content": "Two and two."},
    ),
    # -- what no server is alone with
    "a text, and a call in three pieces with a closing one of nulls": Deviation(
        body=stream(
            chunk({"role": "assistant", "content": "", "refusal": None}, usage=None), chunk({"content": "One 😀"}),
            chunk(calls(call("f", "", id="call_a", index=0))), chunk(calls(more_of('{"x"', index=0))),
            chunk(calls(more_of(": 1}", index=0))),
            chunk(calls({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": ""}})),
            chunk({}, "tool_calls"), {"choices": [], "usage": USAGE},
        ),
        says=Heard(text="One 😀", calls=ONE, usage=COUNTED, finish="tool-calls"),
    ),
    "usage on every chunk": Deviation(
        body=stream(
            *(chunk({"content": word}, usage={"prompt_tokens": 20, "completion_tokens": at, "total_tokens": 20 + at})
              for at, word in enumerate(("It ", "is ", "four."), start=4)),
            chunk({}, "stop", usage=USAGE),
        ),
        says=Heard(text="It is four.", usage=COUNTED),
    ),
    "a document in place of a stream": Deviation(
        body=json.dumps({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": None, "reasoning_content": "Both.", **calls(
                call("f", '{"x": 1}', id="call_a"), call("g", {"y": 2}, id="call_b"))}}], "usage": USAGE}).encode(),
        says=Heard(reasoning="Both.", calls=TWO, usage=COUNTED, finish="tool-calls"),
    ),
    "a stream that breaks off": Deviation(
        body=stream(chunk({"content": "It"}), chunk(calls(call("f", '{"x": 1}', id="call_a", index=0))))[:-14],
        says=Heard(error=("truncated", True)),
    ),
}  # fmt: skip


def at(profile: str) -> Endpoint:
    return Endpoint(provider="test", base_url="https://models.example.com/v1", profile=PROFILES[profile])


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_server_is_understood_wherever_its_answer_is_cut(name: str) -> None:
    one = DEVIATIONS[name]
    assert_heard_wherever_cut(OpenAIChat(), at(one.profile), one.model, one.body, one.says)


def test_every_server_that_deviates_has_its_answer(figure: Figure) -> None:
    servers = {name.partition(":")[0] for name in DEVIATIONS if ":" in name}
    assert len(servers) == 14
    cuts = sum(len(one.body) + 1 for one in DEVIATIONS.values())
    figure(f"{len(DEVIATIONS)} deviations of {len(servers)} servers, each cut at every byte: {cuts} cuts")


@pytest.mark.parametrize("name", [name for name, one in DEVIATIONS.items() if one.says.error is None])
def test_what_a_server_wants_back_it_gets_and_no_other_does(name: str) -> None:
    one = DEVIATIONS[name]
    assert gets_back(one, "test") == (one.back is not None)
    assert not gets_back(one, "elsewhere")


def gets_back(one: Deviation, provider: str) -> bool:
    """Whether the next request holds what is to go back to that provider; it keeps to the rules either way."""
    parts = () if one.says.kept is None else (OpaquePart(provider=provider, data=one.says.kept),)
    told = tuple(
        ToolCall(id=f"call0000{number}", name=name, arguments=json.loads(arguments))
        for number, (name, arguments) in enumerate(one.says.calls)
    )
    said = AssistantMessage(text=one.says.text, calls=told, opaque=parts)
    results = [ToolMessage(call_id=call.id, name=call.name, text="done", ok=True) for call in told]
    request = ModelRequest(system="", messages=(UserMessage(text="hi"), said, *results), tools=TOOLS)
    body = OpenAIChat().call(request, at(one.profile), one.model).body
    check(body, one.profile)
    message = body["messages"][1]
    first_call: Json = message["tool_calls"][0] if told else {}
    return one.back is not None and all((first_call | message).get(name) == value for name, value in one.back.items())


@pytest.mark.parametrize(
    "profile, status, body, kind, retryable",
    [
        ("groq", 400, {"error": {"message": "Failed to call a function.", "type": "invalid_request_error",
                                 "code": "tool_use_failed", "failed_generation": "{"}}, "bad-answer", True),
        ("openrouter", 429, {"error": {"code": 429, "message": "Provider returned error", "metadata": {
            "provider_name": "Somebody", "raw": "slow down"}}, "user_id": "u"}, "rate-limited", True),
        ("gemini", 400, [{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}],
         "bad-request", False),
        ("gemini", 429, [{"error": {"code": 429, "message": "Later.", "status": "RESOURCE_EXHAUSTED"}}],
         "rate-limited", True),
    ],
)  # fmt: skip
def test_a_server_s_refusal_is_understood(profile: str, status: int, body: Any, kind: str, retryable: bool) -> None:
    error = failed_status(Source.of(at(profile), "m"), status, {}, json.dumps(body).encode())
    assert (error.kind, error.retryable) == (kind, retryable)


def test_moonshot_is_not_told_that_a_tool_is_required() -> None:
    request = ModelRequest(system="", messages=(UserMessage(text="hi"),), tools=TOOLS, tool_choice="required")
    body = OpenAIChat().call(request, at("moonshot"), "kimi").body
    check(body, "moonshot")
    assert "tool_choice" not in body
    assert OpenAIChat().call(request, at("default"), "m").body["tool_choice"] == "required"


def test_z_ai_keeps_thoughts_from_round_to_round() -> None:
    request = ModelRequest(system="", messages=(UserMessage(text="hi"),), thinking="high")
    body = OpenAIChat().call(request, at("zai"), "glm-5").body
    assert body["thinking"] == {"type": "enabled", "clear_thinking": False}
    check(body, "zai")
