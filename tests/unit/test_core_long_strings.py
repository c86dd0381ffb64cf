"""Long strings leave an event and come back; its shape stays."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.long_strings import KEPT, LONG, cut, restore

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_what_is_cut_is_restored(data: dict[str, Any]) -> None:
    kept, references, whole = cut(data, long=3)
    restore(kept, references, whole.__getitem__)
    assert kept == data


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_nothing_longer_than_the_limit_stays_and_nothing_else_is_touched(data: dict[str, Any]) -> None:
    kept, references, _ = cut(data)
    assert (kept, references) == (data, [])


def test_a_long_string_leaves_its_beginning_and_a_reference() -> None:
    long = "x" * (LONG + 1)
    kept, references, whole = cut({"a": [{"b": long}, "short"], "c": "y" * LONG})
    assert kept == {"a": [{"b": "x" * KEPT}, "short"], "c": "y" * LONG}
    assert references == [{"path": ["a", 0, "b"], "file": next(iter(whole)), "chars": LONG + 1}]
    assert list(whole.values()) == [long]


def test_two_equal_long_strings_are_one_file() -> None:
    long = "x" * (LONG + 1)
    _, references, whole = cut({"a": long, "b": long})
    assert len(references) == 2
    assert len(whole) == 1
