"""The tool calls of one answer: every one is answered, none is run again once its result is on record."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.core import keys
from edge_agent.core.errors import EdgeAgentError, InvalidArguments, OutcomeUnknown
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
from edge_agent.core.signals import Cancelled, Suspend, Wait
from edge_agent.core.tooling import Tool, ToolContext, ToolOutput
from edge_agent.core.usage import Amount
from edge_agent.loop import prompts
from edge_agent.loop.hooking import Aborted, may, wants_abort
from edge_agent.loop.outcomes import model_view, outcome
from edge_agent.loop.walk import Cut, Walk

MOST_REPEATS = 3  # of one call whose outcome is unknown
ANSWER_WITHIN_MS = 86_400_000  # a question to a person expires after a day

Ended = ToolResult | ToolUnknown | ToolRejected


class OutcomeForbidden(EdgeAgentError):
    """A call's outcome is unknown and its policy is to fail the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The calls of one answer. `offered`: names the boundary offered. `cut_off`: the answer was cut by a token limit."""

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
    """The answers in the order of the calls, whatever finished first. Raises Suspend only after every sibling has ended or waits."""
    for key in round_.keys:
        walk.pass_over(key)  # a call's records are read together
    if not all(walk.has(f"{key}/result") for key in round_.keys):
        await walk.take_in_tools(round_.key, again=False)
        walk.ready()
        _turn_down(walk, round_)
    work = [_call(walk, key, call, round_) for key, call in zip(round_.keys, round_.calls, strict=True)]
    ended = await walk.side_by_side(round_.keys, work)
    return [_told(call, end) for call, end in zip(round_.calls, ended, strict=True)]


def _told(call: ToolCall, ended: Ended) -> ToolMessage:
    text = model_view(ended.output) if isinstance(ended, ToolResult) else ended.message
    ok = isinstance(ended, ToolResult) and ended.ok
    return ToolMessage(call_id=call.id, name=call.name, text=text, ok=ok)


# -- before any call starts
def _turn_down(walk: Walk, round_: Round) -> None:
    """The calls that cannot run are answered in order in one batch; else the order of completion would decide who is over a cap."""
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
        return (
            "cut-off",
            "The answer was cut at its output limit, so this call was not run. Call it again, with less text around it.",
        )
    tool = walk.ports.tools.find(call.name) if call.name in round_.offered else None
    if tool is None:
        known = ", ".join(round_.offered) or "none in this round"
        return "unknown-tool", f"There is no tool {call.name}. Tools: {known}."
    if call.malformed is not None:
        return "invalid-arguments", f"The arguments of {call.name} are not a JSON object: {call.malformed[:200]}"
    try:
        tool.check(call.arguments)
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
    result = walk.seen(f"{key}/result", ToolResult, ToolUnknown, ToolRejected)
    if result is not None:
        return _obeyed(walk, key, result)
    walk.ready()
    tool = walk.ports.tools.find(call.name)
    intent = walk.seen(f"{key}/call", ToolCalled)
    if intent is not None:
        return await _after_a_loss(walk, key, tool, intent)
    if tool is None:
        gone = _rejected(call, round_, "unknown-tool", f"{call.name} is no longer offered.")
        walk.write(Draft(key=f"{key}/result", event=gone))
        return gone
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


def _obeyed(walk: Walk, key: str, result: Ended) -> Ended:
    """What a recorded outcome still demands: the end of the run, by policy or by on_error."""
    if isinstance(result, ToolUnknown) and result.policy == "fail":
        raise OutcomeForbidden(result.message)
    if abort := walk.seen(f"{key}/abort", Fault):
        raise Aborted(abort.message)
    return result


async def _perform(walk: Walk, key: str, tool: Tool, intent: ToolCalled) -> Ended:
    """One real call, its intent on disk. Lost, cut and timed out are one outcome: unknown."""
    await walk.journal.log.durable()
    walk.ready()
    began, error = walk.ports.clock.now(), None
    limit = asyncio.timeout(tool.timeout)
    try:
        output = await walk.effect(key, _within(limit, tool, intent, _context(walk, intent)))
    except Cut:
        raise Cancelled from None  # the terminal batch answers the call
    except Exception as raised:
        if limit.expired():
            raised = TimeoutError(f"no answer within {tool.timeout:g} s")
        if not intent.safe_to_repeat and (limit.expired() or isinstance(raised, OutcomeUnknown)):
            return await _unknown(walk, key, tool, intent, "timed-out" if limit.expired() else "lost", str(raised))
        output, error = ToolOutput(text=f"{intent.name} failed: {_said(raised)}", ok=False), raised
    made = outcome(walk, intent, output, walk.ports.clock.now() - began)
    walk.write(Draft(key=f"{key}/result", event=made.result), files=made.files)
    await _tell_hooks(walk, key, intent, made.result, error)
    return made.result


