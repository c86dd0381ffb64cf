"""Caps: what they may be, how a request lowers them, which one an amount crosses."""

import math

import pytest

from edge_agent.core.limits import Limits, crossed
from edge_agent.core.usage import Amount, total_of


@pytest.mark.parametrize("value", [0, -1, math.nan])
def test_a_cap_is_greater_than_nothing(value: float) -> None:
    with pytest.raises(ValueError, match=r"limits\.max_seconds must be greater than 0, or absent for no cap"):
        Limits(max_seconds=value)


def test_a_request_lowers_caps_and_sets_those_that_are_not_set() -> None:
    limits = Limits(max_steps=10).lowered_by({"max_steps": 3, "max_total_tokens": 500})
    assert (limits.max_steps, limits.max_total_tokens, limits.max_tool_calls) == (3, 500, None)


def test_a_request_cannot_raise_a_cap_or_name_one_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match=r"limits\.max_steps may be at most 10, the agent's own limit; got 11"):
        Limits(max_steps=10).lowered_by({"max_steps": 11})
    with pytest.raises(ValueError, match=r"limits\.max_stepz is not a limit; known are max_steps"):
        Limits().lowered_by({"max_stepz": 1})


@pytest.mark.parametrize(
    "limits,spent,kind",
    [
        (Limits(max_input_tokens=10), Amount(input=11), "input"),
        (Limits(max_output_tokens=10), Amount(output=11), "output"),
        (Limits(max_reasoning_tokens=10), Amount(reasoning=11), "reasoning"),
        (Limits(max_total_tokens=10), Amount(input=6, output=5), "total"),
        (Limits(max_tool_calls=1), Amount(tool_calls=2), "tool-calls"),
    ],
)
def test_a_cap_is_crossed_by_what_is_above_it(limits: Limits, spent: Amount, kind: str) -> None:
    over = crossed(limits, spent)
    assert over is not None
    assert over[0] == kind


def test_what_reaches_a_cap_does_not_cross_it() -> None:
    assert crossed(Limits(max_total_tokens=10, max_tool_calls=1), Amount(input=4, output=6, tool_calls=1)) is None
    assert crossed(Limits(max_steps=None), Amount(input=10**9)) is None


def test_amounts_are_added_kind_by_kind() -> None:
    one, other = Amount(input=1, output=2, reasoning=3, tool_calls=4, usd=0.5), Amount(input=10, usd=0.25)
    assert one + other == Amount(input=11, output=2, reasoning=3, tool_calls=4, usd=0.75)
    assert total_of([]) == Amount()
