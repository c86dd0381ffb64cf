"""The driver: slices, wake-ups, restarts, and the one terminal record of each life."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent import Limits, tool
from edge_agent.core.errors import Closed, EdgeAgentError, ModelError
from edge_agent.core.events import (
    ModelFailed,
    QuestionAnswered,
    RunCancelled,
    RunCompleted,
    RunStarted,
    RunWaiting,
    ToolUnknown,
)
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import Tool, ToolContext, ToolOutput
from edge_agent.loop import close
from edge_agent.loop.driver import MOST_RESTARTS, MOST_STALLED, Driver, SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Faults, Kill, VirtualClock, in_memory_log, in_virtual_time
from edge_agent.tools.toolbox import Toolbox
from edge_agent.wire import codec
from tests.contracts.log_contract import created
from tests.unit.loop_kit import Setting, cancels, cancels_after, live, resumes


@tool
async def work(n: int = 0) -> str:
    """Work."""
    await asyncio.sleep(1)
    return str(n)


def works(rounds: int) -> ScriptedModel:
    return ScriptedModel(answers=[*(Answer(calls=(("work", {"n": n}),)) for n in range(rounds)), "done"], by_turn=True)


class FakeAlarm:
    def __init__(self) -> None:
        self.set_at: list[int] = []

    def set(self, at: int) -> None:
        self.set_at.append(at)


class Stopped:
    """A clock that stands."""

    def now(self) -> int:
        return 1_000_000


def driver(log: Any = None, ports: Callable[[], Any] | None = None) -> tuple[Driver, FakeAlarm]:
    alarm = FakeAlarm()
    journal = Journal(log or in_memory_log(), Stopped(), Hub())

    def fails() -> Any:
        raise RuntimeError("the isolate is out of order")

    return Driver("run-1", journal, alarm, ports or fails), alarm


# -- waking
def test_waking_keeps_the_earliest_time_until_it_has_rung() -> None:
    driven, alarm = driver()
    driven.wake(2_000_000)
    driven.wake(3_000_000)
    driven.wake()
    driven.wake(1_500_000)
    assert alarm.set_at == [2_000_000, 1_000_000]


async def test_an_alarm_without_a_run_or_after_its_end_does_nothing_and_sets_none() -> None:
    driven, alarm = driver()
    await driven.ring(SliceBudget().begin(1_000_000))
    driven.journal.append("note", Draft(key="run", event=created()))
    close.close(driven.run_id, driven.journal, close.cancelled(driven.journal))
    close.close(driven.run_id, driven.journal, close.cancelled(driven.journal))
    await driven.ring(SliceBudget().begin(1_000_000))
    assert alarm.set_at == []
    assert [r.key for r in driven.journal.in_order()] == ["run", "end/0"]
    with pytest.raises(Closed):
        driven.journal.append("note", Draft(key="late", event=RunStarted(reason="late")))


# -- slices
def test_a_slice_ends_before_an_effect_when_its_effects_are_used_up_and_makes_at_least_one() -> None:
    for slices in (SliceBudget(effects=1), SliceBudget(seconds=0.0)):
        lived = live(Setting(model=works(3), tools=[work], slices=slices))
        assert isinstance(lived.end, RunCompleted)
        assert lived.object.rings >= 7
        assert len([key for key in lived.all_keys() if key.endswith("/call")]) == 3
    assert live(Setting(model=works(3), tools=[work])).object.rings == 1


def test_a_slice_that_ends_among_parallel_calls_leaves_the_rest_to_the_next() -> None:
    calls = tuple(("work", {"n": n}) for n in range(6))
    model = ScriptedModel(answers=[Answer(calls=calls), "done"], by_turn=True)
    limits = Limits(max_tool_calls=5)
    lived = live(Setting(model=model, tools=[work], slices=SliceBudget(effects=3), limits=limits))
    assert isinstance(lived.end, RunCompleted)
    outputs = [lived.object.instance.journal.records[f"s1/r1/c{n}/result"].event for n in range(6)]
    assert [getattr(event, "output", event.type) for event in outputs] == ["0", "1", "2", "3", "4", "tool.rejected"]


# -- failures of the slice itself
async def test_a_slice_that_raises_backs_off_longer_and_longer_and_ends_after_ten_without_progress() -> None:
    driven, alarm = driver()
    driven.journal.append("note", Draft(key="run", event=created()))
    rings = 0
    while not driven.journal.ended:
        await driven.ring(SliceBudget().begin(1_000_000))
        rings += 1
    assert rings == MOST_STALLED + 2
    pauses = [at - 1_000_000 for at in alarm.set_at]
    assert pauses[:4] == [250, 500, 1_000, 2_000]
    assert max(pauses) == 10_000
    end = driven.journal.ended.event
    assert end.type == "run.failed"
    assert end.error.kind == "restarts"
    assert "RuntimeError: the isolate is out of order" in end.error.message


async def test_what_a_slice_raised_is_kept_without_secrets() -> None:
    log = in_memory_log()
    journal = Journal(
        log, Stopped(), Hub(), lambda event: codec.masked(event, lambda t: t.replace("order", "[secret]"))
    )

    def fails() -> Any:
        raise RuntimeError("the isolate is out of order")

    driven = Driver("run-1", journal, FakeAlarm(), fails)
    journal.append("note", Draft(key="run", event=created()))
    await driven.ring(SliceBudget().begin(1_000_000))
    assert log.meta("last_error") == "RuntimeError: the isolate is out of [secret]"


def test_a_run_that_keeps_killing_its_object_ends_and_says_so() -> None:
    kills = [Kill(append, "before") for append in range(6, 99)]  # from the end of its first attempt on
    lived = live(Setting(model=ScriptedModel(answers=["hello"] * 40), kills=kills[:11]))
    assert lived.error.kind == "restarts"
    assert f"restarted {MOST_STALLED + 1} times without getting on" in lived.error.message
    assert "without a word" in lived.error.message


def test_a_hundred_restarts_with_progress_in_between_do_not_end_a_run() -> None:
    kills = [Kill(10 * number, "before") for number in range(1, 200)]
    limits = Limits(max_steps=None)
    lived = live(Setting(model=works(170), tools=[work], kills=kills, limits=limits))
    assert isinstance(lived.end, RunCompleted)
    assert lived.object.faults.deaths > 100
    assert int(lived.object.log.meta("restarts") or 0) > 100


async def test_in_all_a_life_is_restarted_a_thousand_times_at_most_and_a_resume_counts_anew() -> None:
    driven, _ = driver()
    driven.journal.append("note", Draft(key="run", event=created()))
    log = driven.journal.log
    log.set_meta("slice", "open")
    log.set_meta("restarts", str(MOST_RESTARTS))
    await driven.ring(SliceBudget().begin(1_000_000))
    assert driven.journal.ended is not None
    assert driven.journal.ended.event.type == "run.failed"

    Inbox(driven.journal, driven).resume()
    assert (log.meta("restarts"), log.meta("stalled"), log.meta("slice")) == ("0", "0", "closed")


# -- ends
def test_a_cancel_in_mid_stream_closes_the_stream_and_ends_the_run_once() -> None:
    model = ScriptedModel(answers=[Answer(text="a long story", delay=1)], piece=1)

    def cancel_soon(inbox: Any) -> None:
        asyncio.get_running_loop().call_later(3.5, inbox.cancel, "enough")

    lived = live(Setting(model=model, acts={"s1/r1/a0": cancel_soon}))
    assert isinstance(lived.end, RunCancelled)
    assert model.closed == 1
    assert lived.all_keys()[-3:] == ["cancel/0", "s1/r1/a0/end", "end/0"]
    failed = lived.of(ModelFailed)[0]
    assert (failed.error, failed.retryable) == ("run-ended", False)
    assert lived.records[-1].batch == lived.records[-2].batch
    assert lived.records[-2].by == "loop"


def test_a_cancel_in_the_pause_before_a_retry_and_in_a_long_wait_ends_the_run_at_once() -> None:
    for wait in (4, 600):
        busy = ModelError("rate-limited", "busy", retryable=True, retry_after=wait)

        lived = live(Setting(model=ScriptedModel(answers=[busy]), acts={"s1/r1/a0/end": cancels_after(1)}))
        assert isinstance(lived.end, RunCancelled)
        at = {r.key: r.at for r in lived.records}
        assert at["end/0"] - at["cancel/0"] < 100


class Slow(Toolbox):
    """Servers that take their time."""

    async def refresh(self) -> tuple[str, ...]:
        await asyncio.sleep(60)
        return ()


def test_a_cancel_while_the_tools_are_taken_in_ends_the_run_at_once() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[]), toolbox=Slow(), acts={"run": cancels_after(1)}))
    assert isinstance(lived.end, RunCancelled)
    assert lived.all_keys() == ["run", "life/0", "cancel/0", "end/0"]


def test_a_cancel_while_an_intent_becomes_durable_runs_no_tool() -> None:
    ran: list[None] = []

    @tool
    async def pay() -> str:
        """Pay."""
        ran.append(None)
        return "paid"

    model = ScriptedModel(answers=[Answer(calls=(("pay", {}),))])
    lived = live(Setting(model=model, tools=[pay], acts={"s1/r1/c0/call": cancels}))
    assert not ran
    assert [u.cause for u in lived.of(ToolUnknown)] == ["cancelled"]
    assert isinstance(lived.end, RunCancelled)


def test_the_end_of_a_life_answers_what_was_open_and_withdraws_what_was_asked() -> None:
    class Doubtful:
        spec = ToolSpec(name="doubtful", description="", parameters={})
        server, timeout, read_only, safe_to_repeat, on_unknown = None, 1.0, False, False, "ask"
        requires_approval = False
        max_output = None

        def check(self, arguments: JsonObject) -> None:
            pass

        async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
            await asyncio.Event().wait()
            raise AssertionError

    made: Any = Doubtful()
    model = ScriptedModel(answers=[Answer(calls=(("doubtful", {}),)), "done"], by_turn=True)

    acts = {"s1/r1/c0/ask/0": cancels_after(5), "end/0": resumes}
    lived = live(Setting(model=model, tools=[made], acts=acts))
    assert [a.by for a in lived.of(QuestionAnswered)] == ["cancel"]
    assert [u.cause for u in lived.of(ToolUnknown)] == ["cancelled"]
    assert len(lived.of(RunWaiting)) == 1
    assert isinstance(lived.end, RunCompleted)
    assert lived.records[-1].life == 1


def test_a_restart_while_it_waits_records_no_second_waiting_and_waits_on() -> None:
    busy = ModelError("rate-limited", "busy", retryable=True, retry_after=600)

    def ring_early(inbox: Any) -> None:
        for seconds in (10, 20, 30):
            asyncio.get_running_loop().call_later(seconds, inbox.driver.wake)

    lived = live(Setting(model=ScriptedModel(answers=[busy, "done"]), acts={"s1/r1/a0/end": ring_early}))
    assert len(lived.of(RunWaiting)) == 1
    assert lived.object.rings == 5
    assert isinstance(lived.end, RunCompleted)


def test_the_tools_are_closed_at_the_end_of_each_slice() -> None:
    class Closing(Toolbox):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    box = Closing([work])
    lived = live(Setting(model=works(1), toolbox=box, slices=SliceBudget(effects=1)))
    assert box.closed == lived.object.rings


def test_a_virtual_clock_counts_whole_milliseconds() -> None:
    async def main() -> int:
        clock = VirtualClock()
        began = clock.now()
        await asyncio.sleep(0.0015)
        return clock.now() - began

    assert in_virtual_time(main()) == 1


def test_waiting_for_nothing_is_said_and_not_waited_for() -> None:
    async def forever() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="nothing will ever happen again"):
        in_virtual_time(forever())


def test_a_kill_by_hand_is_one_death_and_the_run_goes_on() -> None:
    def kill(inbox: Any) -> None:
        log = inbox.journal.log
        log.kill()
        log.kill()

    tools: list[Tool] = [work]
    lived = live(Setting(model=works(1), tools=tools, acts={"s1/r1/a0": kill}))
    assert isinstance(lived.end, RunCompleted)
    assert lived.object.faults.deaths == 1
    assert isinstance(lived.object.faults, Faults)


def test_a_life_that_was_ended_while_a_slice_ran_takes_nothing_more() -> None:
    def end_later(inbox: Any) -> None:
        journal, run_id = inbox.journal, inbox.driver.run_id
        asyncio.get_running_loop().call_later(1.5, lambda: close.close(run_id, journal, close.cancelled(journal)))

    lived = live(Setting(model=ScriptedModel(answers=[Answer(text="abc", delay=1)], piece=1), acts={"run": end_later}))
    assert isinstance(lived.end, RunCancelled)
    assert lived.all_keys()[-2:] == ["s1/r1/a0/end", "end/0"]
    assert lived.object.instance.journal.log.meta("slice") == "closed"


def test_a_failure_of_our_own_without_a_word_of_its_own_says_what_it_is() -> None:
    error = close.why(EdgeAgentError("something else"))
    assert (error.kind, error.code, error.message) == ("internal", "internal", "something else")
