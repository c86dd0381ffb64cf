import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_agent.core.arguments import MAX_DEPTH, parse_arguments


@pytest.mark.parametrize("text", ["", "  \n", "{}", '""', '"{}"'])
def test_nothing_is_an_empty_object(text: str) -> None:
    assert parse_arguments(text) == ({}, None)


def test_an_object_that_was_encoded_twice_is_decoded_twice() -> None:
    assert parse_arguments(json.dumps(json.dumps({"a": "ü"}))) == ({"a": "ü"}, None)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1 "b"', '{"a": ', "null", "[1]", "3", "true", '"text"', '"[1]"', json.dumps(json.dumps(json.dumps({}))),
     '{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', '{"a": 1e999}', '"{\\"a\\": NaN}"',
     '{"a": "\\ud83d"}', '{"a": "\ud83d"}',
     '{"a": 1} {"b": 2}', "{'a': 1}", '{"n": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_what_is_no_object_is_kept_as_text(text: str) -> None:
    assert parse_arguments(text) == ({}, text)


@pytest.mark.parametrize("text", ["[" * 100_000, "{" * 100_000, '{"a":' * 100_000, '"' + "[" * 100_000 + '"'])
def test_endless_depth_is_malformed_and_not_a_crash(text: str) -> None:
    assert parse_arguments(text) == ({}, text)


def test_depth_is_bounded_and_brackets_in_strings_do_not_count() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert parse_arguments(nested(MAX_DEPTH))[1] is None
    assert parse_arguments(nested(MAX_DEPTH + 1))[1] is not None
    text = json.dumps({"a": "[" * 500 + '\\"' + "{" * 500})
    assert parse_arguments(text) == (json.loads(text), None)


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse_arguments('{"a": "\\ud83d\\ude00"}') == ({"a": "\U0001f600"}, None)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=10,
)  # fmt: skip
keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@settings(deadline=None)
@given(st.dictionaries(keys, values, max_size=4))
def test_every_object_comes_back_equal(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        assert parse_arguments(text) == ({}, text)
    else:
        assert parse_arguments(text) == (value, None)


@settings(deadline=None)
@given(st.text() | st.text(alphabet='{}[]",:\\ ae1NI'))
def test_no_text_raises_and_what_comes_back_can_be_written(text: str) -> None:
    arguments, malformed = parse_arguments(text)
    assert malformed in (None, text)
    json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in arguments.values())
