"""What a server asks a person in the middle of a call.

A call that the server keeps open is held for a moment, and goes on with an answer that comes in time. Else it ends, the
run waits, and the call is made again with the answer. On record both are the same: the question, its answer, and the
call that has it.
"""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any, cast

from edge_agent.core import keys
from edge_agent.core.errors import NeedsAnswer
from edge_agent.core.events import QuestionAnswered, QuestionAsked, ToolCalled
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.signals import Suspend
from edge_agent.core.tooling import Answers
from edge_agent.loop.sign_in import WITHIN_MS, wait_for
from edge_agent.loop.unknown import MOST_REPEATS, repeats
from edge_agent.loop.waiting import note_waiting
from edge_agent.loop.walk import Walk

REFUSALS = ("decline", "cancel")
HELD_SECONDS = 20.0


async def held(walk: Walk, call: str, intent: ToolCalled, limit: asyncio.Timeout, error: NeedsAnswer) -> Answers | None:
    """What a person answers while the call is held open, which is on record as a call with an answer then: should it be
    lost from here on, it may have happened. None where nobody answers in time.

    `limit`: that of the call. It stands still as long as a person is waited for."""
    now, number = asyncio.get_running_loop().time, repeats(walk, call)
    left = (limit.when() or now()) - now()
    seconds = min(HELD_SECONDS, left, (walk.slice.until - walk.ports.clock.now()) / 1000)
    if not walk.ports.can_ask or number >= MOST_REPEATS or seconds <= 0:
        return None
    key = f"{call}/ask/{number}"
    _put(walk, key, error)
    journal = walk.journal
    note_waiting(journal, [wait_for(key.removesuffix("/answer"), asked) for key, asked in journal.open_questions()])
    limit.reschedule(None)
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(journal.comes(f"{key}/answer"), seconds)
    finally:
        limit.reschedule(now() + left)
    answer = walk.seen(f"{key}/answer", QuestionAnswered)
    if answer is None:
        return None
    walk.write(Draft(key=f"{call}/call/{number + 1}", event=intent))
    walk.slice.effects += 1
    await journal.log.durable()
    return _given(walk.kept(key, QuestionAsked), answer)


def ask(walk: Walk, key: str, error: NeedsAnswer) -> Suspend:
    """The question `key` is on record then."""
    if not walk.has(key):
        _put(walk, key, error)
    return Suspend(wait_for(key, walk.kept(key, QuestionAsked)))


def _put(walk: Walk, key: str, error: NeedsAnswer) -> None:
    question_id, until = keys.call_id(walk.run_id, key), walk.ports.clock.now() + WITHIN_MS
    walk.write(Draft(key=key, event=question(error, question_id, until)))


def question(error: NeedsAnswer, question_id: str, expires_at: int) -> QuestionAsked:
    return QuestionAsked(
        question_id=question_id,
        for_="answer",
        question=error.question,
        expires_at=expires_at,
        server=error.server,
        url=error.url,
        schema=error.schema,
        requests=error.requests,
        request_state=error.request_state,
    )


def closing(journal: Journal, call: str) -> Iterator[Draft]:
    """For the append that answers a call: what was asked in it needs no answer any more."""
    for key, asked in journal.open_questions():
        if key.startswith(f"{call}/ask/"):
            yield Draft(key=key, event=QuestionAnswered(question_id=asked.question_id, by="cancel"), by="input")


def answers(walk: Walk, call: str) -> tuple[Answers, ...]:
    """Everything that was answered to the server in this call, in order."""
    return tuple(_answers(walk, call))


def _answers(walk: Walk, call: str) -> Iterator[Answers]:
    for number in range(repeats(walk, call)):
        question = walk.seen(f"{call}/ask/{number}", QuestionAsked)
        answer = walk.seen(f"{call}/ask/{number}/answer", QuestionAnswered)
        if question is not None and answer is not None and question.for_ == "answer":
            yield _given(question, answer)


def _given(question: QuestionAsked, answer: QuestionAnswered) -> Answers:
    return given(question, answer.answer if answer.by == "person" else None)


def given(question: QuestionAsked, answer: str | None) -> Answers:
    """What goes to the server. None: nobody answered."""
    return Answers.to(question.requests or (), question.request_state, *response(question, answer))


def response(question: QuestionAsked, answer: str | None) -> tuple[str, JsonObject | None]:
    """(accept, decline or cancel; what the form holds). A form of one field takes its value alone as well; a field that
    was left out takes its default; None: nobody answered."""
    text = (answer or "").strip()
    if answer is None or text.lower() in REFUSALS:
        return text.lower() or "cancel", None
    if question.schema is None:
        return "accept", None
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, dict):
        return "accept", _filled(question.schema, cast(JsonObject, value))
    fields = list(_fields(question.schema))
    return "accept", {fields[0]: value} if len(fields) == 1 else {"": value}


def _filled(schema: JsonObject, form: JsonObject) -> JsonObject:
    """SEP-1034. Where several forms are asked for at once, each is filled in."""
    filled = dict(form)
    for name, field in _fields(schema).items():
        if name not in form and "default" in field:
            filled[name] = field["default"]
        elif isinstance(inner := form.get(name), dict):
            filled[name] = _filled(field, cast(JsonObject, inner))
    return filled


def _fields(schema: JsonObject) -> dict[str, JsonObject]:
    return cast("dict[str, JsonObject]", schema.get("properties", {}))
