"""The tool calls of one answer: every one is answered, none is run again once its result is on record."""

import asyncio
import copy
import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError, InvalidArguments, OutcomeUnknown, ToolError
from edge_agent.core.events import (
    BudgetExceeded,
    Fault,
    QuestionAnswered,
    QuestionAsked,
    RejectReason,
    ToolCalled,
    ToolProgress,
    ToolRejected,
    ToolResult,
    ToolUnknown,
    UnknownCause,
)
from edge_agent.core.journal import Draft
from edge_agent.core.messages import ToolCall, ToolMessage
from edge_agent.core.ports import StoredFile
from edge_agent.core.signals import Cancelled, Suspend, Wait
from edge_agent.core.tooling import Tool, ToolContext, ToolOutput
from edge_agent.core.usage import Amount
from edge_agent.loop import prompts
from edge_agent.loop.hooking import Aborted, may, wants_abort
from edge_agent.loop.outcomes import model_view, outcome, sanitized
from edge_agent.loop.walk import Cut, Stray, Walk

MOST_REPEATS = 3  # of one call whose outcome is unknown
ANSWER_WITHIN_MS = 86_400_000  # a question to a person expires after a day

Ended = ToolResult | ToolUnknown | ToolRejected
ENDED = (ToolResult, ToolUnknown, ToolRejected)


class OutcomeForbidden(EdgeAgentError):
    """A call's outcome is unknown and its policy is to fail the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The calls of one answer. offered: the names its boundary offered. cut_off: a token limit cut the answer."""

    key: str
    step: int
    number: int
    calls: tuple[ToolCall, ...]
    offered: tuple[str, ...]
    cut_off: bool

    @property
    def keys(self) -> list[str]:
        return [keys.tool_call(self.key, index) for index in range(len(self.calls))]


async def call_tools(walk: Walk, round_: Round) -> list[ToolMessage]:
    """The answers in the order of the calls, whatever finished first.

    Raises Suspend only after every sibling has ended or waits."""
    if not _all_answered(walk, round_):
        await walk.take_in_tools(round_.key, again=False)
        walk.ready()
        _turn_down(walk, round_)
    calls = zip(round_.keys, round_.calls, strict=True)
    work = [functools.partial(_call, walk, key, call, round_) for key, call in calls]
    ended = await walk.side_by_side(work)
    return [_told(call, end) for call, end in zip(round_.calls, ended, strict=True)]


def _all_answered(walk: Walk, round_: Round) -> bool:
    """Reads what is on record of every call before any of them goes on: what is left then is another code's, and no
    call may be begun beside it."""
    for key in round_.keys:
        if walk.has(f"{key}/result"):
            walk.pass_over(key)
        elif walk.seen(f"{key}/call", ToolCalled):
            for number in range(_repeats(walk, key) + 1):
                walk.seen(f"{key}/ask/{number}", QuestionAsked)
    if all(walk.has(f"{key}/result") for key in round_.keys):
        return True
    walk.frontier(f"{round_.key}/calls")
    return False


def _told(call: ToolCall, ended: Ended) -> ToolMessage:
    text = model_view(ended.output) if isinstance(ended, ToolResult) else ended.message
    ok = isinstance(ended, ToolResult) and ended.ok
    return ToolMessage(call_id=call.id, name=call.name, text=text, ok=ok)


# -- before any call starts
def _turn_down(walk: Walk, round_: Round) -> None:
    """The calls that cannot run are answered in order in one batch; else the order of completion would decide who is
    over a cap."""
    cap = walk.created.limits.max_tool_calls
    used = walk.journal.spent.tool_calls
    batch: list[Draft] = []
    for key, call in zip(round_.keys, round_.calls, strict=True):
        if walk.has(f"{key}/result") or walk.has(f"{key}/call"):
            continue
        reason, message = _objection(walk, call, round_)
        if reason is None and cap is not None and used >= cap:
            reason, message = "budget", f"The cap of {cap} tool calls is used up; go on without this call."
        if reason is None:
            used += 1
        else:
            batch.append(Draft(key=f"{key}/result", event=_rejected(call, round_, reason, message)))
    if cap is not None and any(isinstance(d.event, ToolRejected) and d.event.reason == "budget" for d in batch):
        batch += _exceeded(walk, used, cap)
    if batch:
        walk.write(*batch)


def _exceeded(walk: Walk, used: int, cap: int) -> list[Draft]:
    key = keys.budget("tool-calls", walk.journal.life)
    return (
        []
        if walk.has(key)
        else [Draft(key=key, event=BudgetExceeded(kind="tool-calls", used=used, cap=cap), by="note")]
    )


