"""The laws of a walk: the record speaks, a miss is a frontier only when everything was walked, effects can be cut."""

import asyncio
from typing import Any

import pytest

from edge_agent import tool
from edge_agent.core.errors import Drift, OutcomeUnknown
from edge_agent.core.events import Boundary, Fault, ModelAnswered, RunCancelled, RunFailed, ToolUnknown
from edge_agent.core.hooks import AgentSpec
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.signals import Suspend, Wait, Yield
from edge_agent.loop.walk import Cut, Effects, Ports, Slice, Stray, Walk
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import in_memory_log
from edge_agent.tools.toolbox import Toolbox
from tests.contracts.log_contract import created, fault
from tests.unit.loop_kit import Setting, cancels_after, live, resumes


class Clock:
    def __init__(self) -> None:
        self.at = 1_000_000

    def now(self) -> int:
        return self.at


def walk_over(*drafts: Draft, most: int = 40) -> Walk:
    clock, hub = Clock(), Hub()
    journal = Journal(in_memory_log(), clock, hub)
    journal.append("note", Draft(key="run", event=created()))
    for draft in drafts:
        journal.append("loop", draft)
    model = ScriptedModel(answers=[])
    ports = Ports(clock=clock, sink=hub, agent=AgentSpec(name="a"), model=lambda _: model, tools=Toolbox())
    return Walk("run-1", journal, ports, Slice(until=2_000_000, most=most))


def test_what_is_on_record_is_returned_and_what_is_of_another_kind_is_drift() -> None:
    walk = walk_over(Draft(key="a", event=fault("1")))
    with pytest.raises(Drift, match=r"a holds fault, which this code does not expect there"):
        walk.seen("a", Boundary)
    assert walk.seen("a", Fault) == fault("1")
    assert walk.seen("b", Fault) is None
    assert walk.kept("a", Fault) == fault("1")
    with pytest.raises(KeyError):
        walk.kept("b", Fault)


def test_nothing_is_written_or_begun_while_recorded_work_is_left() -> None:
    walk = walk_over(Draft(key="a", event=fault("1")), Draft(key="b/c", event=fault("2")))
    for act in (lambda: walk.write(Draft(key="x", event=fault("x"))), lambda: walk.before_effect("x")):
        with pytest.raises(Drift, match=r"the code asks for x, but the log goes on with a \(fault\)"):
            act()
    walk.seen("a", Fault)
    with pytest.raises(Drift, match="the log goes on with b/c"):
        walk.frontier("x")
    walk.pass_over("b")
    walk.write(Draft(key="x", event=fault("x")))
    assert walk.has("x")
    walk.frontier("y")


def test_a_run_whose_code_drifted_fails_with_nothing_done_and_says_what_to_do() -> None:
    first = live(Setting(model=ScriptedModel(answers=["done"])))
    log = in_memory_log()
    log.append(first.records[:3], (), {"fingerprint": "print"})
    other = Draft(key="s1/r1/x0", event=fault("of another code"))
    Journal(log, Clock(), Hub()).append("loop", other)
    model = ScriptedModel(answers=[])
    lived = live(Setting(model=model, log=log))
    assert lived.error.kind == "drift"
    assert "s1/r1/x0" in lived.error.message
    assert lived.error.remedy.startswith("Roll the deployment back")
    assert model.requests == []


def test_a_slice_makes_at_least_one_effect_and_then_no_more_than_its_share() -> None:
    walk = walk_over(most=1)
    walk.before_effect("a")
    with pytest.raises(Yield):
        walk.before_effect("b")
    late = walk_over()
    clock: Any = late.ports.clock
    clock.at = 3_000_000
    late.before_effect("a")
    with pytest.raises(Yield):
        late.before_effect("b")


# -- side by side
async def test_siblings_all_end_before_one_lets_go_and_an_error_wins_over_a_yield_over_waits() -> None:
    walk, ended = walk_over(), list[str]()
    wait = Wait(key="k", reason="retry", until=1, at_deadline=fault("late"))

    async def sibling(name: str, seconds: float, raised: BaseException | None) -> str:
        await asyncio.sleep(seconds)
        ended.append(name)
        if raised:
            raise raised
        return name

    async def together(*raised: BaseException | None) -> list[str]:
        ended.clear()
        jobs = enumerate(raised)
        return await walk.side_by_side([lambda n=n, r=r: sibling(str(n), 0.01 * (4 - n), r) for n, r in jobs])

    assert await together(None, None) == ["0", "1"]
    with pytest.raises(KeyError):
        await together(Suspend(wait), Yield(), KeyError("x"), None)
    assert sorted(ended) == ["0", "1", "2", "3"]
    with pytest.raises(Yield):
        await together(Suspend(wait), Yield(), None)
    with pytest.raises(Suspend) as suspended:
        await together(Suspend(wait), None, Suspend(wait, wait))
    assert len(suspended.value.waits) == 3


# -- effects
async def test_an_effect_is_cut_from_outside_and_one_that_ended_by_itself_is_not() -> None:
    effects = Effects()

    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    async def cut_soon() -> None:
        effects.cut()

    asyncio.get_running_loop().call_soon(asyncio.ensure_future, cut_soon())
    with pytest.raises(Cut):
        await effects.run("a", forever())

    async def strayed() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Stray, match="something it waited for was cancelled"):
        await effects.run("b", strayed())

    async def fine() -> str:
        return "fine"

    assert await effects.run("c", fine()) == "fine"
    effects.cut()


async def test_when_the_whole_slice_is_ended_from_outside_its_effects_end_with_it() -> None:
    effects, ended = Effects(), list[str]()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("effect")

    work = asyncio.ensure_future(effects.run("a", forever()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert ended == ["effect"]


# -- verdicts of a life that is over
def test_a_resumed_run_decides_nothing_again_and_makes_new_attempts() -> None:
    slow = ScriptedModel(answers=[Answer(text="half", delay=1), "whole"])
    acts = {"s1/r1/a0": cancels_after(0.5), "end/0": resumes}
    lived = live(Setting(model=slow, acts=acts))
    assert lived.all_keys() == [
        "run",
        "life/0",
        "s1/r1",
        "s1/r1/a0",
        "cancel/0",
        "s1/r1/a0/end",
        "end/0",
        "life/1",
        "s1/r1/a1",
        "s1/r1/a1/end",
        "end/1",
    ]
    assert [a.message.text for a in lived.of(ModelAnswered)] == ["whole"]
    assert not lived.of(RunFailed)


def test_a_call_whose_outcome_a_cancel_made_unknown_is_not_made_again() -> None:
    @tool(on_unknown="retry")
    async def pay() -> str:
        """Pay."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            raise OutcomeUnknown("the line went dead") from error
        return "paid"

    model = ScriptedModel(answers=[Answer(calls=(("pay", {}),))])
    lived = live(Setting(model=model, tools=[pay], acts={"s1/r1/c0/call": cancels_after(1)}))
    assert isinstance(lived.end, RunCancelled)
    assert [key for key in lived.all_keys() if "/call" in key] == ["s1/r1/c0/call"]
    assert [u.cause for u in lived.of(ToolUnknown)] == ["cancelled"]
