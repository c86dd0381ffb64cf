"""What a server asks a person in the middle of a call: the call ends, the run waits, and the call is made again with
the answer."""

import itertools
import json
from collections.abc import Iterator
from typing import Any, cast

from edge_agent.core import keys
from edge_agent.core.errors import NeedsAnswer
from edge_agent.core.events import QuestionAnswered, QuestionAsked
from edge_agent.core.journal import Draft
from edge_agent.core.messages import JsonObject
from edge_agent.core.signals import Suspend
from edge_agent.core.tooling import Answers
from edge_agent.loop.sign_in import WITHIN_MS, wait_for
from edge_agent.loop.walk import Walk

REFUSALS = ("decline", "cancel")


def ask(walk: Walk, key: str, error: NeedsAnswer) -> Suspend:
    """The question `key` is on record then."""
    question = QuestionAsked(
        question_id=keys.call_id(walk.run_id, key),
        for_="answer",
        question=error.question,
        expires_at=walk.ports.clock.now() + WITHIN_MS,
        server=error.server,
        url=error.url,
        schema=error.schema,
        requests=error.requests,
        request_state=error.request_state,
    )
    walk.write(Draft(key=key, event=question))
    return Suspend(wait_for(key, walk.kept(key, QuestionAsked)))


def answers(walk: Walk, call: str) -> tuple[Answers, ...]:
    """Everything that was answered to the server in this call, in order."""
    return tuple(_answers(walk, call))


def _answers(walk: Walk, call: str) -> Iterator[Answers]:
    for number in itertools.count():
        question = walk.seen(f"{call}/ask/{number}", QuestionAsked)
        answer = walk.seen(f"{call}/ask/{number}/answer", QuestionAnswered)
        if question is None or answer is None:
            return
        if question.for_ == "answer":
            action, content = response(question, answer.answer if answer.by == "person" else None)
            yield Answers.to(question.requests or (), question.request_state, action, content)


def response(question: QuestionAsked, answer: str | None) -> tuple[str, JsonObject | None]:
    """(accept, decline or cancel; what the form holds). A form of one field takes its value alone as well; None:
    nobody answered."""
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
        return "accept", cast(JsonObject, value)
    fields = list(cast(JsonObject, question.schema.get("properties", {})))
    return "accept", {fields[0]: value} if len(fields) == 1 else {"": value}
