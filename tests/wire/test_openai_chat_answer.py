"""What servers send, and what is understood of it."""

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
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.source import Source
from edge_agent.wire.sse import MAX_CHARS

SOURCE = Source(model="test/model", host="models.example.com", secrets=("sk-secret-key",))
Json = dict[str, Any]


def answer(**options: Any) -> ChatAnswer:
    return ChatAnswer(SOURCE, provider="test", **options)


def read(body: bytes, **options: Any) -> list[ModelEvent]:
    """All but what is only there to be measured."""
    one = answer(**options)
    return [event for event in one.feed(body) + one.end() if not isinstance(event, CallGrew)]


def stream(*payloads: Json | str, done: bool = True) -> bytes:
    lines = [payload if isinstance(payload, str) else f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(name: Any = None, arguments: Any = None, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def called(*deltas: list[Json]) -> list[tuple[str, str]]:
    events = read(stream(*(chunk({"tool_calls": calls}) for calls in deltas), chunk(finish="tool_calls")))
    return [(event.name, event.arguments) for event in events if isinstance(event, CalledTool)]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def failure(body: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(body)
    return caught.value


# -- text, reasoning and how it ends
def test_text_and_reasoning_are_told_in_order_and_joined_by_read() -> None:
    deltas: list[Json] = [{"reasoning_content": "a"}, {"reasoning": "b"}, {"content": "c"}, {"content": "d"}]
    events = read(stream(*map(chunk, deltas), chunk({"content": None, "reasoning": None}, "stop")))
    assert events == [ReasoningDelta(text="ab"), TextDelta(text="cd"), Finished(reason="stop")]


def test_reasoning_comes_first_where_one_delta_holds_both() -> None:
    events = read(stream(chunk({"content": "b", "reasoning": "a", "reasoning_content": "a"}, "stop")))
    assert events[:2] == [ReasoningDelta(text="a"), TextDelta(text="b")]


def test_numbers_and_lists_of_parts_are_text_too() -> None:
    parts = [{"type": "text", "text": "b"}, {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, 3, None]
    events = read(stream(chunk({"content": 1}), chunk({"content": 0}), chunk({"content": parts}), chunk({}, "stop")))
    assert events == [TextDelta(text="10b"), ReasoningDelta(text="t"), Finished(reason="stop")]


def test_half_an_emoji_waits_for_its_other_half() -> None:
    one = answer()
    assert one.feed(b'data: {"choices": [{"delta": {"content": "a\\ud83d"}}]}\n\n') == [TextDelta(text="a")]
    assert one.feed(b'data: {"choices": [{"delta": {"content": "\\ude00b"}}]}\n\n') == [TextDelta(text="\U0001f600b")]
    one.feed(b'data: {"choices": [{"delta": {"content": "\\ud83d"}, "finish_reason": "stop"}]}\n\n')
    assert one.end() == [TextDelta(text="\ufffd"), Finished(reason="stop")]


@pytest.mark.parametrize(
    "finish, reason",
    [("stop", "stop"), ("length", "length"), ("model_length", "length"), ("content_filter", "filtered"),
     ("tool_calls", "stop"), ("something new", "other")],
)  # fmt: skip
def test_finish_reasons_are_mapped(finish: str, reason: FinishReason) -> None:
    assert read(stream(chunk({"content": "x"}, finish)))[-1] == Finished(reason=reason)


@pytest.mark.parametrize(
    "finish, reason",
    [("stop", "tool-calls"), ("tool_calls", "tool-calls"), ("what", "tool-calls"), ("length", "length")],
)
def test_tool_calls_win_over_a_stop_and_a_cut_wins_over_tool_calls(finish: str, reason: FinishReason) -> None:
    events = read(stream(chunk({"tool_calls": [call("f", "{}", index=0)]}, finish)))
    assert events == [CalledTool(name="f", arguments="{}"), Finished(reason=reason)]


def test_text_after_the_finish_reason_still_counts() -> None:
    events = read(stream(chunk({"content": "a"}, "stop"), chunk({"content": "b"}), chunk({}, "stop")))
    assert text_of(events) == "ab"


def test_a_cut_is_not_taken_back_by_a_later_finish_reason() -> None:
    assert read(stream(chunk({}, "length"), chunk({}, "stop")))[-1] == Finished(reason="length")


def test_a_refusal_is_text_and_told_as_filtered() -> None:
    events = read(stream(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop")))
    assert events == [TextDelta(text="I cannot."), Finished(reason="filtered")]


@pytest.mark.parametrize("done", [True, False])
def test_a_finish_reason_or_done_ends_an_answer(done: bool) -> None:
    assert read(stream(chunk({"content": "x"}, "stop"), done=done))[-1] == Finished(reason="stop")
    assert read(stream(chunk({"content": "x"}), done=True))[-1] == Finished(reason="stop")


def test_without_either_the_answer_was_cut_and_its_calls_are_not_told() -> None:
    body = stream(chunk({"content": "x", "tool_calls": [call("f", "{}", index=0)]}), done=False)
    one = answer()
    assert one.feed(body) == [TextDelta(text="x"), CallGrew(text="{}")]
    with pytest.raises(ModelError) as caught:
        one.end()
    assert (caught.value.kind, caught.value.retryable) == ("truncated", True)


def test_what_calls_grow_by_is_told_as_it_comes_so_that_it_can_be_measured() -> None:
    one = answer()
    told = [
        one.feed(stream(chunk({"tool_calls": [call(name, piece, index=0)]}), done=False))
        for name, piece in (("f", '{"a'), (None, '": 1'), (None, "}"))
    ]
    assert told == [[CallGrew(text='{"a')], [CallGrew(text='": 1')], [CallGrew(text="}")]]


def test_nothing_is_read_beyond_done() -> None:
    one = answer()
    one.feed(stream(chunk({}, "stop")) + b"data: no JSON\n\n")
    assert one.over


def test_other_choices_and_strange_chunks_say_nothing() -> None:
    body = stream(
        chunk(None),
        {"choices": [{"index": 1, "delta": {"content": "other"}}, None, {"index": 0, "delta": None}]},
        {"choices": None},
        {"choices": [], "prompt_filter_results": []},
        "data: null\n\ndata:\n\ndata: 7\n\n: a comment\n\n",
        chunk({"content": True, "tool_calls": [None, {}], "refusal": 3}, "stop"),
    )
    assert read(body) == [Finished(reason="stop")]


# -- usage
def test_the_last_usage_counts_and_is_never_added() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
    events = read(
        stream(
            chunk({"content": "a"}, usage=usage),
            chunk({"content": "b"}, "stop", usage={**usage, "completion_tokens": 2, "total_tokens": 12}),
            {"choices": [], "usage": {**usage, "completion_tokens": 3, "total_tokens": None}},
        )
    )
    assert [event for event in events if isinstance(event, UsageSeen)] == [UsageSeen(usage=Usage(input=10, output=3))]


@pytest.mark.parametrize(
    "reported, usage",
    [
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
             "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(input=10, cached=4, cache_write=2, output=5, reasoning=3),
        ),
        # xAI counts reasoning apart, Gemini in the total only.
        ({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 31,
          "completion_tokens_details": {"reasoning_tokens": 20}}, Usage(input=10, output=21, reasoning=20)),
        ({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 31},
         Usage(input=10, output=21, reasoning=20)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "completion_tokens": 1},
         Usage(input=10, cached=8, output=1)),
        ({"prompt_tokens": 10, "num_cached_tokens": 8, "completion_tokens": 1}, Usage(input=10, cached=8, output=1)),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 99}},
         Usage(input=10, cached=10, output=1)),
        ({"prompt_tokens": -1, "completion_tokens": 2.0, "prompt_tokens_details": None}, Usage(output=2)),
        ({"prompt_tokens": "ten", "completion_tokens": True}, Usage()),
    ],
)  # fmt: skip
def test_usage_is_normalised(reported: Json, usage: Usage) -> None:
    events = read(stream(chunk({}, "stop"), {"choices": [], "usage": reported}))
    assert events == [UsageSeen(usage=usage), Finished(reason="stop")]


def test_a_field_that_is_missing_later_keeps_its_value() -> None:
    first = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    events = read(stream(chunk({}, usage=first), chunk({}, "stop", usage={"completion_tokens": 6})))
    assert events[0] == UsageSeen(usage=Usage(input=10, cached=4, output=6))


def test_groq_reports_usage_under_a_name_of_its_own() -> None:
    events = read(stream(chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 3, "completion_tokens": 4}})))
    assert events[0] == UsageSeen(usage=Usage(input=3, output=4))


