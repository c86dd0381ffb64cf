"""Approvals, killed at every record: each decision is used once, nothing runs unallowed, the end is the same."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.core.approval import Decision
from edge_agent.core.events import ApprovalRequested, ApprovalResolved, ToolCalled
from edge_agent.core.model import ModelRequest
from edge_agent.loop.driver import SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer
from edge_agent.testing import Kill
from tests.conftest import Figure
from tests.faults.memory_laws import check, compare
from tests.faults.memory_world import RUN, Person, Scenario, World

C0, C1, C2 = "s1/r1/c0", "s1/r1/c1", "s1/r1/c2"
AFTER = 5.0


def calls(*names: str) -> Answer:
    return Answer(text="let me see", calls=tuple((name, {"q": str(index)}) for index, name in enumerate(names)))


def decides(call: str, *, approved: bool, **more: Any) -> Callable[[Inbox], object]:
    return lambda inbox: inbox.decide(keys.call_id(RUN, call), Decision(approved=approved, **more))


def person(call: str, *, approved: bool, number: int = 0, after: float = AFTER, **more: Any) -> Person:
    return Person(keys.approval(call, number), decides(call, approved=approved, **more), after)


def cancels(inbox: Inbox) -> None:
    inbox.cancel("enough")


def resumes(inbox: Inbox) -> None:
    inbox.resume()


def loosens(inbox: Inbox) -> None:
    inbox.change_mode("autopilot", allowed=("autopilot",))


TWO = Scenario(
    name="two requests, a free sibling, one approved and one denied",
    script=[calls("pay", "slow", "pay", "read"), calls("pay"), "done at last"],
    approval="ask-writes",
    tool_rules={"slow": "allow"},
    people=(
        person(C0, approved=True),
        person(C2, approved=False, after=9.0, reason="too much"),
        person("s1/r2/c0", approved=True),
    ),
)

SCENARIOS = [
    TWO,
    Scenario(name="nobody decides", script=[calls("pay", "pay", "read"), "done"], approval="ask-writes"),
    Scenario(
        name="edited arguments",
        script=[calls("pay", "read"), "done"],
        approval="ask-all",
        people=(person(C0, approved=True, arguments={"q": "less"}), person(C1, approved=True)),
    ),
    Scenario(
        name="remembered for the others and for later",
        script=[calls("pay", "pay", "pay"), calls("pay", "read"), "done"],
        approval="ask-writes",
        people=(person(C1, approved=True, remember=True),),
    ),
    Scenario(
        name="a remembered denial",
        script=[calls("pay", "pay"), calls("pay"), "done"],
        approval="ask-writes",
        people=(person(C0, approved=False, remember=True, after=2.0),),
    ),
    Scenario(
        name="a mode that changes",
        script=[calls("pay"), calls("pay"), "done"],
        approval="ask-writes",
        people=(Person(f"{C0}/approval", loosens, 1.0), person(C0, approved=True)),
    ),
    Scenario(
        name="a retry asks again",
        script=[calls("doubt_retry", "read"), "done"],
        approval="ask-writes",
        people=(*(person(C0, approved=True, number=n) for n in range(4)),),
    ),
    Scenario(
        name="a retry that is denied",
        script=[calls("doubt_retry", "read"), "done"],
        approval="ask-writes",
        people=(person(C0, approved=True), person(C0, approved=False, number=1)),
    ),
    Scenario(name="a run that may only read", script=[calls("pay", "read"), "done"], approval="read-only"),
    Scenario(
        name="slices of one effect",
        script=TWO.script,
        approval=TWO.approval,
        tool_rules=TWO.tool_rules,
        people=TWO.people,
        slices=SliceBudget(effects=1),
    ),
    Scenario(
        name="cancelled while it waits, and resumed",
        script=[calls("pay", "read"), calls("pay"), "done"],
        approval="ask-writes",
        people=(
            Person("s1/r1/c1/result", cancels, 2.0),
            Person("end/0", resumes, 5.0),
            person("s1/r2/c0", approved=True),
        ),
    ),
]


def cancels_step(inbox: Inbox) -> None:
    inbox.cancel_step()


def steps(request: ModelRequest) -> Answer:
    """A plan of two steps; the first one pays twice, a round each."""
    stage = (request.metadata or {}).get("stage", "round")
    if stage == "plan":
        entries = [{"id": name, "description": name} for name in ("act", "report")]
        return Answer(text=json.dumps({"thought": "two steps", "steps": entries}))
    if stage == "replan":
        return Answer(text=json.dumps({"mode": "continue", "reason": "go on", "steps": []}))
    shown = "\n".join(message.text for message in request.messages)
    if stage == "final":
        return Answer(text="done at last")
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn < 2 and re.findall(r"# Your step \(\d+\)\n(\w+)", shown)[-1] == "act":
        return calls("pay", "read")
    return Answer(text="reported")


PLANNED = [
    Scenario(
        name="a plan whose step asks twice",
        mode="planned",
        says=steps,
        approval="ask-writes",
        people=(person("s1/r1/c0", approved=True), person("s1/r2/c0", approved=False)),
    ),
    Scenario(
        name="a step that is cancelled while it waits",
        mode="planned",
        says=steps,
        approval="ask-writes",
        people=(Person("s1/r1/c0/approval", cancels_step, 2.0), person("s1/r1/c0", approved=True, after=4.0)),
    ),
]


def assert_used_once(world: World) -> None:
    """In a mode that asks before writes: each write that was begun has an approval of its own, each of them one use."""
    events = {record.key: record.event for record in world.records}
    for key, event in events.items():
        if isinstance(event, ApprovalResolved):
            assert sum(isinstance(other, ApprovalResolved) and where == key for where, other in events.items()) == 1
        if isinstance(event, ApprovalRequested):
            assert keys.decision(key) in events, f"{key} was never resolved"
            decision, call = events[keys.decision(key)], key.replace("/approval", "/call")
            assert isinstance(decision, ApprovalResolved)
            assert decision.approved or call not in events, f"{call} was made although nobody allowed it"
            if call in events:
                made = events[call]
                assert isinstance(made, ToolCalled)
                assert made.arguments == (decision.arguments or event.arguments)
    state = world.state
    assert state.approvals == ()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_with_approvals_killed_at_every_record_uses_each_decision_once_and_ends_the_same(
    scenario: Scenario, figure: Figure
) -> None:
    calm = World(scenario, followers=True).lived()
    check(calm)
    assert_used_once(calm)
    assert calm.records[-1].type == "run.completed"
    points = unknown = 0
    for vanish in (True, False):
        for append in range(1, calm.appends + 1):
            for kill in (Kill(append, "before"), Kill(append, "after")):
                points += 1
                world = World(scenario, [kill], vanish=vanish).lived()
                unknown += compare(calm, world)
                assert_used_once(world)
    figure(f"{points} kills, {unknown} outcomes became unknown")


def unknown_payments(world: World) -> int:
    """Payments that were lost before they happened, if any: nobody made them again."""
    begun = {
        r.event.idempotency_key for r in world.records if isinstance(r.event, ToolCalled) and r.event.name == "pay"
    }
    return sum(("pay", key) not in world.happened for key in begun)


@pytest.mark.parametrize("scenario", PLANNED, ids=lambda scenario: scenario.name)
def test_a_planned_run_with_approvals_killed_at_every_record_uses_each_decision_once(
    scenario: Scenario, figure: Figure
) -> None:
    calm = World(scenario, followers=True).lived()
    for append in range(1, calm.appends + 1):
        for kills in ([], [Kill(append, "before")], [Kill(append, "after")]):
            world = World(scenario, kills).lived()
            check(world)
            assert_used_once(world)
            assert world.records[-1].type == "run.completed"
            asked = [r for r in world.records if r.type == "tool.approval-requested"]
            cut = any(r.type == "cancel.requested" for r in world.records)
            paid = sum(name == "pay" for name, _ in world.happened)
            assert (len(asked), paid) == ((1, 0) if cut else (2, 1 - unknown_payments(world)))
    figure(f"{2 * calm.appends} kills")


def test_a_decision_whose_sender_does_not_ask_again_wakes_the_run_although_its_object_dies_with_it() -> None:
    for append in range(1, World(TWO).lived().appends + 1):
        world = World(TWO, [Kill(append, "after")])
        world.patient = False
        check(world.lived())
        at = {record.key: record.at for record in world.records}
        for call in (C0, C2):
            events = {record.key: record.event for record in world.records}
            decision = events[f"{call}/decision"]
            assert isinstance(decision, ApprovalResolved)
            acted = at[f"{call}/call"] if decision.approved else at[f"{call}/result"]
            assert acted - at[f"{call}/decision"] < 5_000, "the decision lay there"


def test_a_decision_at_every_moment_while_a_sibling_runs_is_not_lost() -> None:
    for after in (0.0, 0.05, 0.2, 0.3, 0.4, 0.41, 0.45, 0.6, 0.99, 1.0, 1.01, 2.0):
        people = (person(C0, approved=True, after=after), person(C2, approved=False, after=9.0))
        world = World(
            Scenario(
                name="x", script=[calls("pay", "slow", "pay"), "done"], approval="ask-writes",
                tool_rules={"slow": "allow"}, people=people,
            )
        ).lived()  # fmt: skip
        check(world)
        at = {record.key: record.at for record in world.records}
        assert at[f"{C0}/call"] - at[f"{C0}/decision"] < 1_500, "the decision lay there"


@pytest.mark.parametrize("around", [-0.002, -0.001, 0.0, 0.001, 0.002])
def test_a_decision_around_its_deadline_stands_or_is_refused_wherever_the_object_dies(around: float) -> None:
    scenario = Scenario(
        name="x", script=[calls("pay", "read"), "done"], approval="ask-writes", approval_seconds=60,
        people=(person(C0, approved=True, after=60 + around),),
    )  # fmt: skip
    ends: set[tuple[str, int]] = set()
    for append in range(1, World(scenario).lived().appends + 1):
        for kill in ([], [Kill(append, "before")], [Kill(append, "after")]):
            world = World(scenario, kill).lived()
            check(world)
            assert_used_once(world)
            resolved = next(r.event for r in world.records if isinstance(r.event, ApprovalResolved))
            assert isinstance(resolved, ApprovalResolved)
            ends.add((resolved.by, sum(world.happened[key] for key in world.happened if key[0] == "pay")))
    assert ends <= {("person", 1), ("expiry", 0), ("person", 0)}
    assert ("person", 1) in ends or around >= 0


def test_a_cancel_at_every_record_withdraws_what_waits_and_nothing_begins_after_it() -> None:
    calm, cancelled = World(TWO).lived(), 0
    for seq in range(1, len(calm.records) + 1):
        for kill in ((), (Kill(seq, "after"),), (Kill(seq + 1, "before"),)):
            world = World(TWO, kill, people=[Person(seq, cancels, 0.0)]).lived()
            check(world)
            assert_used_once(world)
            asked = next((r for r in world.records if r.type == "cancel.requested"), None)
            if asked is None:
                continue
            cancelled += 1
            begun = [
                r.key for r in world.records[asked.seq :]
                if r.type in ("tool.called", "model.requested", "tool.approval-requested")
            ]  # fmt: skip
            assert not begun, f"began after the cancel at {seq}: {begun}"
            if world.records[-1].type == "run.cancelled":
                assert world.state.spent.tool_calls == sum(
                    r.type == "tool.called" and "/call/" not in r.key for r in world.records
                )
    assert cancelled > len(calm.records)
