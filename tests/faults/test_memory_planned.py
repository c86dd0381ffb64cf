"""A planned run, killed and steered at each of its records: nothing is done twice, and it ends as it would have."""

import json
import re
from collections.abc import Callable

import pytest

from edge_agent.core.events import (
    MessageDelivered,
    MessageQueued,
    MessageUndelivered,
    ModelRequested,
    PlanCreated,
    ReplanDecision,
    StepCompleted,
    ToolUnknown,
)
from edge_agent.core.limits import Limits
from edge_agent.core.model import ModelRequest
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.memory_laws import check, told
from tests.faults.memory_world import Person, Scenario, World

STEPS = ("gather", "act", "report")
WORK: dict[str, list[tuple[tuple[str, dict[str, str]], ...]]] = {
    "gather": [(("read", {"q": "a"}), ("read", {"q": "b"})), (("read", {"q": "c"}),)],
    "act": [(("pay", {"q": "10"}), ("read", {"q": "d"}), ("flaky", {})), (("pay", {"q": "20"}),)],
    "mend": [(("pay", {"q": "30"}),)],
    "report": [],
}


def says(request: ModelRequest) -> Answer:
    """The model: a function of what it is shown, so that any difference in what it is shown shows."""
    shown = "\n".join(message.text for message in request.messages)
    stage = (request.metadata or {}).get("stage", "round")
    if stage == "plan":
        return plan("thought of it", STEPS)
    if stage == "replan":
        return verdict(shown)
    if stage == "final":
        return Answer(text=f"answered from {shown.count('## Step')} reports, told {sorted(said_in(shown))}")
    what = re.findall(r"# Your step \(\d+\)\n(\w+)", shown)[-1]
    turn = sum(message.role == "assistant" for message in request.messages)
    work = WORK.get(what, [])
    if turn < len(work):
        return Answer(text="", calls=work[turn])
    return Answer(text=f"{what} is done, told {sorted(said_in(shown))}")


def plan(thought: str, steps: tuple[str, ...]) -> Answer:
    entries = [{"id": name, "description": name, "expected_outcome": "", "suggested_tools": ["read"]} for name in steps]
    return Answer(text=json.dumps({"thought": thought, "steps": entries}))


def verdict(shown: str) -> Answer:
    told_so_far = said_in(shown)
    if "enough" in told_so_far:
        return Answer(text=json.dumps({"mode": "finish", "reason": "enough", "steps": []}))
    if "out of order" in shown and ": mend" not in shown and "- mend" not in shown:
        steps = [{"id": name, "description": name} for name in ("mend", "report")]
        return Answer(text=json.dumps({"mode": "revise", "reason": "flaky failed", "steps": steps}))
    return Answer(text=json.dumps({"mode": "continue", "reason": "all is well", "steps": []}))


def said_in(shown: str) -> set[str]:
    return {word for word in ("south", "north", "enough") if re.search(rf"\b{word}\b", shown)}


PLANNED = Scenario(name="plan, a failure, a revision, an answer", mode="planned", says=says)
SLICED = Scenario(name="the same, one effect a slice", mode="planned", says=says, slices=SliceBudget(effects=1))
CAPPED = Scenario(
    name="a cap that ends the steps",
    mode="planned",
    says=says,
    limits=Limits(max_tool_calls=4, max_total_tokens=30_000),
)


def writes(message_id: str, text: str) -> Callable[[Inbox], object]:
    return lambda inbox: inbox.message(message_id, text)


def cancels_step(inbox: Inbox) -> object:
    return inbox.cancel_step("not that")


def cancels(inbox: Inbox) -> object:
    return inbox.cancel("enough")


def lost_a_call(world: World) -> bool:
    return any(isinstance(record.event, ToolUnknown) for record in world.records)


def test_a_planned_run_reads_as_it_should() -> None:
    calm = World(PLANNED).lived()
    check(calm)
    ends = [record.event for record in calm.records if isinstance(record.event, StepCompleted)]
    assert [end.summary.split()[0] for end in ends] == ["gather", "act", "mend", "report"]
    causes = [record.event.cause for record in calm.records if isinstance(record.event, ReplanDecision)]
    assert causes == ["clean-step", "llm-decision", "clean-step", "last-step"]
    assert calm.state.text == "answered from 4 reports, told []"
    stages = [record.event.stage for record in calm.records if isinstance(record.event, ModelRequested)]
    assert (stages[0], stages[-1]) == ("plan", "final")