def test_a_usage_that_grows_is_told_with_each_read_and_once() -> None:
    one = answer()
    usage = {"prompt_tokens": 1, "completion_tokens": 1}
    assert one.feed(stream(chunk({}, usage=usage), done=False)) == [UsageSeen(usage=Usage(input=1, output=1))]
    assert one.feed(stream(chunk({}, "stop", usage=usage))) == []


# -- tool calls
def test_a_call_is_put_together_from_its_fragments() -> None:
    deltas = [[call("f", "", index=0, id="c1")], [call(None, '{"x"', index=0)], [call(None, ": 1}", index=0)]]
    assert called(*deltas) == [("f", '{"x": 1}')]


def test_a_closing_fragment_of_nulls_changes_nothing() -> None:
    nulls = {"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": ""}}
    assert called([call("f", "{}", index=0, id="c1")], [nulls]) == [("f", "{}")]
    assert called([{**nulls, "index": 1}], [nulls]) == []


def test_a_repeated_id_and_name_are_set_once() -> None:
    pieces = [[call("f", piece, index=0, id="c1")] for piece in ("{", '"x":', "1}", "")]
    assert called(*pieces) == [("f", '{"x":1}')]


def test_an_id_that_changes_in_the_middle_is_the_same_call() -> None:
    assert called([call("f", "{", index=0, id="a")], [call("f", "}", index=0, id="b")]) == [("f", "{}")]
    assert called([call("f", "{", index=0, id="a")], [call(None, "}", index=0, id="b")]) == [("f", "{}")]


