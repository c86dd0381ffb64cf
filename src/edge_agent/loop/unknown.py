"""Calls that may have happened: what is to be done about one whose answer was lost, cut off or late."""

import copy
import itertools
from dataclasses import dataclass, replace

from edge_agent.core import keys
from edge_agent.core.errors import InvalidArguments
from edge_agent.core.events import (
    ApprovalRequested,
    QuestionAnswered,
    QuestionAsked,
    ToolCalled,
    ToolRejected,
    ToolUnknown,
)
from edge_agent.core.events import UnknownCause as Cause
from edge_agent.core.journal import Draft
from edge_agent.core.signals import Suspend
from edge_agent.core.tooling import Tool
from edge_agent.loop import approvals, prompts
from edge_agent.loop.approvals import Denied, Wanted
from edge_agent.loop.sign_in import WITHIN_MS, is_declined, wait_for
from edge_agent.loop.walk import Walk

MOST_REPEATS = 3  # of one call


@dataclass(frozen=True, slots=True)
class Again:
    """The call is to be made once more."""

    tool: Tool
    intent: ToolCalled


@dataclass(frozen=True, slots=True)
class Told:
    """The model is told that the outcome is unknown, or that the call was not made. `notes` belong into the append."""

    event: ToolUnknown | ToolRejected
    notes: tuple[Draft, ...] = ()


def repeats(walk: Walk, key: str) -> int:
    return next(number for number in itertools.count() if walk.seen(f"{key}/call/{number + 1}", ToolCalled) is None)


def never_made(walk: Walk, key: str) -> bool:
    """Whether no server was called, or every call was turned away until somebody signs in."""
    asked = (walk.journal.event(f"{key}/ask/{number}", QuestionAsked) for number in range(repeats(walk, key) + 1))
    return not walk.has(f"{key}/call") or all(one is not None and one.for_ == "authorization" for one in asked)


def read_all(walk: Walk, key: str) -> None:
    """Reads what the loop has recorded about the repeats of a call that has no result yet."""
    for number in range(repeats(walk, key) + 1):
        walk.seen(f"{key}/ask/{number}", QuestionAsked)
        walk.seen(keys.approval(key, number + 1), ApprovalRequested)


def after_a_loss(walk: Walk, key: str, tool: Tool | None, intent: ToolCalled) -> Again | Told:
    """An earlier instance began this call. What is safe to repeat runs again under the same key, and so does what its
    server had ended to ask a person; the rest follows its policy. Raises Suspend."""
    asked = walk.seen(f"{key}/ask/{repeats(walk, key)}", QuestionAsked)
    if asked is not None and asked.for_ != "unknown-outcome":
        return _after_the_answer(walk, key, tool, intent, asked)
    if tool is None or not intent.safe_to_repeat or repeats(walk, key) >= MOST_REPEATS:
        return by_policy(walk, key, tool, intent, "lost")
    refused = approvals.forbidden(walk, intent.name)
    return Again(tool, intent) if refused is None else _told(intent, "lost", refused)


def _after_the_answer(
    walk: Walk, key: str, tool: Tool | None, intent: ToolCalled, asked: QuestionAsked
) -> Again | Told:
    """The server had not read the call, or waits for it to be made again with the answer. Raises Suspend."""
    made = repeats(walk, key)
    answer = walk.seen(f"{key}/ask/{made}/answer", QuestionAnswered)
    if answer is None:
        raise Suspend(wait_for(f"{key}/ask/{made}", asked))
    refused = approvals.forbidden(walk, intent.name)
    left_out = asked.for_ == "authorization" and is_declined(answer)
    if tool is not None and made < MOST_REPEATS and refused is None and not left_out:
        return Again(tool, intent)
    said = f"nobody has signed in to {asked.server}" if left_out else "it was to be asked about too often, or is gone"
    return Told(
        ToolRejected(
            call_id=intent.call_id,
            name=intent.name,
            reason="denied",
            message=refused or f"{intent.name} was not called: {said}.",
            step=intent.step,
            round=intent.round,
        )
    )


