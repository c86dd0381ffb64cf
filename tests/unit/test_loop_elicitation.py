"""What a server asks in the middle of a call: asked, waited for, and the call made again with the answer."""

import asyncio
from typing import Any

import pytest

from edge_agent.core.errors import NeedsAnswer
from edge_agent.core.events import QuestionAsked, RunCompleted, RunWaiting, ToolCalled, ToolResult
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers, ToolContext
from edge_agent.loop.elicitation import response
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.tool import tool
from tests.unit.loop_kit import Act, Lived, Setting, live

SEATS: JsonObject = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


def booked(*answers: str, rounds: int = 1) -> tuple[Lived, list[tuple[Answers, ...]]]:
    """A run whose tool asks `rounds` times; a person answers each question after a minute."""
    seen: list[tuple[Answers, ...]] = []

    @tool
    async def book(context: ToolContext) -> str:
        """Book."""
        seen.append(context.answers)
        if len(context.answers) < rounds:
            raise NeedsAnswer("docs", "How many?", ("seats",), schema=SEATS, request_state=f"state-{len(seen)}")
        return str([dict(one.responses["seats"]) for one in context.answers])

    acts: dict[str, Act] = {f"s1/r1/c0/ask/{number}": _says(text) for number, text in enumerate(answers)}
    model = ScriptedModel(answers=[Answer(calls=(("book", {}),)), "done"])
    return live(Setting(model=model, tools=[book], acts=acts)), seen


def _says(text: str) -> Act:
    def later(inbox: Inbox) -> None:
        question: Any = inbox.journal.types["question.asked"][-1].event
        asyncio.get_running_loop().call_later(60, inbox.answer, question.question_id, text)

    return later


def test_the_question_has_the_servers_form_and_the_call_goes_again_with_the_answer_and_its_state() -> None:
    lived, seen = booked('{"seats": 2}')
    (asked,) = lived.of(QuestionAsked)
    assert (asked.for_, asked.question, asked.server, asked.schema) == ("answer", "How many?", "docs", SEATS)
    (waiting,) = lived.of(RunWaiting)
    assert (waiting.for_, waiting.question, waiting.schema) == (("answer",), "How many?", SEATS)
    assert seen[1] == (
        Answers(responses={"seats": {"action": "accept", "content": {"seats": 2}}}, request_state="state-1"),
    )
    assert len({called.idempotency_key for called in lived.of(ToolCalled)}) == 1
    assert isinstance(lived.end, RunCompleted)


def test_a_server_may_ask_again_and_gets_every_answer() -> None:
    lived, seen = booked('{"seats": 1}', "decline", rounds=2)
    assert [one.request_state for one in seen[-1]] == ["state-1", "state-2"]
    (result,) = lived.of(ToolResult)
    assert "{'action': 'decline'}" in result.output


def test_a_question_that_nobody_answers_in_time_goes_back_as_a_cancel() -> None:
    lived, _ = booked()
    assert "{'action': 'cancel'}" in lived.of(ToolResult)[0].output


@pytest.mark.parametrize(
    "answer, expected",
    [
        ('{"seats": 4}', ("accept", {"seats": 4})),
        ("4", ("accept", {"seats": 4})),
        ("four", ("accept", {"seats": "four"})),
        (" Decline ", ("decline", None)),
        ("cancel", ("cancel", None)),
        (None, ("cancel", None)),
    ],
)
def test_an_answer_is_read_as_json_or_as_the_one_field_there_is(answer: str | None, expected: object) -> None:
    question = QuestionAsked(question_id="q", for_="answer", question="How many?", expires_at=1, schema=SEATS)
    assert response(question, answer) == expected
