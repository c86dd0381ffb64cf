"""Servers that want a person to sign in: the run asks, lets go, and goes on by itself when somebody has.

Asked before a record that takes in tools, or in the middle of a call that was turned away. The connection that the
server has for this user is told who waits for it, and answers the question when the sign-in is done.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import cast

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError, NeedsSignIn
from edge_agent.core.events import QuestionAnswered, QuestionAsked
from edge_agent.core.journal import Draft
from edge_agent.core.ports import Send
from edge_agent.core.signals import Suspend, Wait
from edge_agent.core.tooling import SignIn, Tools
from edge_agent.loop.offer import is_of_server
from edge_agent.loop.walk import Walk

CONNECTIONS = "mcp-connections"  # the destination; the post finds the connection by server and user
SKIP = "skip"  # the answer that leaves the server out
WITHIN_MS = 86_400_000  # that a person has for an answer: a day


class NoTools(EdgeAgentError):
    """None of the servers gave a tool, and the agent has fail_on_no_tools."""


async def take_in_tools(walk: Walk, key: str) -> tuple[str, ...]:
    """The tools as they are now, before the record `key`. A server that nobody signed in to in time is left out.

    Returns a sentence for each server whose tools are left out. Raises Suspend while a person is waited for, and
    NoTools where the agent does not work without."""
    waits = list(_open(walk, key))
    if walk.step_cancelled(key):
        return ()
    if waits:
        raise Suspend(*waits)
    said = await walk.take_in_tools(key, again=True)
    walk.ready()
    if walk.step_cancelled(key):
        return said
    wanted, left_out = _judged(walk, walk.tools.sign_ins())
    if wanted:
        asked = {f"{key}/ask/{number}": one for number, one in enumerate(wanted, start=_next(walk, key))}
        raise Suspend(*_ask(walk, asked))
    said = (*said, *(f"Nobody has signed in to the MCP server {name}. Its tools are left out." for name in left_out))
    if walk.agent.fail_on_no_tools and not walk.journal.types.get("model.requested"):
        _require_some(walk.tools, said)
    return said


def _require_some(tools: Tools, said: Sequence[str]) -> None:
    if not any(is_of_server(tool.name) for tool in tools.offered()):
        raise NoTools(" ".join(("No tool of any MCP server can be had.", *said)))


def pass_over(walk: Walk, key: str) -> None:
    """What was asked before the record `key`, which is there."""
    walk.pass_over(f"{key}/ask")


def _open(walk: Walk, key: str) -> Iterator[Wait]:
    for number in itertools.count():
        question = walk.seen(f"{key}/ask/{number}", QuestionAsked)
        if question is None:
            return
        if walk.seen(f"{key}/ask/{number}/answer", QuestionAnswered) is None:
            yield wait_for(f"{key}/ask/{number}", question)


def _next(walk: Walk, key: str) -> int:
    return next(number for number in itertools.count() if not walk.has(f"{key}/ask/{number}"))


def _judged(walk: Walk, sign_ins: Sequence[SignIn]) -> tuple[list[SignIn], list[str]]:
    """Those a person is to be asked about, and the names of those left out: what was declined is not asked again in
    the run, its later lives included."""
    declined = set(_declined(walk)) if walk.ports.can_ask else {one.server for one in sign_ins}
    wanted = [one for one in sign_ins if one.server not in declined]
    return wanted, [one.server for one in sign_ins if one.server in declined]


def _declined(walk: Walk) -> Iterator[str]:
    for record in walk.journal.types.get("question.asked", ()):
        question = cast(QuestionAsked, record.event)
        answer = walk.journal.event(f"{record.key}/answer", QuestionAnswered)
        if question.for_ == "authorization" and question.server and answer and is_declined(answer):
            yield question.server


def is_declined(answer: QuestionAnswered) -> bool:
    """By a person who goes on without the server, or by nobody in time. What an end withdrew is asked again."""
    return answer.by == "expiry" or (answer.answer or "").strip().lower() == SKIP


# -- the question
def ask_for_call(walk: Walk, key: str, error: NeedsSignIn) -> Suspend:
    """For the call that was turned away: the question `key` of it is on record then."""
    return Suspend(*_ask(walk, {key: SignIn(server=error.server, url=error.url)}))


def _ask(walk: Walk, sign_ins: dict[str, SignIn]) -> list[Wait]:
    questions = {key: _question(walk, key, sign_in) for key, sign_in in sign_ins.items()}
    drafts = [Draft(key=key, event=question) for key, question in questions.items()]
    walk.write(*drafts, sends=[_told(walk, key, question) for key, question in questions.items()])
    return [wait_for(key, walk.kept(key, QuestionAsked)) for key in questions]


def _question(walk: Walk, key: str, sign_in: SignIn) -> QuestionAsked:
    return QuestionAsked(
        question_id=keys.call_id(walk.run_id, key),
        for_="authorization",
        question=f"Sign in to {sign_in.server}, so that its tools can be used. Answer `{SKIP}` to go on without it.",
        expires_at=walk.ports.clock.now() + WITHIN_MS,
        server=sign_in.server,
        url=sign_in.url,
    )


def _told(walk: Walk, key: str, question: QuestionAsked) -> Send:
    who = {"server": question.server, "user": walk.created.user}
    waiting = {"run_id": walk.run_id, "question_id": question.question_id}
    return Send(key=key, destination=CONNECTIONS, method="wait", arguments={**who, **waiting})


def wait_for(key: str, question: QuestionAsked) -> Wait:
    return Wait(
        key=f"{key}/answer",
        reason="authorization" if question.for_ == "authorization" else "answer",
        until=question.expires_at,
        at_deadline=QuestionAnswered(question_id=question.question_id, by="expiry"),
        question=question,
    )