def test_fragments_are_told_apart_by_index() -> None:
    deltas = [
        [call("f", "{", index=0, id="a"), call("g", "{", index=1, id="b")],
        [call(None, "}", index=1), call(None, "}", index=0)],
    ]
    assert called(*deltas) == [("f", "{}"), ("g", "{}")]


def test_without_an_index_the_id_tells_fragments_apart() -> None:
    deltas = [[call("f", "{", id="a")], [call("g", "{", id="b")], [call(None, "}", id="a"), call(None, "}", id="b")]]
    assert called(*deltas) == [("f", "{}"), ("g", "{}")]


def test_without_index_and_id_a_fragment_belongs_to_the_last_call() -> None:
    assert called([call("f", "{")], [call(None, "}")], [call("g", "{}")]) == [("f", "{}"), ("g", "{}")]


@pytest.mark.parametrize("more", [{}, {"id": ""}, {"id": "null"}, {"index": 0}, {"index": 0, "id": ""}])
def test_whole_calls_in_one_delta_are_calls_of_their_own(more: Json) -> None:
    assert called([call("f", '{"x":1}', **more), call("f", '{"x":2}', **more)]) == [("f", '{"x":1}'), ("f", '{"x":2}')]
    assert called([call("f", "", **more), call("f", "", **more)]) == [("f", ""), ("f", "")]


@pytest.mark.parametrize("ids", [("a", "b"), ("call_0", "call_0"), ("", "")])
def test_whole_calls_at_the_same_index_are_calls_of_their_own(ids: tuple[str, str]) -> None:
    deltas = [[call("f", f'{{"x":{number}}}', index=0, id=id_)] for number, id_ in enumerate(ids)]
    assert called(*deltas) == [("f", '{"x":0}'), ("f", '{"x":1}')]


