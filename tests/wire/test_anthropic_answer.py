"""What a server of Anthropic's wire sends, and what is understood of it."""

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
from edge_agent.models.anthropic.answer import MessagesAnswer
from edge_agent.models.failures import failed_status
from edge_agent.models.source import Source

SOURCE = Source(model="anthropic/claude", host="api.example.com", secrets=("sk-secret-key",))
Json = dict[str, Any]
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30, "output_tokens": 1}


def read(body: bytes, answer_tool: str | None = None) -> list[ModelEvent]:
    """All but what is only there to be measured."""
    one = MessagesAnswer(SOURCE, provider="anthropic", model="claude", answer_tool=answer_tool)
    return [event for event in one.feed(body) + one.end() if not isinstance(event, CallGrew)]


def stream(*payloads: Json) -> bytes:
    """As it is sent: named events, with spaces at the end of data."""
    return "".join(f"event: {one['type']}\ndata: {json.dumps(one)}  \n\n" for one in payloads).encode()


def begin(**usage: Any) -> Json:
    return {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": USAGE | usage}}


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text(index: int, *pieces: str) -> list[Json]:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


def thinking(index: int, *pieces: str, signature: str = "sig") -> list[Json]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
    signed = [{"type": "signature_delta", "signature": signature}] if signature else []
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas, *signed)


def tool(index: int, name: str, *pieces: str) -> list[Json]:
    start: Json = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    return block(index, start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))


def stop(reason: str | None = "end_turn", **more: Any) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}, {"type": "message_stop"}]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def calls_of(events: list[ModelEvent]) -> list[tuple[str, str]]:
    return [(event.name, event.arguments) for event in events if isinstance(event, CalledTool)]


def layout_of(events: list[ModelEvent]) -> list[Json]:
    parts = [event.part for event in events if isinstance(event, Opaque)]
    assert all((part.provider, part.model) == ("anthropic", "claude") for part in parts)
    return parts[0].data["blocks"] if parts else []


def test_thinking_with_a_tool_call_keeps_the_signature_and_the_order() -> None:
    body = stream(begin(), *thinking(0, "I ", "add."), *text(1, "Let me."), *tool(2, "add", '{"a"', ": 1}"),
                  *stop("tool_use"))  # fmt: skip
    events = read(body)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "I add."
    assert text_of(events) == "Let me."
    assert calls_of(events) == [("add", '{"a": 1}')]
    thought = {"type": "thinking", "thinking": "I add.", "signature": "sig"}
    assert Opaque(part=OpaquePart(
        provider="anthropic", model="claude", data={"blocks": [thought, {"text": 7}, {"call": 0}]}
    )) in events  # fmt: skip
    assert events[-1] == Finished(reason="tool-calls")


def test_thoughts_between_calls_stay_where_they_were() -> None:
    body = stream(begin(), *thinking(0, "a"), *tool(1, "one"), *thinking(2, "b", signature="t"), *text(3, "x"),
                  *tool(4, "two"), *stop("tool_use"))  # fmt: skip
    kinds = [next(iter(entry)) if "type" not in entry else entry["thinking"] for entry in layout_of(read(body))]
    assert kinds == ["a", "call", "b", "text", "call"]


def test_redacted_and_empty_but_signed_thoughts_are_kept_and_unsigned_ones_are_not() -> None:
    redacted = {"type": "redacted_thinking", "data": "EsAB"}
    body = stream(begin(), *block(0, redacted), *thinking(1), *thinking(2, "half", signature=""), *text(3, "x"),
                  *stop())  # fmt: skip
    signed = {"type": "thinking", "thinking": "", "signature": "sig"}
    assert layout_of(read(body)) == [redacted, signed, {"text": 1}]


def test_an_answer_without_thoughts_has_nothing_opaque() -> None:
    assert layout_of(read(stream(begin(), *text(0, "x"), *tool(1, "f"), *stop("tool_use")))) == []


def test_calls_without_input_or_with_all_of_it_at_the_start_are_whole() -> None:
    early = {"type": "tool_use", "id": "t", "name": "early", "input": {"a": "ü"}}
    body = stream(begin(), *tool(0, "none"), *tool(1, "empty", ""), *block(2, early), *tool(3, "half", '{"a'),
                  *stop("tool_use"))  # fmt: skip
    assert calls_of(read(body)) == [("none", "{}"), ("empty", "{}"), ("early", '{"a": "ü"}'), ("half", '{"a')]


