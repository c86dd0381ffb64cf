"""What Gemini sends, and what is understood of it."""

import json
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.messages import OpaquePart
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    Finished,
    ModelEvent,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.models.google.answer import GeminiAnswer
from edge_agent.models.source import Source

Json = dict[str, Any]
SIGNED: Json = {"thoughtSignature": "c2ln"}


def answer() -> GeminiAnswer:
    return GeminiAnswer(Source(model="google/m", host="g.example.com"), provider="google", model="m")


def read(body: bytes) -> list[ModelEvent]:
    """All but what is only there to be measured."""
    one = answer()
    return [event for event in one.feed(body) + one.end() if not isinstance(event, CallGrew)]


def chunk(*parts: Json, finish: str | None = None, **more: Any) -> Json:
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], **more}


def stream(*payloads: Json) -> bytes:
    return "".join(f"data: {json.dumps(payload)}\r\n\r\n" for payload in payloads).encode()


def call(name: str = "f", args: Json | None = None, **more: Any) -> Json:
    return {"functionCall": {"name": name, **({} if args is None else {"args": args})}, **more}


def piece(path: str, more: bool = False, **value: Any) -> Json:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def pieces(*told: Json, more: bool = True, **first: Any) -> Json:
    return {"functionCall": {"partialArgs": list(told), "willContinue": more, **first}}


def kept(*parts: Json) -> Opaque:
    return Opaque(part=OpaquePart(provider="google", model="m", data={"parts": list(parts)}))


def failure(body: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(body)
    return caught.value


# -- text, thoughts and how it ends
def test_text_and_thoughts_are_told_in_order_and_joined_by_read() -> None:
    thoughts = ({"text": "a", "thought": True}, {"text": "b", "thought": True})
    events = read(stream(chunk(*thoughts), chunk({"text": "c"}), chunk({"text": "d"}, finish="STOP")))
    assert events == [ReasoningDelta(text="ab"), TextDelta(text="cd"), Finished(reason="stop")]


def test_half_an_emoji_waits_for_its_other_half() -> None:
    one = answer()
    assert one.feed(b'data: {"candidates": [{"content": {"parts": [{"text": "a\\ud83d"}]}}]}\r\n\r\n') == [
        TextDelta(text="a")
    ]
    assert one.feed(stream(chunk({"text": "\ude00b"}, finish="STOP"))) == [TextDelta(text="\U0001f600b")]
    assert one.end() == [Finished(reason="stop")]


@pytest.mark.parametrize(
    "finish, reason",
    [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "filtered"), ("RECITATION", "filtered"),
     ("PROHIBITED_CONTENT", "filtered"), ("SPII", "filtered"), ("BLOCKLIST", "filtered"), ("LANGUAGE", "filtered"),
     ("IMAGE_SAFETY", "filtered"), ("OTHER", "other"), ("SOMETHING_NEW", "other")],
)  # fmt: skip
def test_finish_reasons_are_mapped(finish: str, reason: FinishReason) -> None:
    assert read(stream(chunk({"text": "x"}, finish=finish)))[-1] == Finished(reason=reason)
    spoken = [event for event in read(stream(chunk(call(), finish=finish))) if isinstance(event, CalledTool)]
    assert len(spoken) == 1


def test_a_call_and_an_empty_stop_is_an_answer_of_tool_calls() -> None:
    events = read(stream(chunk(call(args={"x": "ü"}, **SIGNED)), chunk({"text": ""}, finish="STOP")))
    called = CalledTool(name="f", arguments='{"x": "ü"}')
    assert events == [kept({"call": True, **SIGNED}), called, Finished(reason="tool-calls")]


def test_the_token_limit_may_come_without_parts() -> None:
    usage = {"promptTokenCount": 5, "thoughtsTokenCount": 30, "totalTokenCount": 35}
    payload = {"candidates": [{"finishReason": "MAX_TOKENS", "index": 0}], "usageMetadata": usage}
    spent = UsageSeen(usage=Usage(input=5, output=30, reasoning=30))
    assert read(stream(payload)) == [spent, Finished(reason="length")]


