"""The estimate of tokens, by class of character: meant never to be below the real count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.tokens import estimate


@pytest.mark.parametrize(
    "text,tokens",
    [
        ("", 0),
        ("abcde", 3),  # letters: 2.5 a token
        ("12345", 6),  # digits: one each
        ("{}[]:", 6),  # punctuation: one each
        ("\n\n", 3),  # line breaks: one each
        ("    ", 2),  # blanks: a quarter each
        ("\t\t\t\t", 2),
        ("привет", 4),  # other alphabets: two a token
        ("éüöàñç", 4),
        ("東京都", 4),  # Chinese, Japanese, Korean: one each
        ("한국어", 4),
        ("👍👍", 3),  # emoji: one each
    ],
)
def test_each_class_of_characters_has_its_weight(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


@given(st.text(), st.text())
def test_more_text_is_never_fewer_tokens_and_apart_never_much_more(one: str, other: str) -> None:
    assert estimate(one + other) >= estimate(one)
    assert estimate(one) + estimate(other) <= estimate(one + other) + 2