def test_what_calls_grow_by_is_told_as_it_comes() -> None:
    one = MessagesAnswer(SOURCE, provider="anthropic", model="claude")
    grown = one.feed(stream(begin(), *tool(0, "add", '{"a"', ": 1}")))
    assert CallGrew(text='{"a": 1}') in grown


def test_blocks_and_events_nobody_knows_are_passed_over() -> None:
    citation = {"type": "citations_delta", "citation": {"type": "char_location"}}
    body = stream(
        begin(),
        {"type": "ping"},
        {"type": "news_of_2030", "index": 0},
        *block(0, {"type": "hologram", "voxels": 3}, {"type": "voxel_delta", "voxels": 4}),
        *block(1, {"type": "text", "text": "", "citations": []}, {"type": "text_delta", "text": "x"}, citation),
        {"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        *stop(),
    )
    events = read(body)
    assert text_of(events) == "x"
    assert layout_of(events) == []
    assert events[-1] == Finished(reason="stop")


def test_what_ran_at_the_provider_goes_back_as_it_came() -> None:
    used: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    found: Json = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    body = stream(begin(), *block(0, used, {"type": "input_json_delta", "partial_json": '{"query": "x"}'}),
                  *block(1, found), *text(2, "Found."), *stop("pause_turn"))  # fmt: skip
    events = read(body)
    assert layout_of(events) == [used | {"input": {"query": "x"}}, found, {"text": 6}]
    assert calls_of(events) == []
    assert events[-1] == Finished(reason="paused")


@pytest.mark.parametrize(
    "reason, finished",
    [("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("tool_use", "stop"),
     ("pause_turn", "paused"), ("of_2030", "other"), ("refusal", "filtered")],
)  # fmt: skip
def test_every_stop_reason_has_its_meaning(reason: str, finished: FinishReason) -> None:
    assert read(stream(begin(), *text(0, "x"), *stop(reason)))[-1] == Finished(reason=finished)


def test_a_cut_answer_says_so_although_it_holds_calls() -> None:
    assert read(stream(begin(), *tool(0, "add", "{"), *stop("max_tokens")))[-1] == Finished(reason="length")


def test_a_refusal_explains_itself_and_calls_nothing() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "It was blocked."}
    events = read(stream(begin(), *tool(0, "add", "{"), *stop("refusal", stop_details=details)))
    assert (text_of(events), calls_of(events), events[-1]) == ("It was blocked.", [], Finished(reason="filtered"))


def test_a_full_context_window_is_an_overflow() -> None:
    with pytest.raises(ModelError) as caught:
        read(stream(begin(), *text(0, "x"), *stop("model_context_window_exceeded")))
    assert (caught.value.kind, caught.value.retryable) == ("context-overflow", False)


def test_usage_counts_the_cache_and_the_last_word_of_each_field_wins() -> None:
    details = {"output_tokens_details": {"thinking_tokens": 40}}
    usage = {"input_tokens": 12, "output_tokens": 50, "cache_read_input_tokens": None, **details}
    later = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    events = read(stream(begin(), *text(0, "x"), later, later, {"type": "message_stop"}))
    seen = [event.usage for event in events if isinstance(event, UsageSeen)]
    assert seen[-1] == Usage(input=62, cached=30, cache_write=20, output=50, reasoning=40)


def test_a_document_in_place_of_a_stream_says_the_same() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "yes"},
        {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}},
    ]
    document = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": USAGE}
    streamed = stream(begin(), *thinking(0, "hm", signature="s"), *text(1, "yes"), *tool(2, "add", '{"a": 1}'),
                      {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": USAGE},
                      {"type": "message_stop"})  # fmt: skip
    assert read(json.dumps(document).encode()) == read(streamed)


def test_two_beginnings_and_spliced_blocks_lose_nothing() -> None:
    body = stream(begin(), begin(), *text(0, "one "), begin(), *text(0, "two"), *stop())
    assert text_of(read(body)) == "one two"


def test_deltas_of_a_block_that_was_not_begun_are_heard() -> None:
    deltas = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}]
    assert text_of(read(stream(begin(), *deltas, *stop()))) == "x"


