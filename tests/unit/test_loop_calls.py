"""The calls of one answer: judged in order, run side by side, each with exactly one outcome."""

import asyncio
from typing import Any

from edge_agent import Hooks, Limits, ToolError, tool
from edge_agent.core.events import (
    BudgetExceeded,
    Fault,
    RunCancelled,
    RunCompleted,
    ToolCalled,
    ToolRejected,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Tool
from edge_agent.loop.walk import PARALLEL_CALLS
from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.tools.toolbox import Toolbox
from edge_agent.wire import codec
from tests.unit.loop_kit import Setting, asks, live, live_call, shown


# -- side by side
def test_five_run_at_a_time_and_the_order_stays() -> None:
    running, most = 0, 0

    @tool(read_only=True)
    async def work(number: int) -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(10 - number)
        running -= 1
        return str(number)

    model = asks(*(("work", {"number": number}) for number in range(9)))
    live(Setting(model=model, tools=[work]))
    assert most == PARALLEL_CALLS
    assert [message.text for message in shown(model)] == [str(number) for number in range(9)]


def test_one_that_fails_takes_no_sibling_down() -> None:
    @tool
    async def sometimes(fine: bool) -> str:
        """Work sometimes."""
        if not fine:
            raise ToolError("not today")
        await asyncio.sleep(1)
        return "fine"

    lived = live_call(sometimes, model=asks(("sometimes", {"fine": False}), ("sometimes", {"fine": True})))
    assert sorted((r.ok, r.output) for r in lived.of(ToolResult)) == [
        (False, "sometimes failed: not today"),
        (True, "fine"),
    ]


# -- before a call
class Disk(SqlLog):
    """How much had to be on it each time that somebody waited for it."""

    def __init__(self) -> None:
        super().__init__(in_memory(), codec)
        self.waited_for: list[str] = []

    async def durable(self) -> None:
        self.waited_for.append(self.load()[-1].key)
        await super().durable()


def test_a_call_that_may_be_made_only_once_waits_until_its_intent_is_on_disk_and_no_other() -> None:
    @tool
    async def pay() -> str:
        """Pay."""
        return "paid"

    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "seen"

    @tool(idempotent=True)
    async def put() -> str:
        """Put."""
        return "put"

    disk = Disk()
    live(Setting(model=asks(("look", {}), ("pay", {}), ("put", {})), tools=[pay, look, put], log=disk))
    assert disk.waited_for == ["s1/r1/c1/call"]


def test_what_cannot_run_is_answered_with_its_reason() -> None:
    @tool(read_only=True)
    async def look(q: str) -> str:
        """Look."""
        return q

    calls: tuple[tuple[str, JsonObject | str], ...] = (("ghost", {}), ("look", {}), ("look", "{oops"), ("look", "[1]"))
    lived = live_call(look, model=asks(*calls))
    assert [(r.reason, r.message) for r in lived.of(ToolRejected)] == [
        ("unknown-tool", "There is no tool ghost. Tools: look."),
        ("invalid-arguments", "`q` is required"),
        ("invalid-arguments", "The arguments of look are not a JSON object: {oops"),
        ("invalid-arguments", "The arguments of look are not a JSON object: [1]"),
    ]
    assert not lived.of(ToolCalled)


def test_no_arguments_are_an_empty_object_and_twice_encoded_ones_are_decoded_twice() -> None:
    @tool(read_only=True)
    async def look(q: str = "nothing") -> str:
        """Look."""
        return q

    lived = live_call(look, model=asks(("look", ""), ("look", '"{\\"q\\": \\"x\\"}"')))
    assert sorted(r.output for r in lived.of(ToolResult)) == ["nothing", "x"]


def test_over_the_cap_the_first_calls_run_and_the_others_are_told() -> None:
    @tool
    async def pay(n: int) -> str:
        """Pay."""
        await asyncio.sleep(5 - n)
        return str(n)

    model = asks(*(("pay", {"n": n}) for n in range(4)))
    lived = live(Setting(model=model, tools=[pay], limits=Limits(max_tool_calls=2)))
    assert [message.text for message in shown(model)][:2] == ["0", "1"]
    assert [r.reason for r in lived.of(ToolRejected)] == ["budget", "budget"]
    assert [(b.kind, b.used, b.cap) for b in lived.of(BudgetExceeded)] == [("tool-calls", 2, 2)]
    assert lived.state.spent.tool_calls == 2


def test_a_tool_that_went_away_between_the_boundary_and_the_call_is_an_answered_call() -> None:
    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "x"

    class Going(Toolbox):
        asked = 0

        def find(self, name: str) -> Tool | None:
            self.asked += 1
            return super().find(name) if self.asked in self.there else None

        there: range

    for there, message in ((range(0), "look cannot be reached any more"), (range(3), "look is no longer offered.")):
        box = Going([look])
        box.there = there
        lived = live(Setting(model=asks(("look", {})), toolbox=box))
        assert lived.of(ToolRejected)[0].reason == "unknown-tool"
        assert lived.of(ToolRejected)[0].message.startswith(message)


# -- hooks
def test_after_tool_is_told_each_result_and_on_error_each_exception() -> None:
    @tool
    async def work(fine: bool) -> str:
        """Work."""
        if not fine:
            raise RuntimeError("broken")
        return "fine"

    told: list[tuple[str, bool]] = []
    errors: list[tuple[str, str | None, str]] = []
    hooks = Hooks(
        after_tool=lambda call, result: told.append((call.name, result.ok)),
        on_error=lambda kind, name, error: errors.append((kind, name, str(error))),
    )
    lived = live_call(work, model=asks(("work", {"fine": True}), ("work", {"fine": False})), hooks=hooks)
    assert sorted(told) == [("work", False), ("work", True)]
    assert errors == [("tool", "work", "broken")]
    assert isinstance(lived.end, RunCompleted)


def test_on_error_may_end_the_run_at_a_tools_error_after_every_sibling_has_ended() -> None:
    @tool
    async def work(fine: bool) -> str:
        """Work."""
        if not fine:
            raise RuntimeError("broken")
        await asyncio.sleep(5)
        return "fine"

    model = asks(("work", {"fine": False}), ("work", {"fine": True}))
    hooks = Hooks(on_error=lambda kind, name, error: False)
    lived = live(Setting(model=model, tools=[work], hooks=hooks, acts={"end/0": lambda inbox: inbox.resume()}))
    assert [f.kind for f in lived.of(Fault)] == ["tool"]
    assert lived.all_keys().index("s1/r1/c1/result") < lived.all_keys().index("end/0")
    assert isinstance(lived.end, RunCompleted), "the recorded verdict ends only its own life"


# -- cancel
def test_a_cancel_cuts_the_calls_under_way_and_nothing_begins_any_more() -> None:
    begun: list[int] = []

    @tool
    async def pay(n: int) -> str:
        """Pay."""
        begun.append(n)
        await asyncio.sleep(60)
        return "paid"

    model = asks(*(("pay", {"n": n}) for n in range(8)))
    lived = live(Setting(model=model, tools=[pay], acts={"s1/r1/c4/call": lambda inbox: inbox.cancel()}))
    assert isinstance(lived.end, RunCancelled)
    assert len(begun) <= 5
    assert {u.cause for u in lived.of(ToolUnknown)} == {"cancelled"}
    assert len(lived.of(ToolUnknown)) == len(lived.of(ToolCalled)) == 5


def test_a_tool_that_will_not_be_cancelled_ends_with_what_it_gives_back() -> None:
    @tool
    async def stubborn() -> str:
        """Go on."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "done all the same"
        return "done"

    def cancel_soon(inbox: Any) -> None:
        asyncio.get_running_loop().call_later(1, inbox.cancel)

    lived = live_call(stubborn, acts={"s1/r1/c0/call": cancel_soon})
    assert isinstance(lived.end, RunCancelled)
