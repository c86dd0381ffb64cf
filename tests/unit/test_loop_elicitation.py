"""What a server asks in the middle of a call: asked, waited for, and the call made again with the answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from edge_agent.core.errors import NeedsAnswer
from edge_agent.core.events import (
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
    RunWaiting,
    ToolCalled,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers, ToolContext
from edge_agent.loop.elicitation import response
from edge_agent.loop.inbox import Inbox
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.testing import Kill
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


def _says(text: str, after: float = 60) -> Act:
    def later(inbox: Inbox) -> None:
        question: Any = inbox.journal.types["question.asked"][-1].event
        asyncio.get_running_loop().call_later(after, inbox.answer, question.question_id, text)

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


# -- calls that are held open
def held(
    *seconds: float, timeout: float = 30, after: float = 0, hurry: bool = False, kills: Sequence[Kill] = ()
) -> tuple[Lived, list[str]]:
    """A run whose tool asks as often as there are `seconds`, each until its answer, and works `after` that. `hurry`: it
    waits for no answer longer than a second."""
    seen: list[str] = []

    @tool(timeout=timeout)
    async def book(context: ToolContext) -> str:
        """Book."""
        seen.append("begun")
        for number in range(len(context.answers), len(seconds)):
            question = NeedsAnswer("docs", f"How many, {number}?", ("seats",), schema=SEATS)
            try:
                async with asyncio.timeout(1 if hurry else None):
                    answers = await context.ask(question)
            except TimeoutError:
                return "without an answer"
            if answers is None:
                seen.append("let go")
                raise question
            seen.append(str(answers.responses["seats"]["content"]))
        await asyncio.sleep(after)
        return "booked"

    acts = {f"s1/r1/c0/ask/{number}": _says("2", after=pause) for number, pause in enumerate(seconds)}
    model = ScriptedModel(answers=[Answer(calls=(("book", {}),)), "done"])
    return live(Setting(model=model, tools=[book], acts=acts, kills=kills)), seen


def test_an_answer_in_time_goes_into_the_call_that_is_under_way() -> None:
    lived, seen = held(15, 15)
    assert seen == ["begun", "{'seats': 2}", "{'seats': 2}"]
    assert [key for key in lived.all_keys() if key.startswith("s1/r1/c0/")] == [
        f"s1/r1/c0/{end}"
        for end in ("call", "ask/0", "ask/0/answer", "call/1", "ask/1", "ask/1/answer", "call/2", "result")
    ]
    assert len(lived.of(RunWaiting)) == 2
    assert isinstance(lived.end, RunCompleted)


def test_a_call_is_not_held_beyond_its_own_timeout_and_is_made_again_with_a_later_answer() -> None:
    lived, seen = held(15, timeout=10)
    assert seen == ["begun", "let go", "begun"]
    assert lived.of(ToolResult)[0].output == "booked"


def test_the_time_of_a_person_is_no_time_of_the_tool() -> None:
    lived, _ = held(9, timeout=10, after=9)
    assert lived.of(ToolResult)[0].output == "booked"
    late, _ = held(9, timeout=10, after=11)
    assert late.of(ToolUnknown)[0].cause == "timed-out"


def test_a_call_that_is_lost_while_it_is_held_is_made_again_and_one_that_had_its_answer_may_have_happened() -> None:
    lived, _ = held(15)
    order = {key: number for number, key in enumerate(lived.all_keys(), start=1)}
    unanswered, seen = held(15, kills=[Kill(order["s1/r1/c0/ask/0"], "after")])
    assert seen == ["begun", "begun"]
    assert unanswered.of(ToolResult)[0].output == "booked"
    answered, seen = held(15, kills=[Kill(order["s1/r1/c0/call/1"], "after")])
    assert seen == ["begun"]
    assert answered.of(ToolUnknown)[0].cause == "lost"


def test_a_question_whose_call_ends_without_its_answer_is_withdrawn() -> None:
    lived, _ = held(15, hurry=True)
    assert lived.of(ToolResult)[0].output == "without an answer"
    assert [answer.by for answer in lived.of(QuestionAnswered)] == ["cancel"]


def test_fields_that_a_person_leaves_out_take_the_defaults_of_the_form() -> None:
    form: JsonObject = {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": 3}, "s": {"type": "string"}},
    }
    forms: JsonObject = {"type": "object", "properties": {"a": form, "b": form}}
    one = QuestionAsked(question_id="q", for_="answer", question="How many?", expires_at=1, schema=form)
    several = replace(one, schema=forms)
    assert response(one, "{}") == ("accept", {"n": 3})
    assert response(one, '{"n": 4, "s": "x"}') == ("accept", {"n": 4, "s": "x"})
    assert response(several, '{"a": {}, "b": {"n": 5}}') == ("accept", {"a": {"n": 3}, "b": {"n": 5}})