def _objection(walk: Walk, call: ToolCall, round_: Round) -> tuple[RejectReason | None, str]:
    if round_.cut_off:
        return "cut-off", (
            "The answer was cut at its output limit, so this call was not run. Call it again, with less text around it."
        )
    if call.name not in round_.offered:
        known = ", ".join(round_.offered) or "none in this round"
        return "unknown-tool", f"There is no tool {call.name}. Tools: {known}."
    tool = walk.ports.tools.find(call.name)
    if tool is None:
        return "unknown-tool", f"{call.name} cannot be reached any more. Go on without it."
    if call.malformed is not None:
        return "invalid-arguments", f"The arguments of {call.name} are not a JSON object: {call.malformed[:200]}"
    try:
        tool.check(copy.deepcopy(call.arguments))
    except InvalidArguments as error:
        return "invalid-arguments", str(error)
    return None, ""


def _rejected(call: ToolCall, round_: Round, reason: RejectReason, message: str) -> ToolRejected:
    return ToolRejected(
        call_id=call.id, name=call.name, reason=reason, message=message, step=round_.step, round=round_.number
    )


# -- one call
async def _call(walk: Walk, key: str, call: ToolCall, round_: Round) -> Ended:
    """The record decides, then the tool list, never the other way round."""
    result = walk.seen(f"{key}/result", *ENDED)
    if result is not None:
        return _obeyed(walk, key, result)
    walk.ready()
    tool = walk.ports.tools.find(call.name)
    intent = walk.seen(f"{key}/call", ToolCalled)
    if intent is not None:
        return await _after_a_loss(walk, key, tool, intent)
    if tool is None:
        gone = _rejected(call, round_, "unknown-tool", f"{call.name} is no longer offered.")
        return _answered(walk, key, gone)
    walk.before_effect(f"{key}/call")
    intent = ToolCalled(
        call_id=call.id,
        name=call.name,
        server=tool.server,
        arguments=call.arguments,
        idempotency_key=keys.idempotency_key(walk.run_id, key, call.arguments),
        read_only=tool.read_only,
        safe_to_repeat=tool.safe_to_repeat,
        on_unknown=tool.on_unknown,
        step=round_.step,
        round=round_.number,
    )
    walk.write(Draft(key=f"{key}/call", event=intent, money={key: Amount(tool_calls=1)}))
    return await _perform(walk, key, tool, intent)


def _answered(walk: Walk, key: str, event: Ended, *more: Draft, files: Sequence[StoredFile] = ()) -> Ended:
    """The call's one outcome, as it is kept: what the model sees now is what it would see after a restart."""
    walk.write(Draft(key=f"{key}/result", event=event), *more, files=files)
    return _obeyed(walk, key, walk.kept(f"{key}/result", *ENDED))


def _obeyed(walk: Walk, key: str, result: Ended) -> Ended:
    """What a recorded outcome still demands of this life: the end of the run, by policy or by on_error."""
    if isinstance(result, ToolUnknown) and result.policy == "fail" and walk.in_this_life(f"{key}/result"):
        raise OutcomeForbidden(result.message)
    if (abort := walk.seen(f"{key}/abort", Fault)) and walk.in_this_life(f"{key}/abort"):
        raise Aborted(abort.message)
    return result


async def _perform(walk: Walk, key: str, tool: Tool, intent: ToolCalled) -> Ended:
    """One real call, its intent on disk. Lost, cut and timed out are one outcome: unknown."""
    await walk.journal.log.durable()
    walk.ready()
    began, limit = walk.ports.clock.now(), asyncio.timeout(tool.timeout)
    try:
        output = await walk.effect(key, _within(limit, tool, intent, _context(walk, intent)))
    except Cut:
        raise Cancelled from None  # the terminal batch answers the call
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the model
        return await _raised(walk, key, tool, intent, _Failure(error, began, timed_out=limit.expired()))
    made = outcome(walk, intent, output, walk.ports.clock.now() - began)
    ended = _answered(walk, key, made.result, files=made.files)
    await _tell(walk, key, intent)
    return ended


async def _within(limit: asyncio.Timeout, tool: Tool, intent: ToolCalled, context: ToolContext) -> ToolOutput:
    async with limit:
        output = cast(object, await tool.run(copy.deepcopy(intent.arguments), context))
    if not isinstance(output, ToolOutput):
        raise ToolError(f"it ran to its end, but gave back a {type(output).__name__}, not a ToolOutput")
    return output


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    began: int
    timed_out: bool

    @property
    def outcome_is_unknown(self) -> bool:
        return self.timed_out or isinstance(self.error, OutcomeUnknown | Stray)


async def _raised(walk: Walk, key: str, tool: Tool, intent: ToolCalled, failure: _Failure) -> Ended:
    """An error result for the model; an unknown outcome where the call may have happened and must not happen twice."""
    said = f"no answer within {tool.timeout:g} s" if failure.timed_out else str(failure.error)
    if failure.outcome_is_unknown and not intent.safe_to_repeat:
        cause: UnknownCause = "timed-out" if failure.timed_out else "lost"
        return await _unknown(walk, key, tool, intent, _Cause(cause, sanitized(walk, intent.name, said)[0]))
    output = ToolOutput(text=f"{intent.name} failed: {said or type(failure.error).__name__}", ok=False)
    made = outcome(walk, intent, output, walk.ports.clock.now() - failure.began)
    more: list[Draft] = []
    if await wants_abort(walk, key, "tool", intent.name, failure.error):
        more = [Draft(key=f"{key}/abort", event=Fault(kind="tool", message=made.result.output, action="failed"))]
    ended = _answered(walk, key, made.result, *more, files=made.files)
    await _tell(walk, key, intent)
    return ended


