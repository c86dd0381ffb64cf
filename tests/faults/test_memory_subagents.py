"""Runs with subagents, killed at every record of the parent, of a child and of both, over a network that fails."""

import itertools

import pytest

from edge_agent.core.model import ModelRequest
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from edge_agent.testing.faults import When
from tests.faults.family_world import Family, FamilyWorld, check

WHEN: tuple[When, ...] = ("before", "after")


def figure(text: str) -> None:
    print(text)


def tasks(*names: str, also: tuple[str, ...] = ()) -> Answer:
    asked = tuple(("researcher", {"task": name}) for name in names)
    return Answer(text="let me ask", calls=(*asked, *((name, {}) for name in also)))


def boss(turn: int, request: ModelRequest) -> Answer | str:
    return [tasks("a", "b", "c", also=("pay",)), tasks("d"), "all is known"][min(turn, 2)]


def researcher(turn: int, request: ModelRequest) -> Answer | str:
    task = next(message.text for message in request.messages if message.role == "user")
    return Answer(calls=(("pay", {"amount": 2}), ("look", {}))) if turn == 0 else f"{task} is done"


THREE = Family(name="three side by side, two at a time, then one more", boss=boss, child=researcher, max_concurrent=2)


def test_a_calm_family() -> None:
    world = FamilyWorld(THREE).lived()
    check(world)
    assert world.records[-1].type == "run.completed"
    assert sum(world.happened.values()) == 5
    assert len(world.heard) == 4


@pytest.mark.parametrize("place", ["boss", "s1/r1/c0", "s1/r1/c2"])
def test_killed_at_every_record_each_child_runs_once_and_answers_once(place: str) -> None:
    calm, points = FamilyWorld(THREE).lived(), 0
    check(calm)
    ways = itertools.product(range(1, calm.appends(place) + 1), WHEN, (True, False))
    for append, when, vanish in ways:
        world = FamilyWorld(THREE, {place: [Kill(append, when)]}, vanish=vanish).lived()
        check(world)
        points += 1
        assert world.records[-1].type == "run.completed"
    figure(f"{place}: {points} kills")
