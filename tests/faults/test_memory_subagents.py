"""Runs with subagents, killed at every record of the parent, of a child and of both, over a network that fails."""

import itertools
import random
from dataclasses import replace

import pytest

from edge_agent.core import keys
from edge_agent.core.model import ModelRequest
from edge_agent.loop.driver import SliceBudget
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing import Kill
from edge_agent.testing.faults import When
from edge_agent.testing.post import Trouble
from tests.conftest import Figure
from tests.faults.families import (
    ISOLATIONS,
    tasks,
)
from tests.faults.family_world import Family, FamilyWorld, check, outcomes

WHEN: tuple[When, ...] = ("before", "after")
TROUBLES: tuple[Trouble, ...] = ("none", "none", "lost", "unanswered", "doubled", "late")


def test_three_at_two_places_and_one_more_after_them(three: Family) -> None:
    world = FamilyWorld(three).lived()
    check(world)
    assert world.state().text == "all is known"
    assert sum(world.happened.values()) == 5
    at_work = most = 0
    for record in world.records:
        at_work += (record.type == "subagent.started") - (record.type == "subagent.completed")
        most = max(most, at_work)
    assert most == 2
    assert [child.task for child in world.state().subagents] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("place", ["boss", "s1/r1/c0", "s1/r1/c2", "s1/r2/c0"])
def test_killed_at_every_record_each_child_runs_once_and_answers_once(
    place: str, three: Family, figure: Figure
) -> None:
    calm, points = FamilyWorld(three).lived(), 0
    for append, when, vanish in itertools.product(range(1, calm.appends(place) + 1), WHEN, (True, False)):
        world = FamilyWorld(three, {place: [Kill(append, when)]}, vanish=vanish).lived()
        check(world)
        points += 1
        assert outcomes(world) == outcomes(calm) or _a_payment_was_lost(world)
    figure(f"{place}: {points} kills")


def _a_payment_was_lost(world: FamilyWorld) -> bool:
    """Its outcome is unknown then, and the model is told so: nothing else may differ."""
    return any(record.type == "tool.unknown" for records in world.logs.values() for record in records)


def test_killed_at_records_of_both_each_child_runs_once_and_answers_once(three: Family, figure: Figure) -> None:
    calm, points = FamilyWorld(three).lived(), 0
    ways = itertools.product(range(1, calm.appends("boss"), 3), range(1, calm.appends("s1/r1/c1"), 3))
    for mine, its in ways:
        when = WHEN[(mine + its) % 2]
        kills = {"boss": [Kill(mine, when)], "s1/r1/c1": [Kill(its, when), Kill(its + 2, "after")]}
        check(FamilyWorld(three, kills).lived())
        points += 1
    figure(f"{points} kills of both")


def test_a_network_that_loses_doubles_and_delays_changes_nothing(three: Family, figure: Figure) -> None:
    calm, tries = FamilyWorld(three).lived(), 0
    for seed in range(25):
        drawn = random.Random(seed)
        troubles: list[Trouble] = [drawn.choice(TROUBLES) for _ in range(60)]
        world = FamilyWorld(three, {"boss": [Kill(drawn.randrange(1, 20), "after")]}, troubles=troubles).lived()
        check(world)
        tries += len(world.runs.post.tries)
        assert outcomes(world) == outcomes(calm) or _a_payment_was_lost(world)
    figure(f"{tries} sends over a bad network")


def test_slices_of_one_effect_make_the_same_of_it(three: Family) -> None:
    calm = FamilyWorld(three).lived()
    sliced = FamilyWorld(replace(three, slices=SliceBudget(effects=1))).lived()
    check(sliced)
    assert outcomes(sliced) == outcomes(calm)


@pytest.mark.parametrize("deeper", ISOLATIONS)
def test_a_child_of_a_child_is_killed_at_every_record(isolation: Isolation, deeper: Isolation, figure: Figure) -> None:
    def middle(turn: int, request: ModelRequest) -> Answer | str:
        return Answer(calls=(("clerk", {"task": "deeper"}), ("pay", {}))) if turn == 0 else "the middle is done"

    family = Family(
        name="three deep",
        boss=lambda turn, _: tasks("a") if turn == 0 else "all is known",
        child=middle,
        grandchildren=lambda turn, _: "the bottom is done",
        isolation=isolation,
        deeper=deeper,
    )
    calm, points = FamilyWorld(family).lived(), 0
    check(calm)
    assert len(calm.logs) == 3
    assert len({keys.object_of(run_id) for run_id in calm.logs}) == 1 + (isolation, deeper).count("object")
    bottom = next(run for run in calm.logs if run not in calm.places.values())
    for append, when in itertools.product(range(1, calm.runs.runs[bottom].faults.appends + 1), WHEN):
        check(FamilyWorld(family, {bottom: [Kill(append, when)], "s1/r1/c0": [Kill(append + 3, when)]}).lived())
        points += 1
    figure(f"{points} kills three deep")
