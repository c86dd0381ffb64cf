"""What a call may cost: set aside before it is made, so that no cap is crossed and the last answer still fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.limits import Limits, crossed
from edge_agent.core.messages import AssistantMessage, ToolCall, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop.budget import (
    LEAST_OUTPUT,
    Overrun,
    Reserve,
    estimated_input,
    estimated_output,
    final_cap,
    kept_for_the_end,
    prompt_hash,
    reserve,
    round_cap,
)

CAPS = st.none() | st.integers(1, 100_000)
TOKENS = st.integers(0, 50_000)


LIMITS = st.builds(
    Limits, max_input_tokens=CAPS, max_output_tokens=CAPS, max_reasoning_tokens=CAPS, max_total_tokens=CAPS
)


@given(LIMITS, st.tuples(TOKENS, TOKENS, TOKENS), TOKENS, st.integers(1, 32_000))
def test_what_is_reserved_never_crosses_a_cap(
    limits: Limits, used: tuple[int, int, int], tokens: int, cap: int
) -> None:
    spent = Amount(input=used[0], output=used[1], reasoning=min(used[1], used[2]))
    kept = kept_for_the_end(limits, 128_000, 100)
    held = reserve(limits, spent, tokens, cap, kept)
    if isinstance(held, Reserve):
        assert crossed(limits, spent + kept + held.amount) is None
        assert LEAST_OUTPUT <= held.cap <= max(cap, LEAST_OUTPUT)
        assert held.amount.output == held.cap
    else:
        caps = (limits.max_input_tokens, limits.max_output_tokens, limits.max_reasoning_tokens, limits.max_total_tokens)
        assert held.cap in caps


def test_a_cap_that_is_nearly_used_up_shrinks_the_call_and_then_refuses_it() -> None:
    limits = Limits(max_output_tokens=1_000)
    assert reserve(limits, Amount(output=400), 10, 5_000, Amount(output=100)) == Reserve(
        amount=Amount(input=10, output=500), cap=500
    )
    assert reserve(limits, Amount(output=850), 10, 5_000, Amount(output=100)) == Overrun(
        kind="output", used=850, cap=1_000
    )


@pytest.mark.parametrize(
    "limits,kind",
    [
        (Limits(max_input_tokens=100), "input"),
        (Limits(max_output_tokens=100), "output"),
        (Limits(max_reasoning_tokens=100), "reasoning"),
        (Limits(max_total_tokens=100), "total"),
    ],
)
def test_an_overrun_names_the_cap_and_what_was_used_of_it(limits: Limits, kind: str) -> None:
    over = reserve(limits, Amount(input=90, output=90, reasoning=90), 20, 4_000, Amount())
    assert isinstance(over, Overrun)
    assert (over.kind, over.used, over.cap) == (kind, 180 if kind == "total" else 90, 100)


@pytest.mark.parametrize(
    "window,of_a_round,of_the_end", [(128_000, 8_000, 4_000), (8_000, 2_048, 1_024), (1_000, 500, 500)]
)
def test_without_a_cap_of_the_caller_a_share_of_the_window_is_taken(
    window: int, of_a_round: int, of_the_end: int
) -> None:
    assert round_cap(Limits(), window) == of_a_round
    assert final_cap(Limits(), window) == of_the_end


def test_the_callers_own_cap_wins() -> None:
    limits = Limits(max_output_tokens_per_call=123)
    assert round_cap(limits, 128_000) == final_cap(limits, 128_000) == 123


def test_an_eighth_of_the_tightest_output_cap_is_kept_for_the_end() -> None:
    assert kept_for_the_end(Limits(max_output_tokens=8_000, max_total_tokens=80_000), 128_000, 50) == Amount(
        input=50, output=1_000
    )
    assert kept_for_the_end(Limits(max_reasoning_tokens=100), 128_000, 50) == Amount(
        input=50, output=LEAST_OUTPUT, reasoning=LEAST_OUTPUT
    )
    assert kept_for_the_end(Limits(max_total_tokens=10**9), 128_000, 50).output == final_cap(Limits(), 128_000)


def test_everything_a_request_sends_is_estimated_and_hashed() -> None:
    bare = ModelRequest(system="Be brief.", messages=(UserMessage(text="Hello"),))
    tool = ToolSpec(name="look", description="Look up.", parameters={"type": "object", "properties": {}})
    more = ModelRequest(system=bare.system, messages=bare.messages, tools=(tool,))
    assert 0 < estimated_input(bare) < estimated_input(more)
    assert prompt_hash(bare) == prompt_hash(ModelRequest(system=bare.system, messages=bare.messages))
    assert prompt_hash(bare) != prompt_hash(more)
    assert prompt_hash(bare) == prompt_hash(
        ModelRequest(system=bare.system, messages=bare.messages, max_output_tokens=5, metadata={"run": "x"})
    )


def test_the_output_of_an_answer_is_its_text_its_thought_and_its_calls() -> None:
    call = ToolCall(id="c", name="look", arguments={"q": "x"})
    assert estimated_output(AssistantMessage()) == 0
    alone = estimated_output(AssistantMessage(text="Hello"))
    assert estimated_output(AssistantMessage(text="Hello", calls=(call,)), "Hm") > alone > 0
