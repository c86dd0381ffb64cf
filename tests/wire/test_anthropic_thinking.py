"""Thinking on the Messages API: what is asked for, and what is shown again of earlier thoughts."""

import pytest

from edge_agent.core.messages import AssistantMessage, OpaquePart
from edge_agent.core.model import Thinking
from edge_agent.models.anthropic.layout import blocks_of
from tests.wire.messages_calls import (
    ADAPTIVE,
    ADD,
    ALWAYS,
    BUDGETED,
    OLD,
    REDACTED,
    THOUGHT,
    USER,
    Json,
    body,
    call,
    calling,
    opaque,
    request,
    result,
)


# -- thoughts of earlier answers
def test_an_answer_is_shown_again_exactly_as_it_was() -> None:
    layout = (THOUGHT, {"text": 3}, {"call": 0}, REDACTED, {"text": 2}, {"call": 1})
    answer = calling("a1", "b2", text="ab cd", opaque=(opaque(*layout),))
    messages = (USER, answer, result("a1"), result("b2"))
    told = body(request(messages=messages, tools=(ADD,), thinking="high"), BUDGETED)["messages"][1]["content"]
    assert told == [
        THOUGHT,
        {"type": "text", "text": "ab "},
        {"type": "tool_use", "id": "a1", "name": "add", "input": {"a": 1}},
        REDACTED,
        {"type": "text", "text": "cd"},
        {"type": "tool_use", "id": "b2", "name": "add", "input": {"a": 1}},
    ]


def test_text_that_was_changed_since_and_calls_the_layout_does_not_know_are_all_there() -> None:
    answer = calling("a1", text="much longer", opaque=(opaque(THOUGHT, {"text": 3}, REDACTED, {"text": 2}),))
    blocks = blocks_of(answer, "anthropic", BUDGETED, thinks=True)
    assert [block["type"] for block in blocks] == ["thinking", "text", "redacted_thinking", "tool_use"]
    assert blocks[1]["text"] == "much longer"


@pytest.mark.parametrize(
    "part",
    [
        opaque(THOUGHT, {"text": 2}, model=ADAPTIVE),
        opaque(THOUGHT, provider="bedrock"),
        OpaquePart(provider="openai", data={"message": {"reasoning_content": "x"}}),
    ],
)
def test_thoughts_of_another_provider_or_model_are_left_out_whole(part: OpaquePart) -> None:
    messages = (USER, AssistantMessage(text="ok", opaque=(part,)), USER)
    told = body(request(messages=messages, thinking="high"), BUDGETED)
    assert told["thinking"]["type"] == "enabled"
    assert told["messages"][1]["content"] == [{"type": "text", "text": "ok"}]


def test_thoughts_are_not_shown_while_the_model_may_not_think_and_again_when_it_may() -> None:
    messages = (USER, AssistantMessage(text="ok", opaque=(opaque(THOUGHT, {"text": 2}),)), USER)
    wishes: tuple[Thinking | None, ...] = (None, "none", "low")
    told = [body(request(messages=messages, thinking=wish), BUDGETED)["messages"][1]["content"] for wish in wishes]
    assert [len(content) for content in told] == [1, 1, 2]


def test_an_answer_of_thoughts_alone_is_left_out() -> None:
    messages = (USER, AssistantMessage(opaque=(opaque(THOUGHT),)), USER)
    assert len(body(request(messages=messages, thinking="high"), BUDGETED)["messages"]) == 1


def test_calls_that_began_without_a_thought_are_answered_without_thinking() -> None:
    foreign = (USER, calling("a1"), result("a1"))
    made = call(request(messages=foreign, tools=(ADD,), thinking="high"), BUDGETED)
    assert made.body["thinking"] == {"type": "disabled"}
    assert "until the next question" in made.warnings[0]
    assert body(request(messages=(*foreign, AssistantMessage(text="ok"), USER), tools=(ADD,), thinking="high"),
                BUDGETED)["thinking"]["type"] == "enabled"  # fmt: skip
    own = (USER, calling("a1", opaque=(opaque(THOUGHT, {"call": 0}),)), result("a1"), calling("b2"), result("b2"))
    assert body(request(messages=own, tools=(ADD,), thinking="high"), BUDGETED)["thinking"]["type"] == "enabled"


# -- thinking
@pytest.mark.parametrize(
    "model, wish, config, effort",
    [
        (OLD, "high", None, None),
        (BUDGETED, None, None, None),
        (BUDGETED, "none", {"type": "disabled"}, None),
        (BUDGETED, "low", {"type": "enabled", "budget_tokens": 2_048}, None),
        (BUDGETED, "xhigh", {"type": "enabled", "budget_tokens": 3_000}, None),
        (BUDGETED, 500, {"type": "enabled", "budget_tokens": 1_024}, None),
        ("claude-opus-4-6", 2_000, {"type": "enabled", "budget_tokens": 2_000}, None),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive", "display": "summarized"}, "max"),
        (ADAPTIVE, None, None, None),
        (ADAPTIVE, "none", {"type": "disabled"}, None),
        (ADAPTIVE, "minimal", {"type": "adaptive", "display": "summarized"}, "low"),
        (ADAPTIVE, 9_000, {"type": "adaptive", "display": "summarized"}, "medium"),
        ("claude-opus-5", None, {"type": "adaptive", "display": "summarized"}, None),
        ("claude-sonnet-5-5", "none", {"type": "between_tools"}, None),
    ],
)
def test_thinking_is_asked_for_in_the_form_the_model_takes(
    model: str, wish: Thinking | None, config: Json | None, effort: str | None
) -> None:
    told = body(request(thinking=wish), model)
    assert told.get("thinking") == config
    assert told.get("output_config", {}).get("effort") == effort


def test_what_could_not_be_asked_for_is_told() -> None:
    for model, wish in ((OLD, "high"), (BUDGETED, 500), (BUDGETED, 100_000), (ADAPTIVE, 9_000), (ALWAYS, "none")):
        assert len(call(request(thinking=wish), model).warnings) == 1, (model, wish)
    assert "no room" in call(request(thinking="low", max_output_tokens=1_200), BUDGETED).warnings[0]


def test_thoughts_are_left_out_of_the_stream_where_nobody_wants_them() -> None:
    for model in (BUDGETED, ADAPTIVE):
        assert body(request(thinking="high", include_thoughts=False), model)["thinking"]["display"] == "omitted"


def test_betas_stand_beside_those_of_the_endpoint() -> None:
    made = call(request(), ALWAYS, headers={"Anthropic-Beta": "mine-2026-01-01"})
    assert made.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert made.headers["anthropic-beta"] == "mine-2026-01-01,thinking-binding-controls-2026-08-01"
    between = call(request(tools=(ADD,), thinking="high"), BUDGETED)
    assert between.headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"
