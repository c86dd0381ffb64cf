"""Runs with subagents, killed at every record of the parent, of a child and of both, over a network that fails."""

import itertools
import json
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from edge_agent import Limits
from edge_agent.core import keys
from edge_agent.core.approval import Decision
from edge_agent.core.events import (
    ApprovalRequested,
    Mode,
    RunWaiting,
    SubagentCompleted,
    SubagentFailed,
    SubagentStarted,
)
from edge_agent.core.model import ModelRequest
from edge_agent.loop import kin_inbox, settling
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.subagent import Isolation
from edge_agent.testing import Kill
from edge_agent.testing.faults import When
from edge_agent.testing.post import Trouble
from tests.conftest import Figure
from tests.faults.family_world import BOSS, Family, FamilyWorld, Person, check, outcomes

WHEN: tuple[When, ...] = ("before", "after")
TROUBLES: tuple[Trouble, ...] = ("none", "none", "lost", "unanswered", "doubled", "late")
NONE_OR_SOME: tuple[tuple[Trouble, ...], ...] = ((), ("none", "late", "late", "late"))
DEAF: tuple[Trouble, ...] = ("none",) * 3 + ("lost",) * 60  # for longer than anybody waits
ENDS = {"run.completed", "run.cancelled", "run.refused"}


def tasks(*names: str, also: tuple[str, ...] = (), **more: str) -> Answer:
    asked = tuple(("researcher", {"task": name, **more}) for name in names)
    return Answer(text="let me ask", calls=(*asked, *((name, {}) for name in also)))


def boss(turn: int, request: ModelRequest) -> Answer | str:
    return [tasks("a", "b", "c", also=("pay",)), tasks("d"), "all is known"][min(turn, 2)]


def researcher(turn: int, request: ModelRequest) -> Answer | str:
    task = next(message.text for message in request.messages if message.role == "user")
    return Answer(calls=(("pay", {"amount": 2}), ("look", {}))) if turn == 0 else f"{task} is done"


def cancels(inbox: Inbox) -> None:
    inbox.cancel("enough")


def deletes(inbox: Inbox) -> None:
    inbox.delete()


def resumes(inbox: Inbox) -> None:
    inbox.resume()


def stops_the_step(inbox: Inbox) -> object:
    return inbox.cancel_step()


def stops(number: int) -> Callable[[Inbox], object]:
    """A person stops the child of the n-th call that was started."""

    def act(inbox: Inbox) -> object:
        started = [r.event for r in inbox.journal.in_order() if isinstance(r.event, SubagentStarted)]
        return kin_inbox.cancel_subagent(inbox, started[number].call_id, "not this one")

    return act


def approves(inbox: Inbox) -> None:
    for record in inbox.journal.in_order():
        if isinstance(record.event, ApprovalRequested):
            inbox.decide(record.event.call_id, Decision(approved=True))


THREE = Family(name="three side by side, two at a time, then one more", boss=boss, child=researcher, max_concurrent=2)


ISOLATIONS: tuple[Isolation, ...] = ("object", "inline")


@pytest.fixture(params=ISOLATIONS)
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return request.param


@pytest.fixture
def three(isolation: Isolation) -> Family:
    return replace(THREE, isolation=isolation)


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


# -- kills
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


# -- cancels
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


# -- waits
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


# -- money
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
