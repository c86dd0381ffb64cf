"""Subagents that are stopped or deleted, alone, with their parent or with the step they work for, at every record."""

import itertools
import json
from dataclasses import replace

import pytest

from edge_agent.core.events import (
    SubagentCompleted,
    SubagentFailed,
)
from edge_agent.core.model import ModelRequest
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.families import (
    NONE_OR_SOME,
    THREE,
    cancels,
    deletes,
    researcher,
    resumes,
    stops,
    tasks,
)
from tests.faults.family_world import BOSS, Family, FamilyWorld, Person, check

ENDS = {"run.completed", "run.cancelled", "run.refused"}


@pytest.mark.parametrize("killed", [False, True])
def test_one_child_stopped_at_every_record_leaves_the_others_and_the_parent_well(
    killed: bool, three: Family, figure: Figure
) -> None:
    calm, stopped = FamilyWorld(three).lived(), 0
    first = next(record.seq for record in calm.records if record.key == "s1/r1/c1/call")
    for record in calm.records[first:-1]:
        family = replace(three, people=(Person("boss", record.key, stops(1), 0.05),))
        kills = {"boss": [Kill(record.seq, "after")], "s1/r1/c1": [Kill(3, "before")]} if killed else {}
        world = FamilyWorld(family, kills).lived()
        check(world)
        assert world.records[-1].type == "run.completed"
        result = next(r.event for r in world.records if r.key == "s1/r1/c1/result")
        assert isinstance(result, SubagentFailed | SubagentCompleted)
        stopped += isinstance(result, SubagentFailed)
        if isinstance(result, SubagentFailed):
            assert "not this one" in result.error
            assert "s1/r1/c1/settled" in {r.key for r in world.records} or world.records[-1].at < _end_of(world)
    assert stopped >= 3
    figure(f"{stopped} stopped in time")


def _end_of(world: FamilyWorld) -> int:
    """When the child of the second call had ended: later than its parent, so it could tell nobody what it cost."""
    return world.logs[world.places["s1/r1/c1"]][-1].at


@pytest.mark.parametrize("again", [False, True])
def test_a_parent_cancelled_at_every_record_takes_all_children_with_it(
    again: bool, three: Family, figure: Figure
) -> None:
    calm, cancelled, refused = FamilyWorld(three).lived(), 0, 0
    people = (Person("boss", "end/0", resumes, 300.0),) if again else ()
    for record in calm.records[:-2]:
        family = replace(three, people=(Person("boss", record.key, cancels, 0.0), *people))
        for troubles in NONE_OR_SOME:
            world = FamilyWorld(family, troubles=troubles).lived()
            check(world)
            assert {log[-1].type for log in world.logs.values()} <= ENDS
            asked = any(one.type == "cancel.requested" for one in world.records)
            assert asked or troubles, "over a bad network a record to act upon may be another one"
            assert world.records[-1].type == ("run.cancelled" if asked and not again else "run.completed")
            cancelled += sum(log[-1].type == "run.cancelled" for run, log in world.logs.items() if run != BOSS)
            refused += sum(log[-1].type == "run.refused" for log in world.logs.values())
    assert cancelled > 10
    assert refused > 3, "a cancel overtakes a create"
    figure(f"{cancelled} children cancelled, {refused} before they were created")


def test_a_deleted_parent_leaves_no_child_at_work() -> None:
    for record in FamilyWorld(THREE).lived().records[:-1]:
        world = FamilyWorld(replace(THREE, people=(Person("boss", record.key, deletes, 0.05),))).lived()
        assert {log[-1].type for run, log in world.logs.items() if run != BOSS} <= ENDS
        assert not world.runs.of(BOSS).log.exists()


def test_with_a_deleted_parent_its_inline_children_are_gone_whatever_is_lost_and_dies(figure: Figure) -> None:
    def middle(turn: int, request: ModelRequest) -> Answer | str:
        return Answer(calls=(("clerk", {"task": "deeper"}), ("pay", {}))) if turn == 0 else "the middle is done"

    def bottom(turn: int, request: ModelRequest) -> str:
        return "the bottom is done"

    family = replace(THREE, child=middle, grandchildren=bottom, isolation="inline", deeper="inline")
    gone = 0
    for record, troubles in itertools.product(FamilyWorld(family).lived().records[:-1], NONE_OR_SOME):
        kills = {"boss": [Kill(record.seq + 1, "after")]}
        person = Person("boss", record.key, deletes, 0.05)
        world = FamilyWorld(replace(family, people=(person,)), kills, troubles=troubles).lived()
        assert world.answers or troubles, "over a bad network a record to act upon may be another one"
        left = [run_id for run_id, made in world.runs.runs.items() if made.log.exists() or made.log.outbox()]
        assert not (world.answers and left), left
        gone += len(world.runs.runs) - 1 - len(left)
    figure(f"{gone} inline children were deleted with their parent")


@pytest.mark.parametrize("again", [False, True])
def test_a_deleted_inline_child_is_cancelled_for_its_parent_which_goes_on(again: bool) -> None:
    people = tuple(Person("s1/r1/c0", "s1/r1", deletes, after) for after in (0.05, 0.1)[: 1 + again])
    world = FamilyWorld(replace(THREE, isolation="inline", people=people)).lived()
    child, other = (world.runs.of(world.places[place]) for place in ("s1/r1/c0", "s1/r1/c1"))
    assert (world.records[-1].type, child.log.erased(), child.log.exists()) == ("run.completed", True, False)
    assert [one.status for one in world.state().subagents] == ["failed", "completed", "completed", "completed"]
    assert other.log.exists()


# -- a step
def planner(turn: int, request: ModelRequest) -> Answer | str:
    shown, stage = "\n".join(message.text for message in request.messages), (request.metadata or {}).get("stage")
    if stage == "plan":
        steps = [{"id": name, "description": name} for name in ("ask", "report")]
        return json.dumps({"thought": "ask first", "steps": steps})
    if stage == "replan":
        return json.dumps({"mode": "continue", "reason": "go on", "steps": []})
    if stage == "final":
        return f"answered: {'a is done' in shown}, {'its step was cancelled' in shown}"
    return tasks("a", "b") if "(1)" in shown and turn == 0 else "reported"


PLANNED = Family(name="in the first step of a plan", boss=planner, child=researcher, mode="planned")


def test_what_subagents_of_a_step_have_answered_reaches_the_answer() -> None:
    calm = FamilyWorld(PLANNED).lived()
    check(calm)
    assert calm.state().text == "answered: True, False"
    for append in range(1, calm.appends("boss") + 1, 2):
        world = FamilyWorld(PLANNED, {"boss": [Kill(append, "after")]}).lived()
        check(world)
        assert world.state().text == "answered: True, False"


def test_the_cancel_of_a_step_stops_its_subagents_and_the_plan_goes_on() -> None:
    for place, kill in itertools.product(("s1/r1/c0/call", "s1/r1/c1/call"), ((), (Kill(8, "after"),))):
        family = replace(PLANNED, people=(Person("boss", place, lambda inbox: inbox.cancel_step(), 0.3),))
        world = FamilyWorld(family, {"boss": kill}).lived()
        check(world)
        assert world.state().text == "answered: False, True"
        assert [child.status for child in world.state().subagents] == ["stopped", "stopped"]
        assert {log[-1].type for run, log in world.logs.items() if run != BOSS} == {"run.cancelled"}