def test_an_answer_without_a_stop_reason_was_cut() -> None:
    one = MessagesAnswer(SOURCE, provider="anthropic", model="claude")
    one.feed(stream(begin(), *text(0, "half"), *tool(1, "add", "{}")))
    assert not one.finished
    with pytest.raises(ModelError) as caught:
        one.end()
    assert (caught.value.kind, caught.value.retryable) == ("truncated", True)


def test_the_end_is_known_before_the_connection_closes() -> None:
    one = MessagesAnswer(SOURCE, provider="anthropic", model="claude")
    one.feed(stream(begin(), *text(0, "x"), stop()[0]))
    assert (one.finished, one.over) == (True, False)
    one.feed(stream(stop()[1]))
    assert one.over


@pytest.mark.parametrize(
    "kind, message, expected",
    [("overloaded_error", "Overloaded", "overloaded"), ("rate_limit_error", "Slow down", "rate-limited"),
     ("api_error", "Internal", "unavailable"), ("invalid_request_error", "prompt is too long: 9 > 8",
     "context-overflow")],
)  # fmt: skip
def test_an_error_inside_the_answer_is_typed(kind: str, message: str, expected: str) -> None:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    one = MessagesAnswer(SOURCE, provider="anthropic", model="claude")
    assert text_of(one.feed(stream(begin(), *text(0, "half")))) == "half"
    with pytest.raises(ModelError) as caught:
        one.feed(stream(error))
    assert caught.value.kind == expected
    assert message in caught.value.message


@pytest.mark.parametrize("body", [b"<!doctype html><p>hello", b"{}", b"hello"])
def test_what_is_no_answer_of_a_model_is_told_apart(body: bytes) -> None:
    with pytest.raises(ModelError) as caught:
        read(body)
    assert (caught.value.kind, caught.value.retryable) == ("bad-answer", False)


@pytest.mark.parametrize(
    "status, kind, message, expected, retryable",
    [(400, "invalid_request_error", "This model does not support effort level 'xhigh'.", "bad-request", False),
     (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context-overflow", False),
     (400, "invalid_request_error", "Your credit balance is too low to access the API.", "quota", False),
     (401, "authentication_error", "invalid x-api-key", "unauthorized", False),
     (402, "billing_error", "pay", "quota", False),
     (403, "permission_error", "no", "unauthorized", False),
     (404, "not_found_error", "model: claude-none", "not-found", False),
     (413, "request_too_large", "too large", "context-overflow", False),
     (429, "rate_limit_error", "slow", "rate-limited", True),
     (500, "api_error", "oops", "unavailable", True),
     (504, "timeout_error", "late", "unavailable", True),
     (529, "overloaded_error", "Overloaded", "overloaded", True)],
)  # fmt: skip
def test_every_error_body_is_typed(status: int, kind: str, message: str, expected: str, retryable: bool) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
    error = failed_status(SOURCE, status, {"retry-after": "7"}, body.encode())
    assert (error.kind, error.retryable, error.retry_after) == (expected, retryable, 7.0)
    assert message in error.message


def test_the_input_of_the_answer_s_tool_is_the_text() -> None:
    body = stream(begin(), *thinking(0, "hm"), *text(1, "Here:"), *tool(2, "answer", '{"a"', ": 1}"), *stop("tool_use"))
    events = read(body, answer_tool="answer")
    assert (text_of(events), calls_of(events), events[-1]) == ('{"a": 1}', [], Finished(reason="stop"))
    assert layout_of(events)[1:] == [{"text": 8}]
    whole = block(0, {"type": "tool_use", "id": "t", "name": "answer", "input": {"a": 1}})
    assert text_of(read(stream(begin(), *whole, *stop("tool_use")), answer_tool="answer")) == '{"a": 1}'


def test_words_in_place_of_the_answer_s_tool_are_the_text() -> None:
    events = read(stream(begin(), *text(0, "I ", "cannot."), *stop()), answer_tool="answer")
    assert (text_of(events), events[-1]) == ("I cannot.", Finished(reason="stop"))
