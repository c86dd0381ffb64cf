"""What may be written down: no half characters, no secrets, and never a changed name."""

import dataclasses
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.events import Fault, RecordedEvent, RunCreated, ToolCalled
from edge_agent.core.limits import Limits
from edge_agent.core.streamed import Streamed
from edge_agent.core.strings import in_event, in_value, well_formed
from edge_agent.wire import codec
from tests.wire.event_samples import RECORDED

SECRETS = ("hunter22hunter22", "hunter22", "sk-abcabcabd")


def clean(text: str) -> str:
    for secret in SECRETS:
        text = text.replace(secret, "[secret]")
    return text


def test_halves_of_characters_are_replaced_and_pairs_are_joined() -> None:
    assert well_formed("plain") == "plain"
    assert well_formed("é👍") == "é👍"
    assert well_formed("a\ud83d\udc4d") == "a👍"
    assert well_formed("a\ud800b") == "a\ufffdb"


@given(st.text(st.characters(codec=None, categories=("Cs", "L"))))
def test_what_is_well_formed_can_be_encoded_and_stays(text: str) -> None:
    once = well_formed(text)
    once.encode()
    assert well_formed(once) == once


def test_strings_are_changed_at_every_depth_and_the_rest_stays_what_it_is() -> None:
    value = {"a hunter22": ["x hunter22", 1, None, {"y": ("hunter22", 2.5)}]}
    assert in_value(value, clean) == {"a [secret]": ["x [secret]", 1, None, {"y": ("[secret]", 2.5)}]}
    untouched = {"a": [1, {"b": "c"}]}
    assert in_value(untouched, clean) is untouched


def test_free_text_is_masked_and_names_and_fixed_words_stay() -> None:
    called = ToolCalled(
        call_id="hunter22",
        name="hunter22",
        arguments={"hunter22": "hunter22"},
        idempotency_key="hunter22",
        read_only=True,
        safe_to_repeat=True,
        on_unknown="report",
        step=1,
        round=1,
    )
    masked = codec.masked(called, clean)
    assert masked == dataclasses.replace(called, arguments={"[secret]": "[secret]"})
    created = RunCreated(version=1, input="hunter22", agent_name="hunter22", models=("hunter22",), limits=Limits())
    assert codec.masked(created, clean) == dataclasses.replace(created, input="[secret]")


@pytest.mark.parametrize("event", RECORDED, ids=lambda event: event.type)
def test_an_event_without_secrets_is_the_very_same_and_one_with_them_still_reads_back(event: RecordedEvent) -> None:
    assert in_event(event, clean) is event
    shouted = in_event(event, str.upper)
    assert codec.decode(shouted.type, codec.encode(shouted)) == shouted
    assert shouted.type == event.type


def test_every_event_has_a_sample_here() -> None:
    assert {type(event) for event in RECORDED} == set(get_args(RecordedEvent))


def streamed(pieces: list[str]) -> list[str]:
    stream = Streamed(SECRETS, clean)
    return [*(stream.feed(piece) for piece in pieces), stream.rest()]


def test_a_piece_is_shown_at_once_where_nothing_can_begin_in_it() -> None:
    assert streamed(["one ", "two ", "three"]) == ["one ", "two ", "three", ""]


def test_a_secret_is_hidden_however_it_is_cut_into_pieces() -> None:
    text = "the key is hunter22, or sk-abcabcabd; hunter22hunter22 is no hunt"
    for size in range(1, len(text)):
        shown = "".join(streamed([text[at : at + size] for at in range(0, len(text), size)]))
        assert "hunter22" not in shown
        assert "sk-abcabcabd" not in shown
        assert shown.startswith("the key is [secret], or [secret]; ")
        assert shown.endswith(" is no hunt")


def test_a_pair_of_surrogates_that_comes_in_two_pieces_is_one_character() -> None:
    assert streamed(["a\ud83d", "\udc4db"]) == ["a", "👍b", ""]
    assert streamed(["a\ud83d"]) == ["a", "\ufffd"]


@given(st.lists(st.text(alphabet="hunter2 sk-abcd", max_size=9), max_size=12))
def test_what_is_shown_joined_holds_no_secret(pieces: list[str]) -> None:
    shown = "".join(streamed(pieces))
    assert not any(secret in shown for secret in SECRETS)


def test_a_masked_fault_is_masked_once() -> None:
    once = codec.masked(Fault(kind="tool", message="hunter22", action="continued"), clean)
    assert codec.masked(once, clean) is once
