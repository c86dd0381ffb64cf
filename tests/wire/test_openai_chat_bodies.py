"""Answers that are no stream of events, or hold an error."""

import json
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.model import (
    CalledTool,
    Finished,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.wire.sse import MAX_CHARS
from tests.wire.chat_chunks import answer, call, chunk, failure, read, stream


# -- no stream of events
def test_a_json_document_in_place_of_a_stream_is_the_whole_answer() -> None:
    message = {"role": "assistant", "content": "hi", "reasoning_content": None, "tool_calls": [call("f", "{}", id="a")]}
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}).encode()
    whole = [TextDelta(text="hi"), UsageSeen(usage=Usage(input=1, output=2)), CalledTool(name="f", arguments="{}")]
    for cut in range(len(body)):
        one = answer()
        assert one.feed(body[:cut]) + one.feed(body[cut:]) + one.end() == [*whole, Finished(reason="tool-calls")]


def test_a_document_without_a_finish_reason_is_whole_all_the_same() -> None:
    assert read(b'{"choices": [{"message": {"content": "hi"}}]}')[-1] == Finished(reason="stop")


def test_a_document_without_end_is_a_bad_answer() -> None:
    one = answer()
    one.feed(b"{".ljust(MAX_CHARS))
    with pytest.raises(ModelError) as caught:
        one.feed(b" ")
    assert caught.value.kind == "bad-answer"


def test_half_a_document_is_a_cut_answer() -> None:
    assert failure(b'\n {"choices": [{"message"').kind == "truncated"


@pytest.mark.parametrize("body", [b"<!doctype html><html>", b"  \n<html>", b"\xef\xbb\xbf<html>"])
def test_an_html_page_says_that_the_base_url_is_wrong(body: bytes) -> None:
    error = failure(body)
    assert (error.kind, error.retryable) == ("bad-answer", False)
    assert "HTML" in error.message
    assert "base URL" in error.message


@pytest.mark.parametrize("body", [b"OK", b"error: what", b'{"status": "ok"}', b"[]", b"\xff\xfe"])
def test_something_else_is_a_bad_answer(body: bytes) -> None:
    assert failure(body).kind == "bad-answer"


@pytest.mark.parametrize("body", [b"", b"  ", b"\xef", b"data: {", b'event: x\ndata: {"choices"', b": comment"])
def test_nothing_or_half_a_frame_is_a_cut_answer(body: bytes) -> None:
    assert failure(body).kind == "truncated"


def test_an_event_that_is_no_json_is_a_bad_answer() -> None:
    error = failure(stream("data: {not json}\n\n"))
    assert (error.kind, error.retryable) == ("bad-answer", True)


def test_an_event_too_deep_to_decode_is_a_bad_answer() -> None:
    assert failure(b"data: " + b"[" * 100_000 + b"\n\n").kind == "bad-answer"


# -- errors inside an answer
@pytest.mark.parametrize(
    "error, kind, retryable",
    [
        ({"message": "x", "code": 429}, "rate-limited", True),
        ({"message": "x", "code": "502"}, "unavailable", True),
        ({"message": "Token limit reached", "code": 400}, "bad-request", False),
        ({"message": "x", "type": "overloaded_error"}, "overloaded", True),
        ({"message": "Server is overloaded", "type": "server_error"}, "overloaded", True),
        ({"message": "maximum context length is 5", "type": "invalid_request_error"}, "context-overflow", False),
        ({"message": "x", "code": "tool_use_failed", "failed_generation": "{"}, "bad-answer", True),
        ({"message": "x", "code": "insufficient_quota"}, "quota", False),
        ("just a text", "unavailable", True),
        ({}, "truncated", True),
    ],
)
def test_an_error_object_in_a_stream_is_an_error(error: Any, kind: str, retryable: bool) -> None:
    raised = failure(stream(chunk({"content": "x"}), {"error": error}, done=False))
    assert (raised.kind, raised.retryable) == (kind, retryable)


def test_an_error_beside_choices_and_after_a_finish_reason_is_an_error() -> None:
    late = chunk({}, "length", error={"code": 400, "message": "Token limit reached"}, usage={"prompt_tokens": 3})
    assert failure(stream(chunk({}, "length"), late)).kind == "bad-request"


def test_an_error_in_a_choice_or_as_finish_reason_is_an_error() -> None:
    assert failure(stream({"choices": [{"index": 0, "error": {"code": 503}}]})).kind == "unavailable"
    assert failure(stream(chunk({}, "error"))).kind == "unavailable"


def test_an_event_named_error_is_an_error_whatever_it_holds() -> None:
    assert failure(b'event: error\ndata: {"message": "no", "type": "rate_limit_error"}\n\n').kind == "rate-limited"
    assert failure(b'event: error\ndata: {"error": {"message": "no", "code": 401}}\n\n').kind == "unauthorized"


def test_an_error_in_a_list_is_found() -> None:
    body = json.dumps([{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}]).encode()
    assert failure(body).kind == "bad-request"
    assert failure(b"data: " + body + b"\n\n").kind == "bad-request"


def test_an_error_tells_the_provider_s_words_without_the_key() -> None:
    error = failure(stream({"error": {"message": f"bad {'sk-secret-key'} here", "code": 401}}))
    assert "bad [secret] here" in error.message
    assert "test/model" in error.message
    assert "models.example.com" in error.message
