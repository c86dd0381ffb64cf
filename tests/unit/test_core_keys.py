"""Keys are structural: where something stands in the run, never what it says."""

import re

import pytest

from edge_agent.core import keys
from edge_agent.wire.run_ids import RUN_ID_PATTERN


def test_every_kind_of_record_has_its_own_key() -> None:
    assert [keys.life(0), keys.end(1), keys.cancel(1), keys.budget("total", 0)] == [
        "life/0",
        "end/1",
        "cancel/1",
        "budget/total/0",
    ]
    assert keys.attempt(keys.round_("s2", 1), 0) == "s2/r1/a0"
    assert keys.tool_call("s2/r1", 3) == "s2/r1/c3"


@pytest.mark.parametrize(
    "key,step,round_",
    [("s2/r1/a0", 2, 1), ("s12/r34/c0/call", 12, 34), ("final/a0", None, None), ("s1", 1, None), ("sx/ry", None, None)],
)
def test_step_and_round_are_read_from_a_key(key: str, step: int | None, round_: int | None) -> None:
    assert keys.step_of(key) == step
    assert keys.round_of(key) == round_


def test_the_scopes_of_a_key_are_all_that_holds_it() -> None:
    assert list(keys.scopes("s1/r2/c0/call")) == ["s1", "s1/r2", "s1/r2/c0"]
    assert list(keys.scopes("run")) == []


def test_a_digest_tells_values_apart_and_not_the_order_of_fields() -> None:
    assert keys.digest({"a": 1, "b": 2}) == keys.digest({"b": 2, "a": 1})
    assert keys.digest("a", "b") != keys.digest("ab")
    assert keys.digest([1]) != keys.digest(["1"])
    assert len(keys.digest("half \ud800 of a pair")) == 64


def test_a_call_id_has_nine_letters_or_digits_and_is_unique_in_a_run() -> None:
    ids = {keys.call_id("run", f"s1/r{r}/c{c}") for r in range(50) for c in range(20)}
    assert len(ids) == 1_000
    assert all(len(i) == 9 and i.isalnum() and i.isascii() for i in ids)
    assert keys.call_id("run", "s1/r1/c0") == keys.call_id("run", "s1/r1/c0")
    assert keys.call_id("run", "s1/r1/c0") != keys.call_id("other", "s1/r1/c0")


def test_the_id_of_an_inline_child_names_the_object_it_lies_in_and_no_other_id_does() -> None:
    longest = "a" * 128
    inline = keys.child(longest, "s1/r1/c0", inline=True)
    below, beside = (keys.child(inline, "s1/r1/c0", inline=flat) for flat in (True, False))
    assert [keys.object_of(run_id) for run_id in (longest, inline, below, beside)] == [longest] * 3 + [beside]
    assert keys.object_of(keys.child(beside, "s1/r1/c0", inline=True)) == beside
    assert all(re.fullmatch(RUN_ID_PATTERN, run_id) for run_id in (inline, below))
    within = [keys.within_object(run_id) for run_id in (longest, inline, below, beside)]
    assert (within[0], within[3], len(set(within))) == ("", "", 3)
    for other in ("my-in-box", "sub-in-x", f"sub-{'g' * 32}-in-x", f"sub-{'0' * 32}-in-"):
        assert (keys.object_of(other), keys.within_object(other)) == (other, "")


def test_an_idempotency_key_is_the_same_for_a_repeat_and_another_for_any_other_call() -> None:
    key = keys.idempotency_key("run", "s1/r1/c0", {"q": 1})
    assert key == keys.idempotency_key("run", "s1/r1/c0", {"q": 1})
    others = [("run", "s1/r1/c1", {"q": 1}), ("run", "s1/r1/c0", {"q": 2}), ("other", "s1/r1/c0", {"q": 1})]
    assert key not in {keys.idempotency_key(*other) for other in others}
