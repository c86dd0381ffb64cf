"""What models of Workers AI send, in every documented shape, and what is understood of it wherever it is cut."""

import json
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import OpaquePart, ToolSpec, UserMessage
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    Finished,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.source import Source
from edge_agent.models.workers_ai import WorkersAI

Json = dict[str, Any]
ENDPOINT = Endpoint(provider="@cf", base_url="https://workers-binding.ai", adapter="workers_ai", route="binding")
LLAMA, GLM, OSS = "meta/llama-3.3-70b-instruct-fp8-fast", "zai-org/glm-4.7-flash", "openai/gpt-oss-120b"
TOOL = ToolSpec(name="f", description="F.", parameters={"type": "object"})
USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
COUNTED = Usage(input=5, output=2)
Said = tuple[str, str, list[tuple[str, str]], Usage | None, str]


def decode(*chunks: bytes, model: str = LLAMA, required: bool = False) -> list[ModelEvent]:
    request = ModelRequest(
        system="", messages=(UserMessage(text="x"),), tools=(TOOL,), tool_choice="required" if required else "auto"
    )
    answer = WorkersAI().answer(request, ENDPOINT, Source.of(ENDPOINT, model))
    return [event for chunk in chunks for event in answer.feed(chunk)] + answer.end()


def said(events: list[ModelEvent]) -> Said:
    """Text, reasoning, calls, the last usage and how it ended: what must not depend on how the answer was cut."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    calls = [(event.name, event.arguments) for event in events if isinstance(event, CalledTool)]
    usage = [event.usage for event in events if isinstance(event, UsageSeen)]
    finished = events[-1]
    assert isinstance(finished, Finished)
    return text, thought, calls, usage[-1] if usage else None, finished.reason


def stream(*payloads: Json, done: bool = True, space: str = " ") -> bytes:
    lines = [f"data:{space}{json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def document(value: Any) -> bytes:
    return json.dumps(value).encode()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    return {"id": "c", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(arguments: Any, name: str | None = "f", **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


ONE = [("f", '{"x": 1}')]
TWO = [*ONE, ("f", '{"x": 2}')]
WHOLE = {"response": "hi", "usage": USAGE}
ENVELOPE: Json = {"success": True, "errors": [], "messages": []}
OUTPUT = [
    {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}], "summary": []},
    {"type": "message", "content": [{"type": "output_text", "text": "hi"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"x": 1}'},
]
RESPONSES_USAGE = {"input_tokens": 5, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}

# name -> (body, what it says)
SHAPES: dict[str, tuple[bytes, Said]] = {
    # -- whole answers
    "native text": (document(WHOLE), ("hi", "", [], COUNTED, "stop")),
    "native tool": (
        document({"response": None, "tool_calls": [{"name": "f", "arguments": {"x": 1}}], "usage": USAGE}),
        ("", "", ONE, COUNTED, "tool-calls"),
    ),
    "native without a response": (document({"tool_calls": [{"name": "f", "arguments": '{"x": 1}'}]}),
                                  ("", "", ONE, None, "tool-calls")),
    "native without calls": (document({"response": "hi", "tool_calls": None}), ("hi", "", [], None, "stop")),
    "native with no calls": (document({"response": "hi", "tool_calls": []}), ("hi", "", [], None, "stop")),
    "the same call twice": (
        document({"tool_calls": [{"name": "f", "arguments": {"x": 1}}, {"name": "f", "arguments": {"x": 1}}]}),
        ("", "", ONE * 2, None, "tool-calls"),
    ),
    "JSON mode": (document({"response": {"a": [1]}, "usage": USAGE}), ('{"a": [1]}', "", [], COUNTED, "stop")),
    "a number in JSON mode": (document({"response": 4.5}), ("4.5", "", [], None, "stop")),
    "a truth in JSON mode": (document({"response": True}), ("true", "", [], None, "stop")),
    "a text alone": (document("hi"), ("hi", "", [], None, "stop")),
    "hybrid": (
        document({"response": "", "tool_calls": [call({"x": 1}, id="c")], "usage": USAGE}),
        ("", "", ONE, COUNTED, "tool-calls"),
    ),
    "OpenAI's": (
        document({"choices": [{"index": 0, "message": {"content": "hi", "reasoning_content": "hm", "tool_calls": None},
                               "finish_reason": "stop", "stop_reason": None}], "usage": USAGE}),
        ("hi", "hm", [], COUNTED, "stop"),
    ),
    "OpenAI's with null content": (
        document({"choices": [{"message": {"content": None, "reasoning": "hm", "tool_calls": [call('{"x": 1}')]},
                               "finish_reason": "stop"}]}),
        ("", "hm", ONE, None, "tool-calls"),
    ),
    "cut by the model's own limit": (
        document({"choices": [{"message": {"content": "h"}, "finish_reason": "model_length"}]}),
        ("h", "", [], None, "length"),
    ),
    "Responses": (
        document({"object": "response", "status": "completed", "output": OUTPUT, "usage": RESPONSES_USAGE}),
        ("hi", "hm", ONE, Usage(input=5, output=2, reasoning=1), "tool-calls"),
    ),
    "Responses that were cut": (
        document({"object": "response", "status": "incomplete", "output": OUTPUT[1:2]}), ("hi", "", [], None, "length")
    ),
    "REST": (document({"result": WHOLE, **ENVELOPE}), ("hi", "", [], COUNTED, "stop")),
    "REST with a text alone": (document({"result": "hi", **ENVELOPE}), ("hi", "", [], None, "stop")),
    "REST around OpenAI's": (
        document({"result": {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}, **ENVELOPE}),
        ("hi", "", [], None, "stop"),
    ),
    # -- streams
    "native stream": (
        stream({"response": "h", "p": "abdef"}, {"response": "i", "p": ""}, {"response": "", "usage": USAGE}),
        ("hi", "", [], COUNTED, "stop"),
    ),
    "native stream without a space": (stream({"response": "hi"}, space=""), ("hi", "", [], None, "stop")),
    "numbers in a native stream": (stream({"response": 1}, {"response": 0}), ("10", "", [], None, "stop")),
    "native stream with a finish reason and no end": (
        stream({"response": "hi"}, {"response": "", "finish_reason": "stop", "usage": USAGE}, done=False),
        ("hi", "", [], COUNTED, "stop"),
    ),
    "native stream with a tool": (
        stream({"response": "", "tool_calls": []}, {"tool_calls": [call('{"x": 1}', id="c", index=0)]},
               {"response": "", "finish_reason": "stop", "usage": USAGE}),
        ("", "", ONE, COUNTED, "tool-calls"),
    ),
    "native stream with flat calls": (
        stream({"tool_calls": [{"name": "f", "arguments": {"x": 1}}]},
               {"tool_calls": [{"name": "f", "arguments": {"x": 2}}]}),
        ("", "", TWO, None, "tool-calls"),
    ),
    "usage on every chunk": (
        stream(chunk({"content": "h"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
               chunk({"content": "i"}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2}),
               {"choices": [], "usage": USAGE}),
        ("hi", "", [], COUNTED, "stop"),
    ),
    "cached tokens": (
        stream(chunk({"content": "hi"}, "stop"),
               {"choices": [], "usage": {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}}),
        ("hi", "", [], Usage(input=5, cached=4, output=2), "stop"),
    ),
    "a call in three pieces and a closing null chunk": (
        stream(chunk({"tool_calls": [call("", id="c", index=0)]}),
               chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]}),
               chunk({"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]}),
               chunk({"tool_calls": [{"id": None, "type": None, "function": {"name": None, "arguments": ""}}]}),
               chunk({}, "tool_calls")),
        ("", "", ONE, None, "tool-calls"),
    ),
    "calls without an index": (
        stream(chunk({"tool_calls": [call('{"x": 1}', id="a"), call('{"x": 2}', id="b")]}, "tool_calls")),
        ("", "", TWO, None, "tool-calls"),
    ),
    "two whole calls at one index": (
        stream(chunk({"tool_calls": [call('{"x": 1}', id="a", index=0)]}),
               chunk({"tool_calls": [call('{"x": 2}', id="b", index=0)]}, "tool_calls")),
        ("", "", TWO, None, "tool-calls"),
    ),
    "id and name again in each piece": (
        stream(chunk({"tool_calls": [call('{"x":', id="a", index=0)]}),
               chunk({"tool_calls": [call(" 1}", id="a", index=0)]}, "tool_calls")),
        ("", "", ONE, None, "tool-calls"),
    ),
    "reasoning under both names": (
        stream(chunk({"reasoning_content": "h", "content": None}), chunk({"reasoning": "m"}),
               chunk({"content": "hi"}, "stop")),
        ("hi", "hm", [], None, "stop"),
    ),
    "several finish chunks and content after one": (
        stream(chunk({"content": "h"}, "stop"), chunk({"content": "i"}, "stop"), chunk({}, "stop")),
        ("hi", "", [], None, "stop"),
    ),
    "another id in mid-stream": (
        stream({**chunk({"content": "h"}), "id": "a"}, {**chunk({"content": "i"}, "stop"), "id": "b"}),
        ("hi", "", [], None, "stop"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_every_documented_shape_is_understood(name: str) -> None:
    body, expected = SHAPES[name]
    assert said(decode(body)) == expected


@pytest.mark.parametrize("name", SHAPES)
def test_it_may_be_cut_at_every_byte(name: str) -> None:
    body, expected = SHAPES[name]
    for cut in range(len(body) + 1):
        assert said(decode(body[:cut], body[cut:])) == expected
    assert said(decode(*(body[index : index + 1] for index in range(len(body))))) == expected


def test_text_goes_out_with_each_read_and_calls_at_the_end_only() -> None:
    answer = WorkersAI().answer(ModelRequest(system="", messages=()), ENDPOINT, Source.of(ENDPOINT, LLAMA))
    assert answer.feed(stream({"response": "h"}, done=False)) == [TextDelta(text="h")]
    assert answer.feed(stream({"tool_calls": [call('{"x": 1}')]}, done=False)) == [CallGrew(text='{"x": 1}')]
    assert not answer.finished
    answer.feed(b"data: [DONE]\n\n")
    assert answer.over
    assert answer.end() == [CalledTool(name="f", arguments='{"x": 1}'), Finished(reason="tool-calls")]


def test_thoughts_are_kept_for_this_model_alone_in_the_field_it_wants_them_back_in() -> None:
    for field in ("reasoning_content", "reasoning"):
        events = decode(stream(chunk({field: "h"}), chunk({field: "m", "content": "hi"}, "stop")), model=GLM)
        part = next(event.part for event in events if isinstance(event, Opaque))
        assert part == OpaquePart(provider="@cf", model=f"@cf/{GLM}", data={"message": {"reasoning": "hm"}})


# -- the call that leaks
LEAKED = '{"name": "f", "arguments": {"x": 1}}'


def test_a_forced_call_of_gpt_oss_may_come_as_text() -> None:
    body = stream(chunk({"content": LEAKED[:9]}), chunk({"content": LEAKED[9:]}, "stop"))
    assert said(decode(body, model=OSS, required=True)) == ("", "", ONE, None, "tool-calls")
    assert said(decode(body, model=OSS))[0] == LEAKED  # nobody forced it: it is what it says
    assert said(decode(body, model=GLM, required=True))[0] == LEAKED


def test_a_forced_call_of_gpt_oss_may_come_as_a_call() -> None:
    body = stream(chunk({"tool_calls": [call('{"x": 1}')]}, "tool_calls"))
    assert said(decode(body, model=OSS, required=True)) == ("", "", ONE, None, "tool-calls")


# -- how it fails
def failure(body: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        decode(body)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        stream({"response": "hi"}, done=False),
        stream({"tool_calls": [call('{"x": 1}', index=0)]}, done=False),
        stream(chunk({"content": "hi"}), done=False),
        b"",
        b'{"response": "h',
        b'"h',
    ],
)
def test_an_answer_without_its_end_was_cut(body: bytes) -> None:
    error = failure(body)
    assert (error.kind, error.retryable) == ("truncated", True)


@pytest.mark.parametrize(
    "error, kind, retryable",
    [
        ({"errors": [{"code": 3040, "message": "Capacity temporarily exceeded"}]}, "overloaded", True),
        ({"result": None, "success": False, "errors": [{"code": 5007, "message": "No model"}]}, "not-found", False),
        ({"error": {"internalCode": 3036, "description": "daily free allocation"}}, "quota", False),
        ({"error": "AiError: 3007: timeout"}, "timeout", True),
        (chunk({}, "error"), "unavailable", True),
    ],
)  # fmt: skip
def test_an_error_inside_an_answer_is_that_error(error: Json, kind: str, retryable: bool) -> None:
    for body in (stream({"response": "h"}, error), document(error)):
        told = failure(body)
        assert (told.kind, told.retryable) == (kind, retryable)


def test_a_page_is_no_answer() -> None:
    assert failure(b"<!doctype html><title>Welcome</title>").kind == "bad-answer"
