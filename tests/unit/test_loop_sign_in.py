"""A run that meets a server nobody has signed in to: it asks, lets go, and goes on; in memory, on virtual time."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from edge_agent.core.errors import NeedsSignIn
from edge_agent.core.events import (
    Boundary,
    Fault,
    Mode,
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunFailed,
    RunWaiting,
    ToolCalled,
    ToolRejected,
    ToolResult,
)
from edge_agent.core.messages import Turn
from edge_agent.core.model import ModelRequest
from edge_agent.core.tooling import SignIn, Tool
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.tool import tool
from edge_agent.tools.toolbox import Toolbox
from tests.unit.loop_kit import Act, Lived, Setting, cancels_after, live

LINK = "/v1/mcp/connect/em1.docs"


class Locked:
    """A server that opens when somebody has signed in; its tool turns calls away while `closed` says so."""

    name = "docs"

    def __init__(self, *, opened: bool = False, closed: int = 0) -> None:
        self.opened, self.closed, self.calls = opened, closed, 0

    async def refresh(self) -> tuple[str, ...]:
        return ()

    def sign_in(self) -> SignIn | None:
        return None if self.opened else SignIn(server="docs", url=LINK)

    def tools(self) -> tuple[Tool, ...]:
        @tool(name="docs__charge")
        async def charge() -> str:
            """Charge."""
            if self.closed:
                self.closed -= 1
                raise NeedsSignIn("docs", LINK)
            self.calls += 1
            return "charged"

        return (charge,) if self.opened else ()

    async def close(self) -> None: ...


def signs_in(server: Locked) -> Act:
    def later(inbox: Inbox) -> None:
        server.opened = True
        asyncio.get_running_loop().call_later(60, _answer(inbox, "signed in"))

    return later


def says(text: str) -> Act:
    return lambda inbox: asyncio.get_running_loop().call_later(60, _answer(inbox, text))


def _answer(inbox: Inbox, text: str) -> Callable[[], object]:
    question = [record.event for record in inbox.journal.types["question.asked"]][-1]
    assert isinstance(question, QuestionAsked)
    return lambda: inbox.answer(question.question_id, text)


CHARGE = Answer(calls=(("docs__charge", {}),))


def run(server: Locked, *answers: Answer, acts: dict[str, Act], kills: tuple[Kill, ...] = ()) -> Lived:
    model = ScriptedModel(answers=[*answers, "done"])
    return live(Setting(model=model, toolbox=Toolbox([], [server]), acts=acts, kills=kills))


def test_it_asks_before_the_first_round_waits_with_the_link_and_goes_on_after_the_login() -> None:
    server = Locked()
    lived = run(server, CHARGE, acts={"s1/r1/ask/0": signs_in(server)})
    assert lived.all_keys()[:6] == ["run", "life/0", "s1/r1/ask/0", "wait/4", "s1/r1/ask/0/answer", "s1/r1"]
    (asked,) = lived.of(QuestionAsked)
    assert (asked.for_, asked.server, asked.url) == ("authorization", "docs", LINK)
    (waiting,) = lived.of(RunWaiting)
    assert (waiting.for_, waiting.url, waiting.until) == (("authorization",), LINK, asked.expires_at)
    assert lived.of(Boundary)[0].tools.names == ("docs__charge",)
    assert isinstance(lived.end, RunCompleted)


def test_the_connection_is_told_of_the_question_in_the_same_append() -> None:
    lived = run(Locked(), acts={"s1/r1/ask/0": says("skip")})
    (unsent,) = lived.object.log.outbox()
    question = lived.of(QuestionAsked)[0].question_id
    assert (unsent.send.destination, unsent.send.method) == ("mcp-connections", "wait")
    assert unsent.send.arguments == {"server": "docs", "user": None, "run_id": "run-1", "question_id": question}


@pytest.mark.parametrize("by", ["person", "expiry"])
def test_a_server_that_nobody_signs_in_to_is_left_out_and_not_asked_about_again(by: str) -> None:
    acts = {"s1/r1/ask/0": says("Skip")} if by == "person" else {}
    lived = run(Locked(), Answer(calls=(("other", {}),)), acts=acts)
    assert [answer.by for answer in lived.of(QuestionAnswered)] == [by]
    assert len(lived.of(QuestionAsked)) == 1
    assert [fault.message for fault in lived.of(Fault)] == [
        "Nobody has signed in to the MCP server docs. Its tools are left out."
    ]
    assert isinstance(lived.end, RunCompleted)


def test_an_answer_that_changed_nothing_is_followed_by_the_question_again() -> None:
    server = Locked()
    lived = run(server, acts={"s1/r1/ask/0": says("I did"), "s1/r1/ask/1": signs_in(server)})
    assert [record.key for record in lived.records if record.type == "question.asked"] == ["s1/r1/ask/0", "s1/r1/ask/1"]
    assert isinstance(lived.end, RunCompleted)


def test_a_call_that_is_turned_away_waits_and_is_made_once_with_its_own_key() -> None:
    server = Locked(opened=True, closed=1)
    lived = run(server, CHARGE, acts={"s1/r1/c0/ask/0": says("signed in")})
    assert [event.output for event in lived.of(ToolResult)] == ["charged"]
    assert server.calls == 1
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert [key for key in lived.all_keys() if "/c0/" in key] == [
        "s1/r1/c0/call",
        "s1/r1/c0/ask/0",
        "s1/r1/c0/ask/0/answer",
        "s1/r1/c0/call/1",
        "s1/r1/c0/result",
    ]


def test_a_call_that_is_turned_away_for_good_tells_the_model_that_it_was_not_made() -> None:
    server = Locked(opened=True, closed=1)
    lived = run(server, CHARGE, acts={"s1/r1/c0/ask/0": says("skip")})
    (rejected,) = lived.of(ToolRejected)
    assert (rejected.reason, "nobody has signed in to docs" in rejected.message) == ("denied", True)
    assert server.calls == 0


KILLS = (Kill(3, "before"), *(Kill(append, when) for append in (5, 6, 7) for when in ("before", "after")))


@pytest.mark.parametrize("kill", KILLS, ids=str)
def test_a_kill_around_the_question_the_answer_and_the_boundary_changes_nothing(kill: Kill) -> None:
    calm, server = Locked(), Locked()
    keys = _kept(run(calm, CHARGE, acts={"s1/r1/ask/0": signs_in(calm)}))
    lived = run(server, CHARGE, acts={"s1/r1/ask/0": signs_in(server)}, kills=(kill,))
    assert isinstance(lived.end, RunCompleted)
    assert (server.calls, _kept(lived)) == (1, keys)


def _kept(lived: Lived) -> list[str]:
    """Without waits and lost attempts."""
    attempts = [key for key in lived.all_keys() if "/a" in key]
    return [key for key in lived.all_keys() if not key.startswith("wait/") and key not in attempts]


def test_a_login_that_is_lost_while_the_history_is_summed_up_for_the_planner_is_asked_for_by_its_step() -> None:
    def answers(request: ModelRequest) -> Any:
        if (request.metadata or {})["stage"] == "plan":
            return json.dumps({"thought": "", "steps": [{"id": "a", "description": "look"}]})
        return "done"

    def closes(_: Inbox) -> None:
        server.opened = False

    server = Locked(opened=True)
    model = ScriptedModel(answers=[answers] * 9)
    history = tuple(Turn(role="user", text=f"{number} {'nets and ropes ' * 60}") for number in range(9))
    setting = Setting(model=model, mode="planned", history=history, window=2_000, toolbox=Toolbox([], [server]))
    acts = {"plan/context": closes, "s1/r1/ask/0": says("skip")}
    lived = live(replace(setting, acts=acts, kills=(Kill(4, "after"),)))
    assert "plan/compact/a1" in lived.all_keys(), "killed while it was summed up"
    assert lived.state.text == "done"


def test_a_run_that_is_cancelled_while_it_waits_withdraws_the_question() -> None:
    lived = run(Locked(), acts={"s1/r1/ask/0": cancels_after(5)})
    assert lived.state.status == "cancelled"
    assert [answer.by for answer in lived.of(QuestionAnswered)] == ["cancel"]


def test_where_there_is_nobody_to_ask_the_server_is_left_out_at_once() -> None:
    lived = live(Setting(model=ScriptedModel(answers=["done"]), toolbox=Toolbox([], [Locked()]), can_ask=False))
    assert lived.of(QuestionAsked) == []
    assert len(lived.of(Fault)) == 1


@pytest.mark.parametrize("closed", [3, 4])
def test_a_call_that_is_turned_away_again_and_again_is_asked_about_three_times_and_paid_for_where_it_is_made(
    closed: int,
) -> None:
    server = Locked(opened=True, closed=closed)
    lived = run(server, CHARGE, acts={f"s1/r1/c0/ask/{number}": says("signed in") for number in range(9)})
    assert (len(lived.of(QuestionAsked)), len(lived.of(ToolCalled))) == (3, 4)
    (result,) = lived.of(ToolResult)
    assert (result.ok, server.calls) == ((True, 1) if closed == 3 else (False, 0))
    assert lived.state.spent.tool_calls == 1


# -- an agent that does not work without
PLAN = '{"thought": "t", "steps": [{"id": "1", "description": "one"}]}'


@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_a_run_that_can_have_no_tool_of_a_server_fails_before_a_model_is_asked_and_is_resumed_when_it_can(
    mode: Mode,
) -> None:
    server = Locked()

    def mended(inbox: Inbox) -> None:
        server.opened = True
        inbox.resume()

    model = ScriptedModel(answers=[PLAN, "did it", "done"] if mode == "planned" else ["done"])
    toolbox = Toolbox([], [server])
    setting = Setting(
        model=model, toolbox=toolbox, mode=mode, can_ask=False, fail_on_no_tools=True, acts={"end/0": mended}
    )
    lived = live(setting)
    (failed,) = lived.of(RunFailed)
    assert (failed.error.kind, failed.error.code) == ("mcp", "no-tools")
    assert "Nobody has signed in to the MCP server docs." in failed.error.message
    assert lived.all_keys()[:4] == ["run", "life/0", "end/0", "life/1"]
    assert lived.state.text == "done"


def test_a_server_that_is_lost_after_the_beginning_ends_no_run() -> None:
    server = Locked(opened=True)

    def lost(_: Inbox) -> None:
        server.opened = False

    model, acts = ScriptedModel(answers=[CHARGE, "done"]), {"s1/r1/c0/result": lost}
    toolbox = Toolbox([], [server])
    lived = live(Setting(model=model, toolbox=toolbox, can_ask=False, fail_on_no_tools=True, acts=acts))
    assert isinstance(lived.end, RunCompleted)
    assert lived.of(Boundary)[1].tools.names == ()
