"""What a compaction may be set to, and the pure part of it: a history with a summary in the place of older turns."""

from typing import Any

import pytest

from edge_agent import Compaction, Turn, compact_history
from edge_agent.core.errors import ConfigError
from edge_agent.core.history import SUMMARY, older_turns
from edge_agent.wire.compaction import compaction_fields
from edge_agent.wire.settings import Settings

TURNS = tuple(Turn(role="user" if n % 2 == 0 else "assistant", text=f"turn {n}") for n in range(7))


@pytest.mark.parametrize(
    "field,value",
    [
        ("auto", "yes"),
        ("threshold_ratio", 0),
        ("threshold_ratio", 1.2),
        ("threshold_ratio", True),
        ("threshold_tokens", 0),
        ("threshold_tokens", 1e5),
        ("keep_recent_turns", -1),
        ("keep_recent_steps", 1.5),
        ("keep_tool_results", "3"),
        ("summary_max_tokens", 5),
        ("max_tool_output_chars", 10),
        ("max_tool_output_chars", -1),
        ("clear_tool_results_after", 2),
        ("clear_tool_results_after", None),
    ],
)
def test_a_wrong_value_is_refused_with_the_field_what_it_may_be_and_an_example(field: str, value: Any) -> None:
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=rf"compaction\.{field} must be .*; got .*\. Example: Compaction\({field}="):
        Compaction(**wrong)


def test_the_ends_of_what_may_be_set_are_fine() -> None:
    Compaction(threshold_ratio=1, clear_tool_results_after=0, max_tool_output_chars=0, keep_recent_steps=0)
    Compaction(threshold_tokens=64, summary_max_tokens=64, max_tool_output_chars=1_000, keep_recent_turns=0)


def test_the_room_is_a_share_of_the_window_and_leaves_some_for_the_answer() -> None:
    assert Compaction().room(100_000, 2_000) == 85_000
    assert Compaction(threshold_tokens=10_000).room(100_000, 2_000) == 10_000
    assert Compaction(threshold_ratio=1).room(100_000, 2_000) == 98_000
    assert Compaction().room(8_000, 1_000_000) == 6_000


def test_older_turns_become_one_and_the_history_that_was_given_stays() -> None:
    given = list(TURNS)
    compacted = compact_history(given, " they met \n", keep_recent_turns=2)
    assert given == list(TURNS)
    assert compacted == (Turn(role="assistant", text=f"{SUMMARY}they met"), *TURNS[-2:])
    assert compact_history(compacted, "again", keep_recent_turns=2) == compacted
    assert compact_history(TURNS, "  ") == TURNS
    assert compact_history(TURNS[:4], "too short") == TURNS[:4]
    assert compact_history((), "nothing") == ()


def test_nothing_is_older_than_an_earlier_summary_alone() -> None:
    summary = Turn(role="assistant", text=f"{SUMMARY}they met")
    assert older_turns((summary, *TURNS[:2]), 2) == ()
    assert older_turns((summary, *TURNS[:3]), 2) == (summary, TURNS[0])
    assert older_turns(TURNS, 0) == TURNS
    assert older_turns(TURNS[:3], 4) == ()


@pytest.mark.parametrize(
    "text,fields",
    [
        ("on", {"auto": True}),
        ("OFF", {"auto": False}),
        ('{"threshold_tokens": null, "keep_recent_turns": 6}', {"threshold_tokens": None, "keep_recent_turns": 6}),
        ("{}", {}),
    ],
)
def test_the_variable_is_on_off_or_some_fields(text: str, fields: dict[str, Any]) -> None:
    assert compaction_fields(text) == fields
    assert Settings.from_env({"EDGE_AGENT_COMPACTION": text}).compaction == fields


@pytest.mark.parametrize(
    "text,fault",
    [
        ("maybe", "is on, off, or a JSON object"),
        ("[1]", "is on, off, or a JSON object"),
        ('{"keep_turns": 1}', "keep_turns is no field of it; known are auto, threshold_ratio"),
        ('{"threshold_ratio": 7}', "threshold_ratio must be a share of the context window"),
    ],
)
def test_a_wrong_variable_says_what_is_wrong_and_shows_an_example(text: str, fault: str) -> None:
    settings = Settings.from_env({"EDGE_AGENT_COMPACTION": text})
    with pytest.raises(ConfigError, match=fault) as error:
        _ = settings.compaction
    assert error.value.setting == "EDGE_AGENT_COMPACTION"
    assert compaction_fields(error.value.example.partition("=")[2])
    assert [str(found) for found in settings.faults()] == [str(error.value)]
