"""Answers of the other wires that a reader of them has to know, wherever they are cut.

Those of chat completions are in test_openai_chat_servers.py, those of Workers AI in test_workers_ai_answer.py. Every
text here is our own."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from edge_agent.core.usage import Usage
from edge_agent.models.adapter import Adapter
from edge_agent.models.anthropic import Anthropic
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.google import Google
from edge_agent.models.workers_ai import WorkersAI
from tests.conftest import Figure
from tests.wire.heard import Heard, assert_heard_wherever_cut
from tests.wire.test_workers_ai_answer import SHAPES

Json = dict[str, Any]
ADAPTERS: dict[str, tuple[Adapter, str]] = {
    "anthropic": (Anthropic(), "claude-opus-5"),
    "google": (Google(), "gemini-3-flash-preview"),
    "workers_ai": (WorkersAI(), "meta/llama-3.3-70b-instruct-fp8-fast"),
}
ONE = (("f", '{"x": 1}'),)
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}
COUNTED = Usage(input=60, cached=30, cache_write=20, output=9)
THOUGHT = {"type": "thinking", "thinking": "Two and two.", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "eHl6"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
COUNTS = {"promptTokenCount": 20, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 26}


def messages(*payloads: Json) -> bytes:
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}  \n\n" for one in payloads).encode()


def begin() -> Json:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": USAGE}}


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    told = ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *told,
        {"type": "content_block_stop", "index": index},
    ]


def thinks(index: int) -> list[Json]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in ("Two ", "and two.")]
    signed = {"type": "signature_delta", "signature": "c2ln"}
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, signed)


def says(index: int, *pieces: str) -> list[Json]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def calls(index: int) -> list[Json]:
    deltas = ({"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"x"', ": 1}"))
    return block(index, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}, *deltas)


def stops(reason: str, **more: Any) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]


def gemini(*payloads: Any) -> bytes:
    return "".join(f"data: {json.dumps(payload)}\r\n\r\n" for payload in payloads).encode()


def candidate(*parts: Json, finish: str | None = None, **more: Any) -> Json:
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    return {"candidates": [{**content, "index": 0, **({"finishReason": finish} if finish else {})}], **more}


def native(*payloads: Json, done: bool = True) -> bytes:
    lines = [f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    body: bytes
    says: Heard


CALL = {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "c2ln"}
WANTED: dict[str, Wanted] = {
    "anthropic: a thought and a call": Wanted(
        body=messages(begin(), {"type": "ping"}, *thinks(0), *says(1, "I ", "look."), *calls(2), *stops("tool_use")),
        says=Heard(text="I look.", reasoning="Two and two.", calls=ONE, usage=COUNTED, finish="tool-calls",
                   kept={"blocks": [THOUGHT, {"text": 7}, {"call": 0}]}),
    ),
    "anthropic: a redacted thought": Wanted(
        body=messages(begin(), *block(0, REDACTED), *says(1, "Four."), *stops("end_turn")),
        says=Heard(text="Four.", usage=COUNTED, kept={"blocks": [REDACTED, {"text": 5}]}),
    ),
    "anthropic: overloaded in the middle": Wanted(
        body=messages(begin(), *says(0, "Fo"), {"type": "error", "error": {
            "type": "overloaded_error", "message": "Overloaded"}}),
        says=Heard(error=("overloaded", True)),
    ),
    "anthropic: a turn that is paused": Wanted(
        body=messages(begin(), *says(0, "I search."), *block(1, SEARCH), *stops("pause_turn")),
        says=Heard(text="I search.", usage=COUNTED, finish="paused", kept={"blocks": [{"text": 9}, SEARCH]}),
    ),
    "anthropic: a refusal": Wanted(
        body=messages(begin(), *stops("refusal", stop_details={"type": "refusal", "explanation": "I cannot."})),
        says=Heard(text="I cannot.", usage=COUNTED, finish="filtered"),
    ),
    "anthropic: a document in place of a stream": Wanted(
        body=json.dumps({"type": "message", "content": [THOUGHT, {"type": "text", "text": "Four."}],
                         "stop_reason": "end_turn", "usage": {**USAGE, "output_tokens": 9}}).encode(),
        says=Heard(text="Four.", reasoning="Two and two.", usage=COUNTED, kept={"blocks": [THOUGHT, {"text": 5}]}),
    ),
    "anthropic: a stream that breaks off after a call": Wanted(
        body=messages(begin(), *calls(0)), says=Heard(error=("truncated", True))
    ),
    "google: a call and an empty STOP": Wanted(
        body=gemini(candidate({"text": "Two and two.", "thought": True}), candidate(CALL),
                    candidate({"text": ""}, finish="STOP", usageMetadata=COUNTS)),
        says=Heard(reasoning="Two and two.", calls=ONE, usage=Usage(input=20, output=6, reasoning=2),
                   kept={"parts": [{"call": True, "thoughtSignature": "c2ln"}]}, finish="tool-calls"),
    ),
    "google: MAX_TOKENS without parts": Wanted(
        body=gemini(candidate(finish="MAX_TOKENS", usageMetadata=COUNTS)),
        says=Heard(usage=Usage(input=20, output=6, reasoning=2), finish="length"),
    ),
    "google: an error inside": Wanted(
        body=gemini(candidate({"text": "Fo"}), {"error": {
            "code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}),
        says=Heard(error=("overloaded", True)),
    ),
    "google: an error in a list": Wanted(
        body=json.dumps([{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}]).encode(),
        says=Heard(error=("bad-request", False)),
    ),
    "google: a stream that breaks off after a call": Wanted(
        body=gemini(candidate(CALL)), says=Heard(error=("truncated", True))
    ),
    "workers_ai: an error inside": Wanted(
        body=native({"response": "h"}, {"errors": [{"code": 3040, "message": "Capacity temporarily exceeded"}]}),
        says=Heard(error=("overloaded", True)),
    ),
    "workers_ai: a stream that breaks off": Wanted(
        body=native({"response": "h"}, {"response": "i"}, done=False), says=Heard(error=("truncated", True))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WANTED)
def test_an_answer_is_understood_wherever_it_is_cut(name: str) -> None:
    wanted = WANTED[name]
    provider = name.partition(":")[0]
    adapter, model = ADAPTERS[provider]
    endpoint = Endpoint(provider=provider, base_url="https://models.example.com", adapter=provider)
    assert_heard_wherever_cut(adapter, endpoint, model, wanted.body, wanted.says)


def test_so_many_answers_of_each_wire_are_cut_at_every_byte(figure: Figure) -> None:
    bodies = {name: [one.body for key, one in WANTED.items() if key.startswith(f"{name}:")] for name in ADAPTERS}
    bodies["workers_ai"] += [body for body, _ in SHAPES.values()]
    for name, of_wire in bodies.items():
        assert of_wire
        figure(f"{name}: {len(of_wire)} answers, {sum(len(body) + 1 for body in of_wire)} cuts, none skipped")
