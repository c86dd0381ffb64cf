"""Which tools a round offers. What was found stays found: in later rounds and steps, after a kill, in a fork."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest

from edge_agent import Agent, ToolOutput, tool
from edge_agent.core.events import Boundary, Mode, OnUnknown, ToolRejected, ToolResult, ToolsChanged, ToolsDiscovered
from edge_agent.core.messages import ToolSpec
from edge_agent.core.tooling import Tool, ToolSelection
from edge_agent.loop import prompts
from edge_agent.loop.fork import kept
from edge_agent.loop.offer import Offers, offer
from edge_agent.models.scripted import Answer, Item, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.testing.replay import record, replay
from edge_agent.tools.functions import FunctionTool
from edge_agent.tools.toolbox import Toolbox
from tests.conftest import Figure
from tests.unit.loop_kit import Lived, Setting, live


def numbered(number: int) -> FunctionTool[..., Any]:
    async def work(say: str = "") -> str:
        """Do one thing."""
        return f"{number} done {say}"

    return tool(name=f"work_{number:03}", description=f"Does thing{number:03} of them all.", read_only=True)(work)


def box(count: int) -> Toolbox:
    return Toolbox([numbered(number) for number in range(count)], searchable=True)


def finds(*queries: str, limit: int = 8) -> Answer:
    return Answer(calls=tuple(("find_tools", {"query": query, "limit": limit}) for query in queries))


def offered(lived: Lived) -> list[list[str]]:
    return [list(boundary.tools.names) for boundary in lived.of(Boundary) if boundary.tools.names]


def work(*numbers: int) -> list[str]:
    return [f"work_{number:03}" for number in numbers]


SEARCHING: list[Item] = [finds("thing117"), Answer(calls=(("work_117", {"say": "it"}),)), "done"]


@pytest.mark.parametrize(
    "selection, count, shown",
    [("auto", 40, 40), ("auto", 41, 1), ("all", 41, 41), ("search", 3, 1), ("plan-narrowed", 41, 41)],
)
def test_what_the_first_round_of_a_direct_run_offers(selection: ToolSelection, count: int, shown: int) -> None:
    lived = live(Setting(model=ScriptedModel(answers=["done"]), toolbox=box(count), selection=selection))
    names = offered(lived)[0]
    assert len(names) == shown
    assert ("find_tools" in names) is (shown == 1)
    assert "read_result" not in names


def test_a_tool_that_was_found_is_offered_and_can_be_called() -> None:
    model = ScriptedModel(answers=SEARCHING)
    lived = live(Setting(model=model, toolbox=box(150)))
    assert offered(lived) == [["find_tools"], ["find_tools", *work(117)], ["find_tools", *work(117)]]
    assert lived.of(ToolsDiscovered) == [ToolsDiscovered(query="thing117", names=("work_117",))]
    assert lived.of(ToolResult)[-1].output == "117 done it"
    assert [tool.name for tool in model.requests[1].tools] == ["find_tools", "work_117"]


def test_the_sixteen_found_last_stay_and_the_newest_stand_last() -> None:
    model = ScriptedModel(answers=[finds("work", limit=20), finds("thing003"), finds("thing100", "thing101"), "done"])
    lived = live(Setting(model=model, toolbox=box(150)))
    assert offered(lived)[1] == ["find_tools", *work(*range(15, -1, -1))]
    assert offered(lived)[2] == ["find_tools", *work(*(n for n in range(15, -1, -1) if n != 3), 3)]
    assert offered(lived)[3][-3:] == work(3, 100, 101)
    assert len(offered(lived)[3]) == 1 + 16


def test_a_search_counts_as_no_tool_call_and_says_what_there_is_when_it_finds_nothing() -> None:
    lived = live(Setting(model=ScriptedModel(answers=[finds("elephant"), "done"]), toolbox=box(50)))
    assert lived.of(ToolResult)[0].output == "No tool fits 'elephant'. Try other words."
    assert lived.of(ToolsDiscovered) == []
    assert lived.state.spent.tool_calls == 0


def test_a_tool_that_is_there_but_not_offered_is_refused_with_the_way_to_it() -> None:
    model = ScriptedModel(answers=[Answer(calls=(("work_007", {}), ("nothing", {}))), "done"])
    there, nowhere = live(Setting(model=model, toolbox=box(50))).of(ToolRejected)
    assert there.message == "work_007 is not among the tools of this round. Find it with find_tools, then call it."
    assert nowhere.message == "There is no tool nothing. Tools: find_tools."


def test_wherever_it_is_killed_it_still_has_what_it_found(figure: Figure) -> None:
    whole = live(Setting(model=ScriptedModel(answers=SEARCHING, by_turn=True), toolbox=box(150)))
    appends = len({record.batch for record in whole.records})
    for at in range(2, appends):
        model = ScriptedModel(answers=SEARCHING, by_turn=True)
        lived = live(Setting(model=model, toolbox=box(150), kills=[Kill(at, "after")]))
        assert lived.object.faults.deaths == 1
        assert lived.state.text == "done", at
        assert offered(lived)[-1] == ["find_tools", *work(117)], at
        assert len(lived.of(ToolsDiscovered)) == 1, at
    figure(f"killed after each of {appends - 2} appends")


def test_a_fork_takes_along_what_was_found() -> None:
    lived = live(Setting(model=ScriptedModel(answers=SEARCHING), toolbox=box(150)))
    at = next(record.seq for record in lived.records if isinstance(record.event, ToolsDiscovered))
    assert any(isinstance(record.event, ToolsDiscovered) for record in kept(lived.records[:at]))


# -- plans
def plan(*suggested: Sequence[str]) -> str:
    steps = [
        {"id": f"p{number}", "description": f"do {number}", "suggested_tools": list(names)}
        for number, names in enumerate(suggested)
    ]
    return json.dumps({"thought": "", "steps": steps})


@pytest.mark.parametrize(
    "selection, first, second",
    [
        ("search", ["find_tools", *work(7, 8)], ["find_tools", *work(9, 117)]),
        ("plan-narrowed", work(7, 8), work(9)),
    ],
)
def test_a_step_has_what_the_plan_suggests_and_what_earlier_steps_found(
    selection: ToolSelection, first: list[str], second: list[str]
) -> None:
    found = [finds("thing117"), "first"] if selection == "search" else ["first"]
    model = ScriptedModel(answers=[plan(work(7, 8), work(9)), *found, "second", "answer"])
    lived = live(Setting(model=model, toolbox=box(150), selection=selection, mode="planned"))
    assert lived.state.text == "answer"
    assert (offered(lived)[0], offered(lived)[-1]) == (first, second)


def test_a_planner_of_a_large_catalogue_sees_a_share_of_each_server() -> None:
    tools = [
        ToolSpec(name=f"{server}__do_{n:03}", description="x" * 90, parameters={})
        for server in ("a", "b")
        for n in range(200)
    ]
    told = prompts.catalogue_by_server([*tools, ToolSpec(name="own", description="One.", parameters={})])
    assert len(told) <= prompts.LISTED_IN_ALL
    assert "Of the server a, 200 tools:\n- a__do_000: " in told
    assert told.count("… and ") == 2
    assert told.endswith("Tools:\n- own: One.")


# -- the log against the code of today
@pytest.mark.parametrize("mode", ["direct", "planned"])
async def test_a_replay_finds_no_difference_but_in_a_tool_that_was_found_and_is_gone(mode: Mode) -> None:
    planned = mode == "planned"
    answers: list[Item] = [*([plan(work(7))] if planned else []), *SEARCHING, *(["answer"] if planned else [])]
    tools = [numbered(number) for number in range(150)]
    agent = Agent(name="a", model=ScriptedModel(answers=answers), mode=mode, tools=tools)
    log = await record(agent, "do it")
    assert "tools.discovered" in log
    assert await replay(agent, log) is None
    without = await replay(dataclasses.replace(agent, tools=[*tools[:117], *tools[118:]]), log)
    assert without is not None
    assert without.kind == "tools"


# -- lists that change
class Shelf:
    """A server whose list is another one each time."""

    name = "docs"

    def __init__(self, *lists: Sequence[str]) -> None:
        self._lists, self._at = lists, -1

    async def refresh(self) -> tuple[str, ...]:
        self._at = min(self._at + 1, len(self._lists) - 1)
        return ()

    def sign_in(self) -> None: ...

    def tools(self) -> tuple[Tool, ...]:
        return tuple(_OfDocs(f"docs__{name}") for name in self._lists[self._at]) if self._at >= 0 else ()

    async def close(self) -> None: ...


class _OfDocs:
    server, timeout, read_only, safe_to_repeat = "docs", 30.0, True, True
    requires_approval, max_output = False, None
    on_unknown: OnUnknown = "report"

    def __init__(self, name: str) -> None:
        self.spec = ToolSpec(name=name, description="", parameters={"type": "object", "properties": {}})

    def check(self, arguments: Any) -> None: ...

    async def run(self, arguments: Any, context: Any) -> Any:
        return ToolOutput(text="ok")


def test_a_list_that_changes_between_rounds_is_on_record_once() -> None:
    call = Answer(calls=(("docs__a", {}),))
    for kills in ([], [Kill(12, "after")]):
        model = ScriptedModel(answers=[call, call, call, "done"], by_turn=True)
        shelf = Shelf(["a", "b"], ["a", "b"], ["a", "c"], ["a", "c"])
        lived = live(Setting(model=model, toolbox=Toolbox([], [shelf]), kills=kills))
        assert lived.of(ToolsChanged) == [
            ToolsChanged(server="docs", added=("docs__a", "docs__b")),
            ToolsChanged(server="docs", added=("docs__c",), removed=("docs__b",)),
        ]


def test_tools_that_are_offered_again_are_hashed_once_and_others_are_not_taken_for_them() -> None:
    def look(description: str) -> ToolSpec:
        return ToolSpec(name="look", description=description, parameters={})

    one, other, offers = look("Look."), look("Look well."), Offers()
    known = offers.of((one,))
    assert known == offer((one,))
    assert offers.of((one,)) is known
    assert offers.of((other,)) == offer((other,)) != known
    assert offers.of((other, one)) == offer((other, one))
    assert offers.of(()) == offer(())