def test_a_cut_is_not_taken_back_by_a_later_finish_reason_and_an_unspecified_one_is_none() -> None:
    assert read(stream(chunk(finish="MAX_TOKENS"), chunk(finish="STOP")))[-1] == Finished(reason="length")
    assert failure(stream(chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED"))).kind == "truncated"


def test_without_a_finish_reason_the_answer_was_cut_and_its_calls_are_not_told() -> None:
    one = answer()
    assert one.feed(stream(chunk({"text": "x"}, call(args={})))) == [TextDelta(text="x"), CallGrew(text="{}")]
    assert not one.finished
    with pytest.raises(ModelError) as caught:
        one.end()
    assert (caught.value.kind, caught.value.retryable) == ("truncated", True)


def test_other_candidates_and_strange_chunks_say_nothing() -> None:
    strange: list[Json] = [
        {"candidates": None},
        {"candidates": [None, {"index": 1, "content": {"parts": [{"text": "other"}]}}, {"content": None}]},
        {"candidates": [{"content": {"parts": None}}, {"content": {"parts": [None]}}]},
        {"promptFeedback": {"safetyRatings": []}, "usageMetadata": None},
    ]
    assert read(stream(*strange, chunk(finish="STOP"))) == [Finished(reason="stop")]


@pytest.mark.parametrize(
    "finish, kind, retryable",
    [("MALFORMED_FUNCTION_CALL", "bad-answer", True), ("UNEXPECTED_TOOL_CALL", "bad-answer", True),
     ("TOO_MANY_TOOL_CALLS", "bad-answer", True), ("MALFORMED_RESPONSE", "bad-answer", True),
     ("MISSING_THOUGHT_SIGNATURE", "bad-request", False)],
)  # fmt: skip
def test_a_finish_reason_that_tells_a_fault_is_an_error_whose_usage_counts(
    finish: str, kind: str, retryable: bool
) -> None:
    one = answer()
    payload = chunk(finish=finish, usageMetadata={"promptTokenCount": 7})
    payload["candidates"][0]["finishMessage"] = "Malformed function call: f(x=)"
    assert one.feed(stream(payload)) == [UsageSeen(usage=Usage(input=7))]
    assert one.finished
    with pytest.raises(ModelError) as caught:
        one.end()
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert "f(x=)" in caught.value.message


def test_a_prompt_that_is_blocked_is_refused_and_not_tried_again() -> None:
    one = answer()
    body = stream({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}})
    assert one.feed(body) == [UsageSeen(usage=Usage(input=7))]
    with pytest.raises(ModelError, match="PROHIBITED_CONTENT") as caught:
        one.end()
    assert (caught.value.kind, caught.value.retryable) == ("refused", False)


# -- usage
def test_the_last_number_of_each_kind_counts_and_none_is_added() -> None:
    first = {"promptTokenCount": 15, "cachedContentTokenCount": 4, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}
    body = stream(
        chunk({"text": "a"}, usageMetadata={"trafficType": "ON_DEMAND"}),
        chunk({"text": "b"}, usageMetadata=first),
        chunk({"text": "c"}, finish="STOP", usageMetadata={"promptTokenCount": 13, "candidatesTokenCount": 5}),
    )
    usage = [event.usage for event in read(body) if isinstance(event, UsageSeen)]
    assert usage == [Usage(input=13, cached=4, output=7, reasoning=2)]


@pytest.mark.parametrize(
    "reported, usage",
    [
        ({"promptTokenCount": 10, "toolUsePromptTokenCount": 5, "candidatesTokenCount": 1}, Usage(input=15, output=1)),
        ({"promptTokenCount": 10, "cachedContentTokenCount": 99}, Usage(input=10, cached=10)),
        ({"promptTokenCount": -1, "candidatesTokenCount": True, "thoughtsTokenCount": "x"}, Usage()),
    ],
)
def test_usage_is_normalised(reported: Json, usage: Usage) -> None:
    assert UsageSeen(usage=usage) in read(stream(chunk(finish="STOP", usageMetadata=reported)))


# -- tool calls
def test_calls_come_whole_in_order_and_arguments_may_be_missing() -> None:
    events = read(stream(chunk(call("b", {"x": 1}), call("a", id="c1")), chunk(finish="STOP")))
    assert events[:-1] == [CalledTool(name="b", arguments='{"x": 1}'), CalledTool(name="a", arguments="{}")]


def test_arguments_in_pieces_are_put_together() -> None:
    body = stream(
        chunk({"functionCall": {"name": "f", "willContinue": True}, **SIGNED}),
        chunk(pieces(piece("$.a", stringValue="x", more=True))),
        chunk(pieces(piece("$.a", stringValue="y"), piece("$.n[0].m", numberValue=1))),
        chunk(pieces(piece("$.n[0]['k.k']", boolValue=True), piece('$.n[1]["q"]', nullValue="NULL_VALUE"))),
        chunk(pieces(piece("$.s", stringValue="1"), piece("$.s", stringValue="2"))),
        chunk({"functionCall": {}}),
        chunk(pieces(piece("$.a", stringValue="z"), name="g", more=False)),
        chunk(finish="STOP"),
    )
    first = {"a": "xy", "n": [{"m": 1, "k.k": True}, {"q": None}], "s": "2"}
    assert read(body) == [
        kept({"call": True, **SIGNED}, {"call": True}),
        CalledTool(name="f", arguments=json.dumps(first)),
        CalledTool(name="g", arguments='{"a": "z"}'),
        Finished(reason="tool-calls"),
    ]


def test_what_calls_grow_by_is_told_as_it_comes_so_that_it_can_be_measured() -> None:
    one = answer()
    told = [
        one.feed(stream(chunk(part)))
        for part in (call(args={"a": 1}), pieces(piece("$.a", stringValue="x"), name="g"), pieces(), {"text": ""})
    ]
    assert told == [[CallGrew(text='{"a": 1}')], [CallGrew(text="x")], [], []]


@pytest.mark.parametrize(
    "parts",
    [
        [{"functionCall": {}}],
        [pieces(piece("a", numberValue=1), name="f", more=False)],
        [pieces(piece("$", numberValue=1), name="f", more=False)],
        [pieces(piece("$.a[7]", numberValue=1), name="f", more=False)],
        [pieces(piece("$[0]", numberValue=1), name="f", more=False)],
        [pieces(piece("$.a", numberValue=1), piece("$.a.b", numberValue=1), name="f", more=False)],
        [pieces({"jsonPath": "$.a"}, name="f", more=False)],
        [pieces(piece(f"$.{'a' * 2_000}", numberValue=1), name="f", more=False)],
        [pieces(piece("$.a", numberValue=1), name="f")],
    ],
)
def test_a_call_that_cannot_be_put_together_is_a_bad_answer(parts: list[Json]) -> None:
    error = failure(stream(chunk(*parts, finish="STOP")))
    assert (error.kind, error.retryable) == ("bad-answer", True)


def test_a_call_that_the_token_limit_cut_is_none() -> None:
    half = pieces(piece("$.path", stringValue="/", more=True), name="delete")
    assert read(stream(chunk(call(), half, finish="MAX_TOKENS"))) == [
        CalledTool(name="f", arguments="{}"),
        Finished(reason="length"),
    ]


# -- what must go back
def test_signed_parts_are_kept_apart_and_unsigned_ones_joined() -> None:
    parts = ({"text": "a"}, {"text": "b"}, {"text": "c", **SIGNED}, {"text": "d"}, {"text": ""}, {"text": "", **SIGNED})
    events = read(stream(*(chunk(part) for part in parts), chunk(finish="STOP")))
    assert kept({"text": 2}, {"text": 1, **SIGNED}, {"text": 1}, {"text": 0, **SIGNED}) in events


def test_each_of_several_calls_keeps_its_own_signature() -> None:
    events = read(stream(chunk(call("f", **SIGNED), call("g"), call("h", thoughtSignature="b3Ro"), finish="STOP")))
    assert kept({"call": True, **SIGNED}, {"call": True}, {"call": True, "thoughtSignature": "b3Ro"}) in events


def test_an_order_that_is_not_the_usual_one_is_kept_without_signatures_too() -> None:
    assert kept({"call": True}, {"text": 3}) in read(stream(chunk(call(), {"text": "abc"}, finish="STOP")))


def test_a_signed_thought_and_a_part_of_another_kind_are_kept_whole() -> None:
    thought: Json = {"text": "hm", "thought": True, **SIGNED}
    code: Json = {"executableCode": {"language": "PYTHON", "code": "1"}}
    alone: Json = {**SIGNED}
    events = read(stream(chunk(thought, code, {"text": "a"}, alone, finish="STOP")))
    assert kept({"part": thought}, {"part": code}, {"text": 1}, {"part": alone}) in events
    assert events[0] == ReasoningDelta(text="hm")


# -- no stream of events
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_document_in_place_of_a_stream_is_the_whole_answer(wrapped: bool) -> None:
    first, last = chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP", usageMetadata={"promptTokenCount": 1})
    told = [first, last] if wrapped else chunk({"text": "ab"}, finish="STOP", usageMetadata={"promptTokenCount": 1})
    body = json.dumps(told, indent=1).encode()
    for cut in range(len(body)):
        one = answer()
        events = one.feed(body[:cut]) + one.feed(body[cut:]) + one.end()
        assert events == [TextDelta(text="ab"), UsageSeen(usage=Usage(input=1)), Finished(reason="stop")]


def test_half_a_document_and_one_without_a_finish_reason_are_cut_answers() -> None:
    assert failure(b'[{"candidates": [').kind == "truncated"
    assert failure(json.dumps([chunk({"text": "a"})]).encode()).kind == "truncated"


@pytest.mark.parametrize("body", [b"<!doctype html><html>", b'{"ok": true}', b"OK"])
def test_something_else_says_that_the_base_url_is_wrong(body: bytes) -> None:
    error = failure(body)
    assert (error.kind, error.retryable) == ("bad-answer", False)
    assert "/v1beta" in error.message


@pytest.mark.parametrize("as_event", [True, False])
@pytest.mark.parametrize(
    "error, kind, retryable",
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, "overloaded", True),
        ({"code": 500, "message": "An internal error has occurred.", "status": "INTERNAL"}, "unavailable", True),
        ({"message": "x", "status": "RESOURCE_EXHAUSTED"}, "rate-limited", True),
        ({"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}, "bad-request", False),
    ],
)
def test_an_error_inside_an_answer_is_an_error(error: Json, kind: str, retryable: bool, as_event: bool) -> None:
    first = chunk({"text": "a"})
    body = stream(first, {"error": error}) if as_event else json.dumps([first, {"error": error}]).encode()
    raised = failure(body)
    assert (raised.kind, raised.retryable) == (kind, retryable)
