"""Calls of which nobody knows whether they were made: tried again, asked about, told, or the end of the run."""

import asyncio
from collections.abc import Callable
from typing import Any

from edge_agent import ToolContext, ToolOutput, tool
from edge_agent.core.errors import OutcomeUnknown
from edge_agent.core.events import (
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunWaiting,
    ToolCalled,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import Tool
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
from edge_agent.tools.toolbox import Toolbox
from tests.unit.loop_kit import Lived, Raw, Setting, asks, live, live_call


def test_an_unsafe_call_that_takes_too_long_has_an_unknown_outcome_and_a_safe_one_an_error() -> None:
    @tool(timeout=2)
    async def pay() -> str:
        """Pay."""
        await asyncio.sleep(60)
        return "paid"

    @tool(timeout=2, read_only=True)
    async def look() -> str:
        """Look."""
        await asyncio.sleep(60)
        return "seen"

    lived = live(Setting(model=asks(("pay", {}), ("look", {})), tools=[pay, look]))
    unknown = lived.of(ToolUnknown)[0]
    assert (unknown.cause, unknown.policy) == ("timed-out", "report")
    assert unknown.message.endswith("no answer within 2 s")
    assert [(r.ok, r.output) for r in lived.of(ToolResult)] == [(False, "look failed: no answer within 2 s")]


def test_a_tool_cancelled_by_nobody_has_an_unknown_outcome_and_the_run_goes_on() -> None:
    class Strayed(Raw):
        async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
            raise asyncio.CancelledError

    strayed: Any = Strayed(None)
    lived = live_call(strayed)
    assert lived.of(ToolUnknown)[0].cause == "lost"
    assert isinstance(lived.end, RunCompleted)


def doubtful(policy: Any, *, times: int = 1, safe: bool = False) -> tuple[Tool, list[int]]:
    tried: list[int] = []

    @tool(on_unknown=policy, idempotent=safe)
    async def pay() -> str:
        """Pay."""
        tried.append(len(tried))
        if len(tried) <= times:
            raise OutcomeUnknown("the line went dead")
        return "paid"

    return pay, tried


def test_by_policy_an_unknown_outcome_is_tried_again_at_most_three_times() -> None:
    pay, tried = doubtful("retry")
    assert live_call(pay).of(ToolResult)[0].output == "paid"
    assert len(tried) == 2
    pay, tried = doubtful("retry", times=99)
    lived = live_call(pay)
    assert len(tried) == 4
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert lived.of(ToolUnknown)[0].policy == "retry"
    assert lived.state.spent.tool_calls == 1


def test_by_policy_an_unknown_outcome_ends_the_run() -> None:
    pay, _ = doubtful("fail")
    lived = live_call(pay)
    assert (lived.error.kind, lived.error.code) == ("tool", "unknown-outcome")


def answer(text: str) -> Callable[[Any], object]:
    def act(inbox: Any) -> object:
        for record in inbox.journal.types["question.asked"]:
            inbox.answer(record.event.question_id, text)
        return None

    return act


def test_by_policy_a_person_is_asked_and_may_let_it_be_tried_again() -> None:
    pay, tried = doubtful("ask")
    lived = live_call(pay, acts={"wait/8": answer("retry")})
    assert lived.of(QuestionAsked)[0].question.endswith("or say what happened.")
    assert lived.of(QuestionAnswered)[0].by == "person"
    assert len(tried) == 2
    assert lived.of(ToolResult)[0].output == "paid"
    assert lived.of(RunWaiting)[0].for_ == ("answer",)


def test_a_person_is_asked_no_more_when_the_call_can_be_made_no_more() -> None:
    pay, tried = doubtful("ask", times=99)
    lived = live_call(pay, acts={f"s1/r1/c0/ask/{number}": answer("retry") for number in range(9)})
    assert (len(lived.of(QuestionAsked)), len(tried)) == (3, 4)
    assert "A person says" not in lived.of(ToolUnknown)[0].message
    assert lived.state.spent.tool_calls == 1


def test_what_a_person_says_is_told_to_the_model() -> None:
    pay, tried = doubtful("ask", times=9)
    lived = live_call(pay, acts={"s1/r1/c0/ask/0": answer("it was paid")})
    assert len(tried) == 1
    assert lived.of(ToolUnknown)[0].message.endswith("A person says: it was paid")


def test_a_question_nobody_answers_expires_after_a_day() -> None:
    pay, _ = doubtful("ask")
    lived = live_call(pay)
    asked, answered = (r for r in lived.records if r.type.startswith("question."))
    assert answered.at - asked.at in range(86_400_000 - 1, 86_400_001)
    assert lived.of(QuestionAnswered)[0].by == "expiry"
    assert lived.of(ToolUnknown)[0].cause == "lost"


def test_the_cause_a_person_was_told_stays_the_cause_after_a_restart() -> None:
    @tool(on_unknown="ask", timeout=1)
    async def pay() -> str:
        """Pay."""
        await asyncio.sleep(60)
        return "paid"

    lived = live_call(pay, kills=[Kill(7, "after"), Kill(9, "before")])
    assert {q.cause for q in lived.of(QuestionAsked)} == {u.cause for u in lived.of(ToolUnknown)}


def test_a_lost_safe_call_is_made_again_with_its_key_at_most_three_times() -> None:
    @tool(idempotent=True)
    async def put() -> str:
        """Put."""
        return "done"

    def put_with(*kills: int) -> Lived:
        model = ScriptedModel(answers=[Answer(calls=(("put", {}),)), "done"], by_turn=True)
        return live_call(put, model=model, kills=[Kill(append, "before") for append in kills])

    lived = put_with(7)  # before its result
    assert [key for key in lived.all_keys() if "/call" in key] == ["s1/r1/c0/call", "s1/r1/c0/call/1"]
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert isinstance(lived.end, RunCompleted)
    lived = put_with(7, 9, 11, 13)
    assert len(lived.of(ToolCalled)) == 4
    assert lived.of(ToolUnknown)[0].cause == "lost"


def test_a_lost_call_whose_tool_is_gone_is_unknown() -> None:
    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "x"

    class Once(Toolbox):
        def offered(self) -> tuple[ToolSpec, ...]:
            return (look.spec,)

        def find(self, name: str) -> Tool | None:
            return look if simulated[0] == 0 else None

    simulated = [0]

    def restarted() -> None:
        simulated[0] = len(seen)
        seen.append(None)

    seen: list[None] = []
    model = ScriptedModel(answers=[Answer(calls=(("look", {}),)), "done"], by_turn=True)
    lived = live(Setting(model=model, toolbox=Once(), kills=[Kill(7, "before")], ports=restarted))
    assert lived.of(ToolUnknown)[0].cause == "lost"