def _context(walk: Walk, intent: ToolCalled) -> ToolContext:
    def report(done: float, total: float | None, message: str | None) -> None:
        walk.ports.sink.passing(
            ToolProgress(
                call_id=intent.call_id,
                progress=done,
                total=total,
                message=None if message is None else walk.journal.cleaned_text(message),
                step=intent.step,
                round=intent.round,
            )
        )

    return ToolContext(
        run_id=walk.run_id,
        call_id=intent.call_id,
        step=intent.step,
        idempotency_key=intent.idempotency_key,
        metadata=copy.deepcopy(walk.created.metadata or {}),
        secrets=walk.ports.secrets,
        report=report,
    )


async def _tell(walk: Walk, key: str, intent: ToolCalled) -> None:
    """after_tool comes after the record: one that hangs or dies costs no outcome."""
    if after_tool := walk.ports.agent.hooks.after_tool:
        call = ToolCall(id=intent.call_id, name=intent.name, arguments=copy.deepcopy(intent.arguments))
        result = walk.kept(f"{key}/result", ToolResult)
        await may(walk, key, "after_tool", lambda: after_tool(call, result))


# -- unknown outcomes
@dataclass(frozen=True, slots=True)
class _Cause:
    cause: UnknownCause
    detail: str = ""


async def _after_a_loss(walk: Walk, key: str, tool: Tool | None, intent: ToolCalled) -> Ended:
    """An earlier instance began this call. What is safe to repeat runs again under the same key; the rest follows its
    policy."""
    if tool is not None and intent.safe_to_repeat and _repeats(walk, key) < MOST_REPEATS:
        return await _repeat(walk, key, tool, intent)
    return await _unknown(walk, key, tool, intent, _Cause("lost"))


async def _repeat(walk: Walk, key: str, tool: Tool, intent: ToolCalled) -> Ended:
    walk.ready()
    again = f"{key}/call/{_repeats(walk, key) + 1}"
    walk.before_effect(again)
    walk.write(Draft(key=again, event=intent))
    return await _perform(walk, key, tool, intent)


def _repeats(walk: Walk, key: str) -> int:
    return next(number for number in itertools.count() if walk.seen(f"{key}/call/{number + 1}", ToolCalled) is None)


async def _unknown(walk: Walk, key: str, tool: Tool | None, intent: ToolCalled, cause: _Cause) -> Ended:
    """By declared policy: report it, ask a person, make the call again, or end the run."""
    made = _repeats(walk, key)
    again = tool if made < MOST_REPEATS else None
    if intent.on_unknown == "retry" and again is not None:
        return await _repeat(walk, key, again, intent)
    if intent.on_unknown == "ask":
        question, answer = _asked(walk, f"{key}/ask/{made}", intent, cause.cause)
        if answer.answer == "retry" and again is not None:
            return await _repeat(walk, key, again, intent)
        said = f"A person says: {answer.answer}" if answer.answer else cause.detail
        cause = _Cause(question.cause, said)
    unknown = ToolUnknown(
        call_id=intent.call_id,
        name=intent.name,
        cause=cause.cause,
        policy=intent.on_unknown,
        message=f"{prompts.unknown_outcome(intent.name, cause.cause)} {cause.detail}".strip(),
        step=intent.step,
        round=intent.round,
    )
    return _answered(walk, key, unknown)


def _asked(walk: Walk, key: str, intent: ToolCalled, cause: UnknownCause) -> tuple[QuestionAsked, QuestionAnswered]:
    """Raises Suspend until someone has answered; `retry` makes the call again, anything else is told to the model."""
    question = walk.seen(key, QuestionAsked)
    if question is None:
        told = prompts.unknown_outcome(intent.name, cause)
        question = QuestionAsked(
            question_id=keys.call_id(walk.run_id, key),
            for_="unknown-outcome",
            cause=cause,
            question=f"{told} Answer `retry` to make the call again, or say what happened.",
            expires_at=walk.ports.clock.now() + ANSWER_WITHIN_MS,
        )
        walk.write(Draft(key=key, event=question))
    answer = walk.seen(f"{key}/answer", QuestionAnswered)
    if answer is None:
        expired = QuestionAnswered(question_id=question.question_id, by="expiry")
        raise Suspend(Wait(key=f"{key}/answer", reason="answer", until=question.expires_at, at_deadline=expired))
    return question, answer