def test_an_id_used_twice_at_two_indexes_is_two_calls() -> None:
    deltas = [[call("f", '{"x":1}', index=0, id="call_0")], [call("f", '{"x":2}', index=1, id="call_0")]]
    assert called(*deltas) == [("f", '{"x":1}'), ("f", '{"x":2}')]


def test_one_call_at_several_indexes_is_put_together_by_its_id() -> None:
    deltas = [
        [call("f", "{", index=0, id="a")],
        [call(None, '"x":1', index=1, id="a")],
        [call(None, "}", index=2, id="a")],
    ]
    assert called(*deltas) == [("f", '{"x":1}')]


def test_a_whole_call_that_is_repeated_counts_once() -> None:
    deltas = [[call("f", "{", index=0, id="a")], [call(None, "}", index=0)], [call("f", "{}", index=0, id="a")]]
    assert called(*deltas) == [("f", "{}")]


def test_braces_inside_arguments_begin_no_call() -> None:
    pieces = ['{"a": [{"b": {}', "}", "{", '"c": 1}', "{", "}", "]}"]
    deltas = [[call("f", "", index=0, id="c1")], *([call(None, piece, index=0)] for piece in pieces)]
    assert called(*deltas) == [("f", "".join(pieces))]


def test_arguments_may_be_an_object_or_missing() -> None:
    assert called([call("f", {"x": "ü"}, index=0)]) == [("f", '{"x": "ü"}')]
    assert called([{"index": 0, "function": {"name": "f"}}]) == [("f", "")]


def test_the_flat_form_of_workers_ai_is_understood() -> None:
    assert called([{"name": "f", "arguments": {"x": 1}}]) == [("f", '{"x": 1}')]


def test_calls_keep_the_order_in_which_they_appeared() -> None:
    assert called([call("b", "{}", index=5)], [call("a", "{}", index=2)]) == [("b", "{}"), ("a", "{}")]


# -- what must go back
def test_openrouter_s_reasoning_details_are_kept_whole() -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "a"},
        {"type": "reasoning.text", "index": 0, "text": "b"},
        {"type": "reasoning.text", "index": 0, "text": "", "signature": "sig"},
        {"type": "reasoning.encrypted", "index": 1, "data": "xyz"},
    ]
    chunks = [chunk({"reasoning_details": [detail]}) for detail in details]
    events = read(stream(*chunks, chunk({}, "stop")), replayed=("reasoning_details",))
    kept = [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "sig"}, details[3]]
    part = OpaquePart(provider="test", data={"message": {"reasoning_details": kept}})
    assert events == [Opaque(part=part), Finished(reason="stop")]


def test_details_without_an_index_are_kept_one_by_one_and_strange_ones_are_not() -> None:
    y: Json = {"type": "y", "index": 0, "format": None}
    told: list[Any] = [[{"type": "x", "data": "a"}, None], [{"type": "x"}], 3, [y], [{**y, "id": "i"}]]
    deltas = (chunk({"reasoning_details": details}) for details in told)
    events = read(stream(*deltas, chunk({}, "stop")), replayed=("reasoning_details",))
    kept: list[Json] = [{"type": "x", "data": "a"}, {"type": "x"}, {**y, "id": "i"}]
    assert events[0] == Opaque(part=OpaquePart(provider="test", data={"message": {"reasoning_details": kept}}))


def test_a_signature_on_a_call_is_kept_with_its_place() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    calls = [call("f", "{}", index=0), call("g", "{}", index=1, extra_content=extra)]
    events = read(stream(chunk({"tool_calls": calls}, "tool_calls")))
    assert events[0] == Opaque(part=OpaquePart(provider="test", data={"calls": {"1": {"extra_content": extra}}}))


def test_reasoning_is_kept_for_a_provider_that_wants_it_back() -> None:
    body = stream(chunk({"reasoning_content": "a"}), chunk({"reasoning_content": "b"}), chunk({}, "stop"))
    events = read(body, replayed=("reasoning_content",))
    part = OpaquePart(provider="test", data={"message": {"reasoning_content": "ab"}})
    assert events == [ReasoningDelta(text="ab"), Opaque(part=part), Finished(reason="stop")]


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
