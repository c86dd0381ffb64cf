"""What subagents may spend and have spent: caps that are shared, reserves, and what one that was given up says late."""

import itertools
import json
from dataclasses import replace

import pytest

from edge_agent import Limits
from edge_agent.core.events import (
    Mode,
)
from edge_agent.core.model import ModelRequest
from edge_agent.loop import settling
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.families import (
    DEAF,
    NONE_OR_SOME,
    researcher,
    stops,
    stops_the_step,
    tasks,
)
from tests.faults.family_world import Family, FamilyWorld, Person, check

CAPS = {
    "tokens": Limits(max_total_tokens=40_000, max_output_tokens=20_000, max_tool_calls=12),
    "dollars": Limits(max_cost_usd=0.02),
    "dollars that are near": Limits(max_cost_usd=0.01),
}


@pytest.mark.parametrize("limits", CAPS.values(), ids=CAPS)
def test_caps_are_kept_and_shared_whatever_dies(limits: Limits, three: Family, figure: Figure) -> None:
    family, points = replace(three, limits=limits), 0
    calm = FamilyWorld(family).lived()
    check(calm)
    assert calm.records[-1].type == "run.completed"
    assert len(calm.children()) == 4
    for place, append in itertools.product(("boss", "s1/r1/c0"), range(1, calm.appends("boss") + 1, 2)):
        check(FamilyWorld(family, {place: [Kill(append, "after")]}).lived())
        points += 1
    figure(f"{points} kills, each cap kept at every record")


RESERVED = {
    "tokens": Limits(max_total_tokens=40_000),
    "tool calls": Limits(max_tool_calls=12),
    "dollars": Limits(max_cost_usd=0.02),
}


@pytest.mark.parametrize("mode", ["direct", "planned"])
@pytest.mark.parametrize("limits", RESERVED.values(), ids=RESERVED)
def test_a_run_whose_only_child_is_stopped_goes_on_with_what_that_has_not_used(limits: Limits, mode: Mode) -> None:
    """The child was given all that was left, so until it says what it used nothing is."""

    def asks(turn: int, request: ModelRequest) -> Answer | str:
        stage = (request.metadata or {})["stage"]
        if stage == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "ask"}]})
        if stage == "replan":
            return json.dumps({"reason": "", "mode": "continue", "steps": []})
        return [tasks("a"), Answer(calls=(("pay", {}),)), "paid"][turn] if request.tools else f"answered after {turn}"

    for act in [stops(0), stops_the_step] if mode == "planned" else [stops(0)]:
        people = (Person("boss", "s1/r1/c0/call", act, 0.3),)
        family = Family(name="one", boss=asks, child=researcher, limits=limits, mode=mode, people=people)
        for append in (99, *range(1, 14)):
            world = FamilyWorld(family, {"boss": [Kill(append, "after")]}).lived()
            check(world)
            if any(record.type == "model.failed" for record in world.records):
                continue  # a lost attempt costs its reserve, which may be all there is
            assert world.state().stop_reason != "budget"
            at = {record.key: record.at for record in world.records}
            went_on = at.get("s1/r2") or at["s1/replan"]
            assert went_on - at["s1/r1/c0/result"] < settling.PATIENCE_MS / 2, "it says so, and is heard at once"
            if act is not stops_the_step:
                assert sum(world.happened.values()) >= 1, "the call that came after it is made"


def test_a_child_that_was_stopped_while_it_waited_for_a_person_has_not_made_the_call() -> None:
    people = (Person("boss", "s1/r1/c0/call", stops(0), 2.0),)
    family = Family(
        name="asking",
        boss=lambda turn, _: tasks("a", profile="careful") if turn == 0 else "so be it",
        child=lambda turn, _: Answer(calls=(("pay", {}), ("pay", {}))),
        people=people,
    )
    world = FamilyWorld(family).lived()
    check(world)
    child = world.logs[world.places["s1/r1/c0"]]
    assert [record.key for record in child if record.type == "tool.approval-requested"]
    assert (world.state().spent.tool_calls, sum(world.happened.values())) == (1, 0), "its own call alone"


def test_a_child_that_says_nothing_is_not_waited_for_without_end() -> None:
    """It cannot be reached, so it keeps its reserve, and the run ends with what is left beside that."""
    people = (Person("boss", "s1/r1/c0/call", stops(0), 0.3),)
    limits = Limits(max_total_tokens=40_000)
    family = Family(name="deaf", boss=lambda turn, _: tasks("a") if turn == 0 else "so be it", child=researcher)
    family = replace(family, limits=limits, people=people)
    world = FamilyWorld(family, troubles=DEAF).lived()
    check(world)
    at = {record.key: record for record in world.records}
    assert at["s1/r1/c0/due"].at - at["s1/r1/c0/result"].at <= 11_000
    assert world.state().text == "so be it"
    assert (world.state().stop_reason, "s1/r1/c0/settled" in at) == ("budget", False)


def test_the_dollars_of_one_that_was_given_up_stay_reserved_until_it_says_less(
    isolation: Isolation, figure: Figure
) -> None:
    def slow(turn: int, request: ModelRequest) -> Answer | str:
        return Answer(calls=(("pay", {"amount": turn}),)) if turn < 9 else "at last"

    family = Family(
        name="too slow and dear",
        boss=lambda turn, _: [tasks("a", "b"), tasks("c"), "so be it"][min(turn, 2)],
        child=slow,
        timeout=2.0,
        limits=Limits(max_cost_usd=0.05),
        isolation=isolation,
    )
    calm, settled, kept = FamilyWorld(family).lived(), 0, 0
    for troubles, append in itertools.product((*NONE_OR_SOME, DEAF), range(1, calm.appends("boss") + 1)):
        world = FamilyWorld(family, {"boss": [Kill(append, "before")]}, troubles=troubles).lived()
        check(world)
        at = {record.key: record for record in world.records}
        reserve = at["s1/r1/c0/call"].money["s1/r1/c0"].usd
        assert not at["s1/r1/c0/result"].money, "nobody knows yet what it has cost"
        if said := at.get("s1/r1/c0/settled"):
            assert 0 <= said.money["s1/r1/c0"].usd < reserve
            settled += 1
        else:
            assert world.state().spent.usd > reserve
            kept += 1
    assert (settled > 0, kept > 0) == (True, True)
    figure(f"{settled} settled late, {kept} kept their reserve to the end")
