"""Forks: what a new run takes of another one's log, and that it goes on from there without doing anything again."""

from dataclasses import replace
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.core.errors import Closed, Refusal
from edge_agent.core.events import (
    TERMINAL_TYPES,
    ApprovalModeChanged,
    BudgetExceeded,
    ForkedFrom,
    MessageQueued,
    ModelFailed,
    QuestionAsked,
    RecordedEvent,
    RunCancelled,
    RunCompleted,
    RunCreated,
    RunStarted,
    ToolCalled,
    ToolRejected,
)
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Journal
from edge_agent.core.limits import Limits
from edge_agent.core.listing import listing_of
from edge_agent.core.ports import Record
from edge_agent.core.state import fold
from edge_agent.loop.budget import active_seconds
from edge_agent.loop.fork import files_of, kept, numbered, up_to
from edge_agent.loop.inbox import Inbox
from edge_agent.testing import VirtualClock, in_memory_log
from edge_agent.testing.virtual_time import BEGIN
from tests.faults.memory_laws import check
from tests.faults.memory_world import RUN, Person, Scenario, World
from tests.faults.test_memory_approvals import SCENARIOS as APPROVALS
from tests.faults.test_memory_kills import ASKING, RICH, SCENARIOS, calls, cancels
from tests.faults.test_memory_planned import CAPPED, PLANNED
from tests.wire.event_samples import RECORDED

FORK = "run-2"


def begun(source: World, at: int, source_id: str = RUN, **changes: Any) -> list[Record]:
    """The first records of a fork of `source` at a record."""
    prefix = up_to(source.records, at)
    created = source.records[0].event
    assert isinstance(created, RunCreated)
    taken = kept(prefix, approval_changes="approval" in changes, limits_change="limits" in changes)
    return numbered(replace(created, **changes), source_id, len(prefix), taken, source.records[-1].at)


def fork(source: World, at: int, scenario: Scenario | None = None, **changes: Any) -> World:
    """The fork, lived to its end."""
    return World(scenario or source.scenario, log=begun(source, at, **changes), run_id=FORK).lived()


def seq_of(world: World, key: str) -> int:
    return next(record.seq for record in world.records if record.key == key)


def taken_by(world: World) -> list[Record]:
    """The records a fork has inherited, without its own first one."""
    created = world.records[0].event
    assert isinstance(created, RunCreated)
    return world.records[1 : created.inherited]


def own(world: World) -> list[Record]:
    return world.records[len(taken_by(world)) + 1 :]


def call_keys(records: list[Record]) -> set[str]:
    return {record.key.partition("/call")[0] for record in records if isinstance(record.event, ToolCalled)}


def assert_forked(source: World, forked: World, at: int) -> None:
    """Ended and sound; the log is shared up to there; nothing that was finished there is done again."""
    check(forked)
    assert forked.records[-1].type in TERMINAL_TYPES, at
    taken, there = taken_by(forked), {record.key: record for record in source.records}
    for record in taken:
        assert replace(record, seq=0, batch=0, life=0) == replace(there[record.key], seq=0, batch=0, life=0)
    again = call_keys(taken) & call_keys(own(forked))
    assert not again, f"a fork at {at} makes a finished call again: {again}"
    used = {r.event.idempotency_key for r in source.records if isinstance(r.event, ToolCalled)}
    assert not used & {key for _, key in forked.happened}, f"a fork at {at} uses a key of the other run"
    assert not {record.key for record in taken} & set(forked.parts), f"a fork at {at} makes an attempt again"


@pytest.mark.parametrize("scenario", [*SCENARIOS, *APPROVALS, PLANNED, CAPPED], ids=lambda scenario: scenario.name)
def test_a_fork_at_every_record_ends_and_repeats_no_side_effect(scenario: Scenario) -> None:
    calm = World(scenario).lived()
    for at in range(1, len(calm.records) + 1):
        assert_forked(calm, fork(calm, at), at)


