"""What a call may cost: set aside before it is made, so that no cap is crossed and the last answer still fits."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.limits import FIELDS, Limits, crossed
from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.price import Price
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop.budget import (
    LEAST_OUTPUT,
    OVERESTIMATE,
    PATIENCE,
    Overrun,
    Prices,
    Reserve,
    cap_name,
    counted,
    final_cap,
    heard_of,
    kept_for_the_end,
    planner_cap,
    replanner_cap,
    reserve,
    round_cap,
    too_low,
)
from edge_agent.loop.estimates import estimated_input
from edge_agent.loop.prompt_hash import prompt_hash

CAPS = st.none() | st.integers(1, 100_000)
DOLLARS = st.none() | st.floats(1e-6, 10)
TOKENS = st.integers(0, 50_000)
DEAR = Prices(call=Price(input=1.0, output=8.0), last=Price(input=3.0, output=15.0))
LIMITS = st.builds(
    Limits,
    max_input_tokens=CAPS,
    max_output_tokens=CAPS,
    max_reasoning_tokens=CAPS,
    max_total_tokens=CAPS,
    max_cost_usd=DOLLARS,
)


@given(LIMITS, st.tuples(TOKENS, TOKENS, TOKENS), TOKENS, st.integers(1, 32_000))
def test_what_is_reserved_never_crosses_a_cap_and_leaves_room_for_the_end(
    limits: Limits, used: tuple[int, int, int], tokens: int, cap: int
) -> None:
    spent = Amount(input=used[0], output=used[1], reasoning=min(used[1], used[2]), usd=used[0] * 1e-6)
    kept = kept_for_the_end(limits, 128_000, 100)
    held = reserve(limits, spent, tokens, cap, kept, DEAR)
    if isinstance(held, Overrun):
        assert held.cap in [getattr(limits, field) for field in FIELDS.values()]
        return
    assert min(cap, LEAST_OUTPUT) <= held.cap <= cap
    assert held.amount.output == held.cap
    assert held.cap < held.most <= PATIENCE * held.cap
    worst = Amount(
        input=tokens,
        output=held.most,
        reasoning=held.most if limits.max_reasoning_tokens else 0,
        usd=DEAR.call.at_most(tokens, held.most),
    )
    assert crossed(limits, spent + worst) is None, "also where the provider does not keep to its cap"
    after = reserve(limits, spent + worst, 100 + held.most, LEAST_OUTPUT, Amount(), replace(DEAR, call=DEAR.last))
    assert isinstance(after, Reserve), "the answer at the end still fits, with what was said now before it"


def test_a_cap_that_is_nearly_used_up_shrinks_the_call_and_then_refuses_it() -> None:
    limits = Limits(max_output_tokens=1_000)
    held = reserve(limits, Amount(output=400), 10, 5_000, Amount(output=100))
    assert held == Reserve(amount=Amount(input=10, output=357), cap=357, most=500, by="output")
    assert reserve(limits, Amount(output=850), 10, 5_000, Amount(output=100)) == Overrun(
        kind="output", used=850, cap=1_000
    )


def test_a_call_that_no_cap_bounds_is_left_at_twice_its_own() -> None:
    held = reserve(Limits(max_total_tokens=10**6), Amount(), 10, 100, Amount())
    assert held == Reserve(amount=Amount(input=10, output=100), cap=100, most=200, by=None)


def test_what_is_said_now_comes_back_as_input_of_the_answer_at_the_end() -> None:
    kept = Amount(input=100, output=90)
    held = reserve(Limits(max_total_tokens=1_000), Amount(), 100, 5_000, kept)
    assert isinstance(held, Reserve)
    assert held.most == (1_000 - 100 - 190) // 2
    assert isinstance(reserve(Limits(max_input_tokens=250), Amount(), 100, 5_000, kept), Overrun)


@pytest.mark.parametrize(
    "limits,kind",
    [
        (Limits(max_input_tokens=100), "input"),
        (Limits(max_output_tokens=100), "output"),
        (Limits(max_reasoning_tokens=100), "reasoning"),
        (Limits(max_total_tokens=100), "total"),
        (Limits(max_cost_usd=100.0), "usd"),
    ],
)
def test_an_overrun_names_the_cap_and_what_was_used_of_it(limits: Limits, kind: str) -> None:
    spent = Amount(input=90, output=90, reasoning=90, usd=99.9999)
    over = reserve(limits, spent, 20, 4_000, Amount(), DEAR)
    assert isinstance(over, Overrun)
    used = {"total": 180, "usd": 99.9999}.get(kind, 90)
    assert (over.kind, over.used, over.cap) == (kind, used, 100)


def test_a_provider_that_counted_more_than_the_cap_ends_it() -> None:
    assert reserve(Limits(max_total_tokens=1_000), Amount(input=5_000), 10, 100, Amount()) == Overrun(
        kind="total", used=5_000, cap=1_000
    )


def test_dollars_are_reserved_by_the_price_of_the_model_and_kept_by_that_of_the_last_one() -> None:
    held = reserve(Limits(max_cost_usd=1.0), Amount(), 1_000, 500, Amount(), DEAR)
    assert isinstance(held, Reserve)
    assert held.amount.usd == pytest.approx((1_000 * 1.0 + 500 * 8.0) / 1e6)
    limits = Limits(max_cost_usd=0.01)
    kept = kept_for_the_end(limits, 128_000, 200)
    small = reserve(limits, Amount(), 100, 5_000, kept, DEAR)
    assert isinstance(small, Reserve)
    last = DEAR.last.at_most(200, math.ceil(OVERESTIMATE * (0.01 / 8 / 15e-6)))
    each = DEAR.call.per_output + DEAR.last.per_input
    assert small.most == int((0.01 - 100e-6 - last) / each)


@pytest.mark.parametrize(
    "window,plan,of_a_round,replan,of_the_end",
    [(128_000, 2_000, 8_000, 1_000, 4_000), (8_000, 512, 2_048, 256, 1_024), (1_000, 500, 500, 256, 500)],
)
def test_without_a_cap_of_the_caller_a_share_of_the_window_is_taken(
    window: int, plan: int, of_a_round: int, replan: int, of_the_end: int
) -> None:
    assert planner_cap(Limits(), window) == plan
    assert round_cap(Limits(), window) == of_a_round
    assert replanner_cap(Limits(), window) == replan
    assert final_cap(Limits(), window) == of_the_end


def test_the_callers_own_cap_wins_and_each_cap_has_a_name() -> None:
    limits = Limits(max_output_tokens_per_call=123)
    assert round_cap(limits, 128_000) == final_cap(limits, 128_000) == planner_cap(limits, 128_000) == 123
    assert cap_name("round", limits, None) == "max_output_tokens_per_call"
    assert cap_name("round", Limits(), None) == "1/16 of the context window"
    assert cap_name("final", limits, "usd") == "max_cost_usd"


def test_an_eighth_of_the_tightest_output_cap_is_kept_for_the_end() -> None:
    limits = Limits(max_output_tokens=8_000, max_total_tokens=80_000)
    assert kept_for_the_end(limits, 128_000, 50) == Amount(input=50, output=math.ceil(OVERESTIMATE * 1_000))
    least = math.ceil(OVERESTIMATE * LEAST_OUTPUT)
    assert kept_for_the_end(Limits(max_reasoning_tokens=100), 128_000, 50) == Amount(
        input=50, output=least, reasoning=least
    )


# -- the smallest that works
@given(st.sampled_from(["input", "output", "reasoning", "total", "usd"]), st.integers(1, 5_000), st.integers(1, 5_000))
def test_the_smallest_cap_that_works_works_and_one_less_does_not(kind: str, first: int, final: int) -> None:
    field = next(field for name, field in FIELDS.items() if name == kind)

    def low(value: float) -> tuple[str, float] | None:
        wanted: dict[str, Any] = {field: value}
        limits = Limits(max_steps=None, **wanted)
        return too_low(limits, first_input=first, final_input=final, cap=8_000, window=128_000, prices=DEAR)

    found = low(1e-6 if kind == "usd" else 1)
    assert found is not None
    assert found[0] == field
    assert low(found[1]) is None
    assert low(found[1] - (1e-6 if kind == "usd" else 1)) == found


# -- what is charged
CAPPED = Limits(max_total_tokens=1_000)


ESTIMATE = Usage(input=100, output=100, reasoning=40)


def test_the_providers_count_is_taken_and_where_it_has_none_the_estimate() -> None:
    for reported in (Usage(input=80, output=70, reasoning=30), Usage(input=800, output=700, reasoning=600)):
        assert counted(CAPPED, reported, ESTIMATE) == reported
    assert counted(CAPPED, None, ESTIMATE) == counted(Limits(), None, ESTIMATE) == ESTIMATE


def test_under_a_cap_a_count_of_less_than_half_the_estimate_is_not_believed() -> None:
    reported = Usage(input=49, output=10, reasoning=0, cached=5)
    assert counted(CAPPED, reported, ESTIMATE) == replace(ESTIMATE, cached=5)
    assert counted(Limits(), reported, ESTIMATE) == reported


def test_an_attempt_that_broke_off_costs_at_least_what_was_received() -> None:
    reported = Usage(input=90, output=60, reasoning=30)
    assert heard_of(CAPPED, reported, ESTIMATE) == Usage(input=90, output=100, reasoning=40)
    assert heard_of(Limits(), reported, ESTIMATE) == reported
    assert heard_of(Limits(), Usage(input=90, output=1), ESTIMATE) == Usage(input=90, output=100, reasoning=40)
    assert heard_of(Limits(), None, ESTIMATE) == ESTIMATE


# -- estimates
def test_everything_a_request_sends_is_estimated_and_hashed() -> None:
    bare = ModelRequest(system="Be brief.", messages=(UserMessage(text="Hello"),))
    tool = ToolSpec(name="look", description="Look up.", parameters={"type": "object", "properties": {}})
    more = replace(bare, tools=(tool,))
    assert 0 < estimated_input(bare) < estimated_input(more)
    assert prompt_hash(bare) == prompt_hash(ModelRequest(system=bare.system, messages=bare.messages))
    assert prompt_hash(bare) != prompt_hash(more)
    assert prompt_hash(bare) == prompt_hash(replace(bare, max_output_tokens=5, metadata={"run": "x"}))


@pytest.mark.parametrize(
    "less,more",
    [
        (UserMessage(text="Hello"), UserMessage(text="Hello to you all")),
        (AssistantMessage(text="a"), AssistantMessage(text="a", calls=(ToolCall(id="c", name="look", arguments={}),))),
        (AssistantMessage(text="a"), AssistantMessage(text="a", opaque=(OpaquePart(provider="p", data={"s": "x"}),))),
        (
            ToolMessage(call_id="c", name="l", text="a", ok=True),
            ToolMessage(call_id="c", name="look", text="a b", ok=True),
        ),
    ],
)
def test_every_part_of_a_message_is_estimated(less: UserMessage, more: UserMessage) -> None:
    small = ModelRequest(system="", messages=(less,))
    assert estimated_input(small) < estimated_input(replace(small, messages=(more,)))


def test_a_schema_for_the_answer_is_a_part_of_the_input() -> None:
    bare = ModelRequest(system="", messages=())
    assert estimated_input(bare) < estimated_input(replace(bare, output_schema={"type": "object"}))