async def _within(limit: asyncio.Timeout, tool: Tool, intent: ToolCalled, context: ToolContext) -> ToolOutput:
    async with limit:
        return await tool.run(intent.arguments, context)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _context(walk: Walk, intent: ToolCalled) -> ToolContext:
    def report(done: float, total: float | None, message: str | None) -> None:
        walk.ports.sink.passing(
            ToolProgress(
                call_id=intent.call_id,
                progress=done,
                total=total,
                message=message,
                step=intent.step,
                round=intent.round,
            )
        )

    return ToolContext(
        run_id=walk.run_id,
        call_id=intent.call_id,
        step=intent.step,
        idempotency_key=intent.idempotency_key,
        metadata=walk.created.metadata or {},
        secrets=walk.ports.secrets,
        report=report,
    )


async def _tell_hooks(walk: Walk, key: str, intent: ToolCalled, result: ToolResult, error: Exception | None) -> None:
    """After the record: a hook that hangs or dies costs no outcome."""
    hooks = walk.ports.agent.hooks
    if error is not None and await wants_abort(walk, key, "tool", intent.name, error):
        walk.write(Draft(key=f"{key}/abort", event=Fault(kind="tool", message=result.output, action="failed")))
        raise Aborted(result.output)
    if after_tool := hooks.after_tool:
        call = ToolCall(id=intent.call_id, name=intent.name, arguments=intent.arguments)
        await may(walk, key, "after_tool", lambda: after_tool(call, result))


# -- unknown outcomes
async def _after_a_loss(walk: Walk, key: str, tool: Tool | None, intent: ToolCalled) -> Ended:
    """An earlier instance began this call. What is safe to repeat runs again under the same key; the rest follows its policy."""
    if tool is not None and intent.safe_to_repeat and (again := _repeat_number(walk, key)) <= MOST_REPEATS:
        return await _repeat(walk, key, tool, intent, again)
    return await _unknown(walk, key, tool, intent, "lost", "")


async def _repeat(walk: Walk, key: str, tool: Tool, intent: ToolCalled, again: int) -> Ended:
    walk.before_effect(f"{key}/call/{again}")
    walk.write(Draft(key=f"{key}/call/{again}", event=intent))
    return await _perform(walk, key, tool, intent)


def _repeat_number(walk: Walk, key: str) -> int:
    return next(number for number in itertools.count(1) if not walk.has(f"{key}/call/{number}"))


async def _unknown(
    walk: Walk, key: str, tool: Tool | None, intent: ToolCalled, cause: UnknownCause, detail: str
) -> Ended:
    """By declared policy: report it, ask a person, make the call again, or end the run."""
    again = _repeat_number(walk, key)
    if intent.on_unknown == "retry" and tool is not None and again <= MOST_REPEATS:
        return await _repeat(walk, key, tool, intent, again)
    if intent.on_unknown == "ask":
        answer = _asked(walk, f"{key}/ask/{again - 1}", intent, cause)
        if answer.answer == "retry" and tool is not None and again <= MOST_REPEATS:
            return await _repeat(walk, key, tool, intent, again)
        detail = f"A person says: {answer.answer}" if answer.answer else detail
    message = f"{prompts.unknown_outcome(intent.name, cause)} {detail}".strip()
    unknown = ToolUnknown(
        call_id=intent.call_id,
        name=intent.name,
        cause=cause,
        policy=intent.on_unknown,
        message=message,
        step=intent.step,
        round=intent.round,
    )
    walk.write(Draft(key=f"{key}/result", event=unknown))
    return _obeyed(walk, key, unknown)


def _asked(walk: Walk, key: str, intent: ToolCalled, cause: UnknownCause) -> QuestionAnswered:
    """Raises Suspend until someone has answered; `retry` makes the call again, anything else is told to the model."""
    question = walk.seen(key, QuestionAsked)
    if question is None:
        question = QuestionAsked(
            question_id=keys.call_id(walk.run_id, key),
            purpose="unknown-outcome",
            cause=cause,
            question=f"{prompts.unknown_outcome(intent.name, cause)} Answer `retry` to make the call again, or say what happened.",
            expires_at=walk.ports.clock.now() + ANSWER_WITHIN_MS,
        )
        walk.write(Draft(key=key, event=question))
    answer = walk.seen(f"{key}/answer", QuestionAnswered)
    if answer is None:
        expired = QuestionAnswered(question_id=question.question_id, answered_by="expiry")
        raise Suspend(Wait(key=f"{key}/answer", reason="answer", until=question.expires_at, at_deadline=expired))
    return answer