def test_a_fork_of_a_fork_at_every_record_ends_and_repeats_no_side_effect() -> None:
    calm = World(RICH).lived()
    first = fork(calm, len(calm.records) // 2)
    for at in range(1, len(first.records) + 1):
        again = World(RICH, log=begun(first, at, FORK), run_id="run-3").lived()
        assert_forked(first, again, at)


# -- what comes along
def test_a_fork_never_cuts_what_was_appended_together() -> None:
    calm = World(RICH).lived()
    for record in calm.records:
        assert up_to(calm.records, record.seq)[-1].seq == record.batch
    batches = {record.batch for record in calm.records}
    assert len(batches) < len(calm.records)


@pytest.mark.parametrize(
    "at,status,code", [(0, 422, "bad_record"), (-3, 422, "bad_record"), (10**6, 416, "record_ahead")]
)
def test_there_is_no_fork_at_a_record_that_is_not_there(at: int, status: int, code: str) -> None:
    calm = World(SCENARIOS[2]).lived()
    with pytest.raises(Refusal) as refusal:
        up_to(calm.records, at)
    assert (refusal.value.status, refusal.value.code) == (status, code)


def test_a_fork_is_numbered_anew_and_says_where_it_comes_from() -> None:
    calm = World(RICH).lived()
    records = begun(calm, seq_of(calm, "s1/r2/c0/call"), models=("m2",))
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert all(record.seq <= record.batch <= len(records) for record in records)
    assert {record.life for record in records} == {0}
    created = records[0].event
    assert isinstance(created, RunCreated)
    assert created.models == ("m2",)
    batch_end = calm.records[seq_of(calm, "s1/r2/c0/call") - 1].batch
    assert created.forked_from == ForkedFrom(run_id=RUN, at=batch_end, inherited=len(records))
    assert [r.at for r in records[1:]] == [r.at for r in kept(up_to(calm.records, batch_end))]


def test_what_was_open_stays_behind_and_the_fork_does_it_under_its_own_keys() -> None:
    calm = World(RICH).lived()
    at = seq_of(calm, "s1/r2/c1/call")
    forked = fork(calm, at)
    assert "s1/r2/c1" not in call_keys(taken_by(forked))
    assert "s1/r2/c1" in call_keys(own(forked))
    assert_forked(calm, forked, at)
    assert {name for name, _ in forked.happened} >= {"pay"}


def test_an_attempt_under_way_is_made_by_the_fork_and_not_paid_for_twice() -> None:
    calm = World(RICH).lived()
    at = seq_of(calm, "s1/r3/a0")
    forked = fork(calm, at)
    assert "s1/r3/a0" not in {record.key for record in taken_by(forked)}
    assert forked.parts["s1/r3/a0"] == 1
    assert not [r for r in own(forked) if isinstance(r.event, ModelFailed) and r.event.error == "lost"]


def test_a_question_that_was_open_is_asked_again_by_the_fork() -> None:
    calm = World(ASKING).lived()
    at = seq_of(calm, "s1/r1/c0/ask/0/answer")
    forked = fork(calm, at)
    assert not [record for record in taken_by(forked) if record.key.startswith("s1/r1/c0/")]
    asked = [[r.event for r in world.records if isinstance(r.event, QuestionAsked)] for world in (calm, forked)]
    assert asked[0][0].question_id != asked[1][0].question_id
    assert forked.records[-1].type == "run.completed"


def test_a_wait_for_a_retry_that_was_under_way_is_not_the_forks() -> None:
    """The failure is the other run's: the fork tries at once, and has all its retries."""
    calm = World(RICH).lived()
    at = seq_of(calm, "s1/r2/a0/end")
    forked = fork(calm, at)
    assert "s1/r2/a0/due" not in {record.key for record in forked.records}
    assert_forked(calm, forked, at)


def test_the_fork_of_a_cancelled_run_is_not_cancelled() -> None:
    scenario = Scenario(
        name="cancelled", script=[calls("pay"), calls("pay", "read"), "done"], people=(Person("s1/r2", cancels, 0.05),)
    )
    calm = World(scenario).lived()
    assert isinstance(calm.records[-1].event, RunCancelled)
    for at in range(seq_of(calm, keys.cancel(0)), len(calm.records) + 1):
        forked = fork(calm, at, replace(scenario, people=()))
        assert_forked(calm, forked, at)
        assert forked.records[-1].type == "run.completed"


def test_failures_of_the_other_run_do_not_count() -> None:
    """Every attempt of its model had failed; another model takes over at the same record, the same one tries anew."""
    scenario = next(s for s in SCENARIOS if s.name == "every model is down")
    calm = World(scenario).lived()
    at = len(calm.records)
    other = fork(calm, at, models=("m2",))
    assert isinstance(end := other.records[-1].event, RunCompleted)
    assert end.text == "never"
    attempts = [r.key for r in calm.records if r.type == "model.requested"]
    again = fork(calm, at)
    assert again.records[-1].type == "run.failed"
    assert len([r for r in own(again) if r.type == "model.requested"]) == len(attempts)


def test_a_forbidden_outcome_of_the_other_run_does_not_end_the_fork() -> None:
    scenario = next(s for s in SCENARIOS if s.name == "an unknown outcome ends the run")
    calm = World(scenario).lived()
    assert calm.records[-1].type == "run.failed"
    assert fork(calm, len(calm.records)).records[-1].type == "run.completed"


def test_a_stop_on_record_stays_and_one_after_the_record_does_not() -> None:
    scenario = Scenario(
        name="few steps", script=[calls("read"), calls("pay"), calls("read"), "done"], limits=Limits(max_steps=2)
    )
    calm = World(scenario).lived()
    stop = seq_of(calm, "s1/r3")
    before, after = (fork(calm, at, limits=Limits(max_steps=9)) for at in (stop - 1, stop))
    assert isinstance(end := before.records[-1].event, RunCompleted)
    assert (end.stop_reason, end.text) == ("stop", "done")
    assert isinstance(end := after.records[-1].event, RunCompleted)
    assert end.stop_reason == "max_steps"
    same = fork(calm, stop)
    assert [r.key for r in same.records if isinstance(r.event, BudgetExceeded)] == ["budget/steps/0"]


def test_with_more_tool_calls_a_fork_goes_on_after_those_that_were_turned_down() -> None:
    """That the cap was reached is on record; whether it is one for the fork is found out again."""
    scenario = Scenario(
        name="few calls", script=[calls("pay", "pay"), calls("pay"), "done"], limits=Limits(max_tool_calls=1)
    )
    calm = World(scenario).lived()
    at = seq_of(calm, "budget/tool-calls/0")
    assert calm.happened.total() == 1
    forked = fork(calm, at, limits=Limits(max_tool_calls=3))
    assert_forked(calm, forked, at)
    assert isinstance(end := forked.records[-1].event, RunCompleted)
    assert (end.stop_reason, end.text) == ("stop", "done")
    assert forked.happened.total() == 2
    assert fork(calm, at).happened.total() == 1


def test_the_lives_of_the_other_run_become_one() -> None:
    scenario = next(s for s in SCENARIOS if s.name == "a cancelled run is resumed")
    calm = World(scenario).lived()
    assert calm.records[-1].life == 1
    forked = fork(calm, len(calm.records), replace(scenario, people=()))
    assert_forked(calm, forked, len(calm.records))
    ends = [r.key for r in forked.records if r.type.startswith("run.") and r.type != "run.created"]
    assert ends == ["life/0", "end/0"]
    assert isinstance(started := forked.records[len(taken_by(forked)) + 1].event, RunStarted)
    assert started.reason == "forked"


def test_a_cap_that_two_lives_have_crossed_was_crossed_once() -> None:
    def exceeded(seq: int, life: int) -> Record:
        event = BudgetExceeded(kind="steps", used=3, cap=2)
        return record(seq, keys.budget("steps", life), event, life=life)

    records = [record(1, "run", created()), exceeded(2, 0), exceeded(3, 1)]
    forked = numbered(created(), RUN, 3, kept(records), BEGIN)
    assert [r.key for r in forked] == ["run", "budget/steps/0"]


def test_messages_come_along_and_those_in_the_queue_are_still_delivered() -> None:
    def says(inbox: Inbox) -> None:
        inbox.message("m-1", "and be quick")

    scenario = replace(RICH, people=(Person("s1/r1/a0", says, 0.05),))
    calm = World(scenario).lived()
    delivered = seq_of(calm, "msg/m-1/end")
    for at in (seq_of(calm, "msg/m-1"), delivered):
        forked = fork(calm, at, RICH)
        assert_forked(calm, forked, at)
        ends = [r.key for r in forked.records if r.type == "message.delivered"]
        assert ends == ["msg/m-1/end"]
        assert [r.key for r in forked.records if isinstance(r.event, MessageQueued)] == ["msg/m-1"]


def test_a_mode_of_its_own_outweighs_what_the_other_run_was_changed_to() -> None:
    records = [record(1, "run", created()), record(2, "approval-mode/0", ApprovalModeChanged(mode="ask-all"))]
    assert [r.key for r in kept(records)] == ["approval-mode/0"]
    assert kept(records, approval_changes=True) == []


def test_a_decision_on_a_replan_is_no_decision_on_a_call() -> None:
    records = [
        record(1, "run", created()),
        record(2, "s1/r1/c0/approval", approval_requested()),
        record(3, "s1/r1/c0/decision", approval_resolved()),
        record(4, "s1/replan/decision", replan_decision()),
        record(5, "s1/r1/c1/approval", approval_requested()),
        record(6, "s1/r1/c1/decision", approval_resolved()),
        record(7, "s1/r1/c1/result", rejection()),
    ]
    assert [r.seq for r in kept(records)] == [4, 5, 6, 7]


# -- what the fork is then
def test_the_time_of_the_other_run_does_not_count_but_its_money_does() -> None:
    calm = World(RICH).lived()
    assert calm.records[-1].at - calm.records[0].at > 30_000
    records = begun(calm, seq_of(calm, "s1/r4"))
    journal = Journal(in_memory_log(), VirtualClock(), Hub())
    journal.begin(records)
    assert active_seconds(journal, calm.records[-1].at + 10_000) == 0
    before = fold(RUN, up_to(calm.records, seq_of(calm, "s1/r4")))
    assert fold(FORK, records).spent == before.spent
    assert fold(FORK, records).usage == before.usage
    assert listing_of(FORK, records).uses == ()


def test_a_fork_is_queued_until_it_starts_and_its_state_names_the_other_run() -> None:
    calm = World(RICH).lived()
    records = begun(calm, 12)
    state = fold(FORK, records)
    assert state.status == "queued"
    assert state.forked_from
    assert state.forked_from.run_id == RUN
    assert fold(FORK, fork(calm, 12).records).status == "completed"


def test_a_fork_begins_where_there_is_no_run_or_not_at_all() -> None:
    calm = World(SCENARIOS[2]).lived()
    records = begun(calm, 3)
    journal = Journal(in_memory_log(), VirtualClock(), Hub())
    journal.begin(records, {"fingerprint": "print"})
    assert journal.in_order() == records
    assert Journal(journal.log, VirtualClock(), Hub()).in_order() == records
    assert journal.log.meta("fingerprint") == "print"
    with pytest.raises(Closed):
        journal.begin(records)


def test_the_files_of_inherited_results_are_named_once_each() -> None:
    scenario = next(s for s in SCENARIOS if s.name == "long output, files, structure")
    calm = World(scenario).lived()
    names = files_of(calm.records)
    assert len(names) == len(set(names)) == 4
    assert all(calm.object.log.file(name) for name in names)
    assert files_of(up_to(calm.records, 3)) == []


# -- records by hand
def record(seq: int, key: str, event: RecordedEvent, life: int = 0) -> Record:
    return Record(seq=seq, key=key, batch=seq, life=life, by="note", at=BEGIN, agent="a", event=event, money={})


def created() -> RunCreated:
    return RunCreated(version=keys.VERSION, input="do it", agent_name="a", models=("m1",), limits=Limits())


def approval_requested() -> RecordedEvent:
    return sample("tool.approval-requested")


def approval_resolved() -> RecordedEvent:
    return sample("tool.approval-resolved")


def replan_decision() -> RecordedEvent:
    return sample("replan.decision")


def rejection() -> ToolRejected:
    return ToolRejected(call_id="c", name="pay", reason="denied", message="no", step=1, round=1)


def sample(kind: str) -> RecordedEvent:
    return next(event for event in RECORDED if event.type == kind)


def test_what_a_person_said_for_the_whole_of_the_other_run_is_not_said_for_the_fork() -> None:
    remembering = next(scenario for scenario in APPROVALS if scenario.name == "remembered for the others and for later")
    source = World(remembering).lived()
    assert "s1/r2/c0/approval" not in {record.key for record in source.records}
    forked = fork(source, seq_of(source, "s1/r2"))
    assert "s1/r2/c0/approval" in {record.key for record in own(forked)}
