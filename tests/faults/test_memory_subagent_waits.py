"""Parents whose subagents take long: too long, longer than a handler has, or as long as a person thinks."""

import itertools

import pytest

from edge_agent import Limits
from edge_agent.core.events import (
    RunWaiting,
)
from edge_agent.core.model import ModelRequest
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing import Kill
from edge_agent.testing.faults import When
from tests.conftest import Figure
from tests.faults.families import (
    approves,
    cancels,
    tasks,
)
from tests.faults.family_world import BOSS, Family, FamilyWorld, Person, check

WHEN: tuple[When, ...] = ("before", "after")


def test_a_child_that_takes_too_long_is_given_up_and_says_later_what_it_cost(
    isolation: Isolation, figure: Figure
) -> None:
    def slow(turn: int, request: ModelRequest) -> Answer | str:
        return Answer(calls=(("pay", {"amount": turn}),)) if turn < 9 else "at last"

    family = Family(
        name="too slow",
        boss=lambda turn, _: tasks("a") if turn == 0 else "so be it",
        child=slow,
        timeout=2.0,
        isolation=isolation,
    )
    calm, points = FamilyWorld(family).lived(), 0
    for append, when in itertools.product(range(1, calm.appends("boss") + 1), WHEN):
        world = FamilyWorld(family, {"boss": [Kill(append, when)]}).lived()
        check(world)
        points += 1
        at = {record.key: record.at for record in world.records}
        assert at["s1/r1/c0/result"] - at["s1/r1/c0/call"] >= 2_000
        assert world.state().subagents[0].status == "stopped"
        assert world.logs[world.places["s1/r1/c0"]][-1].type == "run.cancelled"
    assert "s1/r1/c0/settled" in {record.key for record in calm.records}
    figure(f"{points} kills around a deadline")


@pytest.mark.parametrize("people", [(), (Person("boss", "s1/r1/c0/call", cancels, 100.0),)], ids=["timeout", "cancel"])
def test_a_child_that_answers_for_long_holds_back_neither_a_deadline_nor_a_cancel(
    people: tuple[Person, ...], isolation: Isolation
) -> None:
    def works(turn: int, request: ModelRequest) -> Answer | str:
        """One waits, the other uses up what the slices of a handler may do."""
        if any("slowly" in message.text for message in request.messages if message.role == "user"):
            return Answer(text="at last", delay=1_000.0)
        return Answer(calls=(("look", {}),)) if turn < 200 else "looked"

    family = Family(
        name="a long answer",
        boss=lambda turn, _: tasks("slowly", "much") if turn == 0 else "so be it",
        child=works,
        child_limits=Limits(max_steps=300),
        timeout=110.0,
        people=people,
        isolation=isolation,
    )
    world = FamilyWorld(family).lived()
    check(world)
    at = {record.key: record.at for record in world.records}
    asked = at["s1/r1/c0/call"]
    late = asked + (100_000 if people else 110_000)
    assert late <= at["s1/r1/c0/result"] <= late + 1_500
    assert world.logs[world.places["s1/r1/c0"]][-1].at <= late + 3_000
    assert world.records[-1].type == ("run.cancelled" if people else "run.completed")


def test_a_parent_whose_child_waits_a_day_for_a_person_rests_as_long(isolation: Isolation) -> None:
    def paying(turn: int, request: ModelRequest) -> Answer | str:
        return Answer(calls=(("pay", {}),)) if turn == 0 else "paid at last"

    family = Family(
        name="a person",
        boss=lambda turn, _: tasks("a", profile="careful") if turn == 0 else "all is paid",
        child=paying,
        people=(Person("s1/r1/c0", "s1/r1/c0/approval", approves, 80_000.0),),
        isolation=isolation,
    )
    world = FamilyWorld(family).lived()
    check(world)
    assert (world.state().text, sum(world.happened.values())) == ("all is paid", 1)
    waiting = [record.event for record in world.records if isinstance(record.event, RunWaiting)]
    assert [(event.for_, event.until) for event in waiting] == [(("subagent",), None)]
    assert world.runs.of(BOSS).rings < 8, "no alarm but for what comes"
    told = [report.arguments for report in world.runs.reports]
    assert "waiting" not in {listing["status"] for listing in told if listing["run_id"] == BOSS}
    child = [listing for listing in told if listing["run_id"] != BOSS]
    assert {listing["parent"] for listing in child} == {BOSS}
    assert "waiting" in {listing["status"] for listing in child}, "the person is waited for there"
