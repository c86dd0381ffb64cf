"""The log in memory, always in step with the durable one; and what a whole log must look like."""

import dataclasses

import pytest

from edge_agent.core.errors import Closed
from edge_agent.core.events import TERMINAL_TYPES, Fault, RunCancelled, RunResumed, RunStarted
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Draft, Journal, is_terminal
from edge_agent.core.ports import Record
from edge_agent.core.usage import Amount, Usage
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import assert_sound, in_memory_log
from tests.contracts.log_contract import created, fault
from tests.unit.loop_kit import Setting, live
from tests.unit.test_loop_direct import look


class Clock:
    def now(self) -> int:
        return 1_000_000


def fresh() -> tuple[Journal, Journal]:
    """A journal, and what a restart would see of it."""
    log = in_memory_log()
    journal = Journal(log, Clock(), Hub())
    journal.append("note", Draft(key="run", event=created()))
    return journal, journal


def test_an_append_is_one_batch_of_one_life_and_a_restart_sees_the_same() -> None:
    journal, _ = fresh()
    last = journal.append(
        "loop",
        Draft(key="a/b", event=fault("1"), money={"a": Amount(input=1)}),
        Draft(key="a/c", event=fault("2"), money={"a": Amount(input=5)}, by="note"),
    )
    assert (last.seq, last.batch, last.life, last.by, last.agent) == (3, 3, 0, "note", "assistant")
    assert [r.batch for r in journal.in_order()] == [1, 3, 3]
    again = Journal(journal.log, Clock(), Hub())
    assert again.in_order() == journal.in_order()
    assert again.spent == journal.spent == Amount(input=5)
    assert again.under == journal.under == {"a": ["a/b", "a/c"]}
    assert again.last == last


def test_an_append_the_log_refuses_changes_nothing_in_memory() -> None:
    journal, _ = fresh()
    with pytest.raises(ValueError, match="run is on record already"):
        journal.append("loop", Draft(key="new", event=fault("1")), Draft(key="run", event=fault("2")))
    assert list(journal.records) == ["run"]
    assert journal.log.load() == journal.in_order()


def test_after_its_end_a_run_takes_nothing_but_the_next_life() -> None:
    journal, _ = fresh()
    end = journal.append("note", Draft(key="end/0", event=RunCancelled(usage=Usage())))
    assert is_terminal(end)
    with pytest.raises(Closed, match=r"run\.cancelled"):
        journal.append("input", Draft(key="late", event=fault("late")))
    journal.append("note", Draft(key="life/1", event=RunResumed(reason="request")), new_life=True)
    assert journal.ended is None
    assert journal.append("loop", Draft(key="on", event=fault("on"))).life == 1


def test_an_event_is_found_by_its_key_and_kind() -> None:
    journal, _ = fresh()
    journal.append("loop", Draft(key="f", event=fault("1")))
    assert journal.event("f", Fault) == fault("1")
    assert journal.event("f", RunStarted) is None
    assert journal.event("g", Fault) is None


# -- soundness, of which the tests of kills make much
def whole() -> list[Record]:
    model = ScriptedModel(answers=[Answer(calls=(("look", {"q": "a"}),)), "done"])
    return live(Setting(model=model, tools=[look])).records


def test_the_log_of_a_run_is_sound() -> None:
    assert_sound(whole())


@pytest.mark.parametrize(
    "drop,said",
    [
        ("s1/r1", "seq 4 at place 3"),
        ("s1/r1/a0/end", "the attempt s1/r1/a0 has no end"),
        ("s1/r1/c0/result", "the call s1/r1/c0 has no outcome"),
        ("end/0", "the ends are those of lives"),
    ],
)
def test_a_log_with_something_missing_is_not_sound(drop: str, said: str) -> None:
    records = [record for record in whole() if record.key != drop]
    with pytest.raises(AssertionError, match=said):
        assert_sound(records)


def test_a_log_that_goes_on_after_an_end_or_says_a_key_twice_is_not_sound() -> None:
    records = whole()
    late = dataclasses.replace(records[-2], seq=len(records) + 1, batch=len(records) + 1, key="late")
    with pytest.raises(AssertionError, match="late follows the end of a life"):
        assert_sound([*records, late])
    twice = dataclasses.replace(records[2], seq=len(records) + 1, batch=99)
    with pytest.raises(AssertionError, match=r"s1/r1 is on record 2 times; the batch of s1/r1 is no record's"):
        assert_sound([*records, twice])
    wrong = dataclasses.replace(records[-1], key="end/7")
    with pytest.raises(AssertionError, match="end/7 ends life 0"):
        assert_sound([*records[:-1], wrong])
    never = [r for r in records if "/c0/" not in r.key]
    with pytest.raises(AssertionError, match="s1/r1/c0 was never answered"):
        assert_sound(never)
    assert records[-1].type in TERMINAL_TYPES
