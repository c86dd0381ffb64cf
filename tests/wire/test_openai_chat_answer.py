"""What servers send, and what is understood of it."""

from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.messages import OpaquePart
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    Finished,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from tests.wire.chat_chunks import Json, answer, call, chunk, read, stream, text_of


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