@pytest.mark.parametrize("scenario", [PLANNED, SLICED, CAPPED], ids=lambda scenario: scenario.name)
def test_killed_at_every_record_it_ends_the_same(scenario: Scenario, figure: Figure) -> None:
    calm = World(scenario, followers=True).lived()
    check(calm)
    points = unknown = 0
    for append in range(1, calm.appends + 1):
        for when in ("before", "after"):
            world = World(scenario, [Kill(append, when)]).lived()
            check(world)
            points += 1
            if lost_a_call(world):
                unknown += 1
            else:
                assert told(world) == told(calm), (append, when)
    figure(f"{points} kills, {unknown} with an unknown outcome")


def test_a_message_at_every_record_is_delivered_once_or_told_undelivered() -> None:
    calm, delivered = World(PLANNED).lived(), 0
    for record in calm.records[1:-1]:
        world = World(PLANNED, people=[Person(record.key, writes("m1", "south"))]).lived()
        check(world)
        fate = [r.event for r in world.records if isinstance(r.event, MessageDelivered | MessageUndelivered)]
        queued = [r.event for r in world.records if isinstance(r.event, MessageQueued)]
        assert len(fate) == len(queued) <= 1, record.key
        if fate and isinstance(fate[0], MessageDelivered):
            delivered += 1
            assert "south" in (world.state.text or ""), (record.key, world.state.text)
            if fate[0].where in ("round", "replan"):
                asked = [r.event.cause for r in world.records if isinstance(r.event, ReplanDecision)]
                assert "user-message" in asked or fate[0].boundary.startswith("s4"), (record.key, asked)
    assert delivered > 10


def test_a_message_and_a_kill_at_every_record() -> None:
    steered = World(PLANNED, people=[Person("s2/r1", writes("m1", "north"))])
    for append in range(1, steered.lived().appends + 1):
        for when in ("before", "after"):
            world = World(PLANNED, [Kill(append, when)], people=[Person("s2/r1", writes("m1", "north"))]).lived()
            check(world)
            fate = [r.event for r in world.records if isinstance(r.event, MessageDelivered)]
            assert len(fate) == 1
            assert "north" in (world.state.text or "")


def test_enough_ends_the_work_and_the_answer_is_given() -> None:
    world = World(PLANNED, people=[Person("s1/r1", writes("m1", "enough"))]).lived()
    check(world)
    assert world.state.text == "answered from 1 reports, told ['enough']"


def test_a_step_cancelled_at_every_record_ends_blocked_and_the_run_goes_on() -> None:
    calm = World(PLANNED).lived()
    landed = 0
    for record in calm.records:
        world = World(PLANNED, people=[Person(record.key, cancels_step)]).lived()
        check(world)
        assert world.records[-1].type == "run.completed", record.key
        cancelled = [r for r in world.records if r.type == "cancel.requested"]
        ends = [r.event for r in world.records if isinstance(r.event, StepCompleted) and r.event.stop == "cancelled"]
        assert len(ends) <= len(cancelled)
        landed += len(ends)
        assert all(end.blocked for end in ends)
    assert landed > 10


def test_cancelled_at_every_record_nothing_begins_after_it() -> None:
    calm, cancelled = World(PLANNED).lived(), 0
    for record in calm.records[1:-1]:
        world = World(PLANNED, people=[Person(record.key, cancels, after=0.0)]).lived()
        check(world)
        cancelled += world.records[-1].type == "run.cancelled"
        seqs = [r.seq for r in world.records if r.type == "cancel.requested"]
        begun = [r for r in world.records if r.type in ("tool.called", "model.requested") and seqs and r.seq > seqs[0]]
        assert not begun, (record.key, begun[0].key)
    assert cancelled > 10


def test_a_planner_that_fails_leaves_a_plan_of_one_step_that_answers() -> None:
    def no_plan(request: ModelRequest) -> Answer:
        return Answer(text="I would rather not") if (request.metadata or {}).get("stage") == "plan" else says(request)

    world = World(Scenario(name="no plan", mode="planned", says=no_plan)).lived()
    created = next(r.event for r in world.records if isinstance(r.event, PlanCreated))
    assert created.fallback
    assert len(created.plan.steps) == 1
    assert world.records[-1].type == "run.completed"


def test_under_any_cap_the_run_ends_with_an_answer_and_within_it() -> None:
    stops: set[str] = set()
    for cap in range(1_500, 30_000, 750):
        limits = Limits(max_total_tokens=cap)
        world = World(Scenario(name=f"cap {cap}", mode="planned", says=says, limits=limits)).lived()
        check(world)
        assert world.records[-1].type == "run.completed", (cap, world.records[-1].event)
        assert world.state.spent.total <= cap
        stops.add(str(world.state.stop_reason))
    assert stops == {"budget", "stop"}