def cut_off(intent: ToolCalled) -> ToolUnknown:
    """By the cancel of its step: a person wanted that, so no policy applies but to tell the model."""
    return replace(_unknown(intent, "cancelled", ""), policy="report")


def by_policy(
    walk: Walk, key: str, tool: Tool | None, intent: ToolCalled, cause: Cause, *, detail: str = ""
) -> Again | Told:
    """By what the tool declares: report it, ask a person, make the call again, or end the run. Raises Suspend."""
    made = repeats(walk, key)
    again = tool if made < MOST_REPEATS else None
    if intent.on_unknown == "retry":
        return _retried(walk, key, again, intent, cause) or _told(intent, cause, detail)
    if intent.on_unknown == "ask" and made < MOST_REPEATS:
        question, answer = _asked(walk, f"{key}/ask/{made}", intent, cause)
        cause, detail = question.cause or cause, f"A person says: {answer.answer}" if answer.answer else detail
        if answer.answer == "retry" and again is not None:  # that is the decision too: nobody is asked twice
            refused = approvals.forbidden(walk, intent.name)
            return Again(again, intent) if refused is None else _told(intent, cause, refused)
    return _told(intent, cause, detail)


def _retried(walk: Walk, key: str, tool: Tool | None, intent: ToolCalled, cause: Cause) -> Again | Told | None:
    """A decision covers one call: a retry is judged anew, and where a person is asked, with what is known of the first.

    None where the call can be made no more."""
    number = repeats(walk, key) + 1
    if tool is None:
        approvals.still_waiting(walk, key, number)
        return None
    walk.ready()
    asked = walk.seen(keys.approval(key, number), ApprovalRequested)
    cause = asked.cause if asked and asked.cause else cause
    arguments = approvals.admitted(walk, _wanted(key, number, tool, intent, cause))
    if isinstance(arguments, Denied):
        return _told(intent, cause, arguments.message, *arguments.notes)
    if arguments == intent.arguments:
        return Again(tool, intent)
    try:
        tool.check(copy.deepcopy(arguments))
    except InvalidArguments as error:
        return _told(intent, cause, str(error))
    edited = keys.idempotency_key(walk.run_id, key, arguments)
    return Again(tool, replace(intent, arguments=arguments, idempotency_key=edited))


def _wanted(key: str, number: int, tool: Tool, intent: ToolCalled, cause: Cause) -> Wanted:
    return Wanted(
        key=key,
        number=number,
        cause=cause,
        call_id=intent.call_id,
        name=intent.name,
        server=intent.server,
        arguments=intent.arguments,
        read_only=tool.read_only,
        requires_approval=tool.requires_approval,
        step=intent.step,
        round=intent.round,
    )


def _told(intent: ToolCalled, cause: Cause, detail: str, *notes: Draft) -> Told:
    return Told(_unknown(intent, cause, detail), notes)


def _unknown(intent: ToolCalled, cause: Cause, detail: str) -> ToolUnknown:
    return ToolUnknown(
        call_id=intent.call_id,
        name=intent.name,
        cause=cause,
        policy=intent.on_unknown,
        message=f"{prompts.unknown_outcome(intent.name, cause)} {detail}".strip(),
        step=intent.step,
        round=intent.round,
    )


def _asked(walk: Walk, key: str, intent: ToolCalled, cause: Cause) -> tuple[QuestionAsked, QuestionAnswered]:
    """Raises Suspend until someone has answered; `retry` makes the call again, anything else is told to the model."""
    question = walk.seen(key, QuestionAsked)
    if question is None:
        told = prompts.unknown_outcome(intent.name, cause)
        question = QuestionAsked(
            question_id=keys.call_id(walk.run_id, key),
            for_="unknown-outcome",
            cause=cause,
            question=f"{told} Answer `retry` to make the call again, or say what happened.",
            expires_at=walk.ports.clock.now() + WITHIN_MS,
        )
        walk.write(Draft(key=key, event=question))
    answer = walk.seen(f"{key}/answer", QuestionAnswered)
    if answer is None:
        raise Suspend(wait_for(key, question))
    return question, answer
