"""What a run hears from its parent and its children: in any order, more than once, and when it is too late."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.core.events import ParentRun, RunCreated, SubagentStarted, UsageSoFar
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.limits import Limits
from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Amount, Usage, total_of
from edge_agent.kin_objects import receive
from edge_agent.loop import close, kin
from edge_agent.loop.driver import Driver
from edge_agent.loop.fork import kept
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.kin_inbox import cancel_subagent
from edge_agent.testing import in_memory_log
from edge_agent.wire import codec

CALL = "s1/r1/c0"
CHILD = keys.child("boss", CALL)
PARENT = ParentRun(run_id="boss", key=CALL, call_id="c0", depth=1, output_max_chars=10)
STARTED = SubagentStarted(call_id="c0", child_run_id=CHILD, name="researcher", task="look", step=1, round=1)
RESERVE = Amount(input=1_000, tool_calls=3)


class Clock:
    def now(self) -> int:
        return 1_000


class Alarm:
    def __init__(self) -> None:
        self.times: list[int] = []

    def set(self, at: int) -> None:
        self.times.append(at)


def box(run_id: str) -> Inbox:
    journal = Journal(in_memory_log(), Clock(), Hub())
    return Inbox(journal, Driver(run_id, journal, Alarm(), no_ports))


def no_ports() -> Any:
    raise AssertionError("nothing is walked here")


def created(parent: ParentRun | None = None) -> RunCreated:
    return RunCreated(version=1, input="x", agent_name="a", models=("m",), limits=Limits(), parent=parent)


def boss() -> Inbox:
    """A run that waits for a child."""
    inbox = box("boss")
    inbox.journal.append("note", Draft(key="run", event=created()))
    inbox.journal.append("loop", Draft(key=f"{CALL}/call", event=STARTED, money={CALL: RESERVE}))
    return inbox


def result(**more: Any) -> JsonObject:
    spent = asdict(Amount(input=7, output=2, tool_calls=1, usd=0.5))
    said: JsonObject = {"key": CALL, "child_run_id": CHILD, "usage": asdict(Usage(input=7, output=2)), "spent": spent}
    return said | (more or {"text": "found", "stop_reason": "stop"})


def types(inbox: Inbox) -> list[str]:
    return [record.type for record in inbox.journal.in_order()]


# -- a parent that is deleted
def test_with_a_run_its_inline_children_are_deleted_and_no_others() -> None:
    inbox = box("boss")
    inbox.journal.append("note", Draft(key="run", event=created()))
    ids = [keys.child("boss", "c0", inline=True), keys.child("boss", "c1"), keys.child("forked", "c2", inline=True)]
    for number, run_id in enumerate(ids):
        started = replace(STARTED, call_id=f"c{number}", child_run_id=run_id)
        inbox.journal.append("loop", Draft(key=f"c{number}/call", event=started))
        receive(inbox, "child_result", result() | {"key": f"c{number}", "child_run_id": run_id})
    inbox.delete()
    sent = [unsent.send for unsent in inbox.journal.log.outbox()]
    assert [(send.destination, send.method) for send in sent] == [(f"run/{ids[0]}", "delete_child")]


@pytest.mark.parametrize("before", [(), ("create_child",), ("cancel_child",), ("create_child", "cancel_child")])
def test_a_child_that_is_deleted_with_its_parent_never_begins_whatever_comes_first(before: tuple[str, ...]) -> None:
    said: dict[str, JsonObject] = {
        "create_child": {"created": codec.encode(created(PARENT))},
        "cancel_child": {"parent": "boss", "key": CALL, "reason": "the run ended"},
        "delete_child": {},
    }
    inbox = box(CHILD)
    for method in before:
        receive(inbox, method, said[method])
    for _ in range(2):
        receive(inbox, "delete_child", {})
    assert (inbox.journal.log.exists(), inbox.journal.log.erased()) == (False, True)
    receive(inbox, "cancel_child", said["cancel_child"])
    with pytest.raises(Refusal, match="was deleted"):
        receive(inbox, "create_child", said["create_child"])


# -- the parent
def test_the_first_result_answers_the_call_and_a_second_one_changes_nothing() -> None:
    inbox = boss()
    for said in (result(), result(), result(error="other")):
        receive(inbox, "child_result", said)
    assert types(inbox)[2:] == ["subagent.completed"]
    assert inbox.journal.money[CALL] == Amount(input=7, output=2, tool_calls=2, usd=0.5)


def test_one_that_was_given_up_keeps_its_reserve_until_a_late_result_says_less() -> None:
    inbox = boss()
    cancel_subagent(inbox, "c0", None)
    assert inbox.journal.money[CALL] == RESERVE
    (unsent,) = inbox.journal.log.outbox()
    assert (unsent.send.destination, unsent.send.method) == (f"run/{CHILD}", "cancel_child")
    for _ in range(2):
        receive(inbox, "child_result", result(error="it was cancelled"))
    assert types(inbox)[2:] == ["subagent.failed", "subagent.settled"]
    assert inbox.journal.money[CALL] == Amount(input=7, output=2, tool_calls=2, usd=0.5)


@pytest.mark.parametrize("said", [result() | {"child_run_id": "another"}, result() | {"key": "s1/r1/c9"}])
def test_a_result_that_nobody_waits_for_is_no_result(said: JsonObject) -> None:
    inbox = boss()
    receive(inbox, "child_result", said)
    assert len(types(inbox)) == 2


def test_after_the_end_of_the_parent_nothing_is_taken_any_more() -> None:
    inbox = boss()
    close.close("boss", inbox.journal, close.cancelled(inbox.journal))
    assert types(inbox)[2:] == ["subagent.failed", "run.cancelled"]
    receive(inbox, "child_result", result())
    assert len(types(inbox)) == 4
    with pytest.raises(Refusal, match="There is no run"):
        receive(box("nobody"), "child_result", result())


def test_events_of_a_child_are_told_once_each_also_by_a_new_instance() -> None:
    log = in_memory_log()
    heard: list[Item] = []

    def instance() -> Inbox:
        hub = Hub()
        hub.follow(heard.extend)
        journal = Journal(log, Clock(), hub)
        return Inbox(journal, Driver("boss", journal, Alarm(), no_ports))

    first = instance()
    first.journal.append("note", Draft(key="run", event=created()))
    first.journal.append("loop", Draft(key=f"{CALL}/call", event=STARTED, money={CALL: RESERVE}))
    heard.clear()
    events = [{"seq": seq, "type": "boundary"} for seq in range(1, 5)]
    spent = asdict(Amount(input=9))
    for inbox, some in ((first, events[:2]), (first, events[:3]), (instance(), events[1:]), (instance(), events)):
        receive(inbox, "child_events", {"key": CALL, "events": some, "spent": spent})
    told = [getattr(item, "child_seq", None) for item in heard if not isinstance(item, UsageSoFar)]
    assert told == [1, 2, 3, 4]
    assert [item.call_id for item in heard if isinstance(item, UsageSoFar)] == ["c0"] * 3


def test_only_a_subagent_that_was_started_and_has_not_ended_can_be_stopped() -> None:
    inbox = boss()
    with pytest.raises(Refusal) as unknown:
        cancel_subagent(inbox, "c9", None)
    receive(inbox, "child_result", result())
    with pytest.raises(Refusal) as ended:
        cancel_subagent(inbox, "c0", None)
    assert (unknown.value.code, ended.value.code) == ("unknown_subagent", "subagent_ended")


@pytest.mark.parametrize("times", [1, 3])
def test_what_a_child_has_cost_that_answers_after_the_end_counts_once_the_run_is_resumed(times: int) -> None:
    inbox = boss()
    close.close("boss", inbox.journal, close.cancelled(inbox.journal))
    for _ in range(times):
        receive(inbox, "child_result", result(error="it was cancelled"))
    assert (types(inbox)[2:], inbox.journal.money[CALL]) == (["subagent.failed", "run.cancelled"], RESERVE)
    log = inbox.journal.log
    again = Journal(log, Clock(), Hub())  # another instance of the object
    inbox = Inbox(again, Driver("boss", again, Alarm(), no_ports))
    inbox.resume()
    assert types(inbox)[4:] == ["run.resumed", "subagent.settled"]
    assert inbox.journal.money[CALL] == Amount(input=7, output=2, tool_calls=2, usd=0.5)
    receive(inbox, "child_result", result())
    close.close("boss", inbox.journal, close.cancelled(inbox.journal))
    inbox.resume()
    assert types(inbox).count("subagent.settled") == 1


def test_a_fork_takes_over_what_children_have_cost_and_no_reserve_of_one_that_was_given_up() -> None:
    def inherited(inbox: Inbox) -> Amount:
        records = kept(inbox.journal.in_order())
        assert [record.type for record in records][:1] == ["subagent.started"]
        money: dict[str, Amount] = {}
        for record in records:
            money.update(record.money)
        return total_of(money.values())

    inbox = boss()
    cancel_subagent(inbox, "c0", None)
    assert inherited(inbox) == Amount()
    receive(inbox, "child_result", result(error="it was cancelled"))
    assert inherited(inbox) == Amount(input=7, output=2, tool_calls=2, usd=0.5)
    inbox = boss()
    receive(inbox, "child_result", result())
    assert inherited(inbox) == Amount(input=7, output=2, tool_calls=2, usd=0.5)


# -- the child
def test_a_create_that_comes_twice_is_one_run() -> None:
    inbox = box(CHILD)
    said = {"created": asdict(created(PARENT))}
    for _ in range(2):
        receive(inbox, "create_child", said)
    assert types(inbox) == ["run.created"]
    assert inbox.journal.created.parent == PARENT
    with pytest.raises(Refusal, match="another body"):
        receive(inbox, "create_child", {"created": asdict(created())})


def test_a_cancel_that_overtakes_the_create_leaves_a_tombstone_and_says_that_it_cost_nothing() -> None:
    inbox = box(CHILD)
    for _ in range(2):
        receive(inbox, "cancel_child", {"parent": "boss", "key": CALL, "reason": "enough"})
    with pytest.raises(Refusal) as refused:
        receive(inbox, "create_child", {"created": asdict(created(PARENT))})
    assert (refused.value.status, refused.value.code) == (410, "run_refused")
    assert types(inbox) == ["run.refused"]
    with pytest.raises(Refusal, match="there is no run"):
        inbox.cancel()
    (unsent,) = inbox.journal.log.outbox()
    parent = boss()
    cancel_subagent(parent, "c0", None)
    receive(parent, unsent.send.method, unsent.send.arguments)
    assert parent.journal.money[CALL] == Amount(tool_calls=1)


def test_the_terminal_record_of_a_child_goes_with_its_result_cut_to_what_the_parent_takes() -> None:
    inbox = box(CHILD)
    receive(inbox, "create_child", {"created": asdict(created(PARENT))})
    end = codec.decode("run.completed", {"stop_reason": "stop", "text": "x" * 50, "usage": {}})
    assert end.type == "run.completed"
    close.close(CHILD, inbox.journal, end)
    (unsent,) = inbox.journal.log.outbox()
    assert (unsent.send.destination, unsent.send.key) == ("run/boss", "end/0")
    assert unsent.send.arguments["text"].startswith("x" * 10 + "\n[… 40 characters")


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_end_without_a_text_says_why(text: str) -> None:
    end = codec.decode("run.completed", {"stop_reason": "budget", "text": text, "usage": {}})
    assert end.type == "run.completed"
    assert kin.result(CHILD, PARENT, end, Amount(), 0).arguments["text"] == "(it ended without a text: budget)"


@pytest.mark.parametrize("taken_by", ["another run", "a tombstone"])
def test_a_parent_hears_of_a_child_that_cannot_begin(taken_by: str) -> None:
    child, parent = box(CHILD), boss()
    if taken_by == "another run":
        receive(child, "create_child", {"created": asdict(created())})
    else:
        receive(child, "cancel_child", {"parent": "boss", "key": CALL, "reason": "enough"})
    create = kin.create(CALL, STARTED, created(PARENT))
    with pytest.raises(Refusal) as no:
        receive(child, create.method, create.arguments)
    told = kin.turned_away(create, no.value.message)
    assert told is not None
    assert told.destination == "run/boss"
    for _ in range(2):
        receive(parent, told.method, told.arguments)
    assert types(parent)[2:] == ["subagent.failed"]
    assert parent.journal.money[CALL] == Amount(tool_calls=1)
    (failed,) = parent.journal.types["subagent.failed"]
    assert getattr(failed.event, "error", "").startswith("it could not begin: ")
    assert kin.turned_away(told, "no") is None


def test_runs_send_nothing_else() -> None:
    with pytest.raises(ValueError, match="runs do not send delete"):
        receive(boss(), "delete", {})
