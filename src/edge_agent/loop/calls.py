"""The tool calls of one answer: every one is answered, none is run again once its result is on record."""

import asyncio
import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from edge_agent.core import keys
from edge_agent.core.answers import ENDED, Ended, said, went_well
from edge_agent.core.canonical import canonical
from edge_agent.core.errors import EdgeAgentError, InvalidArguments, NeedsAnswer, NeedsSignIn, OutcomeUnknown, ToolError
from edge_agent.core.events import (
    ApprovalRequested,
    Fault,
    SubagentStarted,
    ToolCalled,
    ToolRejected,
    ToolResult,
    ToolsDiscovered,
    ToolUnknown,
    UnknownCause,
)
from edge_agent.core.journal import Draft
from edge_agent.core.messages import JsonObject, ToolCall, ToolMessage
from edge_agent.core.ports import Send, StoredFile
from edge_agent.core.signals import Suspend
from edge_agent.core.tooling import ALWAYS_RUN, FIND_TOOLS, SKILL_TOOLS, Tool, ToolContext, ToolOutput
from edge_agent.core.usage import Amount
from edge_agent.loop import approvals, elicitation, kin, prompts
from edge_agent.loop.admit import Round, rejected, turn_down
from edge_agent.loop.approvals import Denied, Wanted
from edge_agent.loop.call_files import CallFiles
from edge_agent.loop.delegate import delegate, wait_for
from edge_agent.loop.hooking import Aborted, may, wants_abort
from edge_agent.loop.outcomes import model_view, outcome, sanitized, seen_of
from edge_agent.loop.sign_in import ask_for_call
from edge_agent.loop.tool_context import context_of
from edge_agent.loop.unknown import (
    MOST_REPEATS,
    Again,
    Told,
    after_a_loss,
    by_policy,
    cut_off,
    never_made,
    read_all,
    repeats,
)
from edge_agent.loop.walk import Cut, Stray, Walk


class OutcomeForbidden(EdgeAgentError):
    """A call's outcome is unknown and its policy is to fail the run."""


async def call_tools(walk: Walk, round_: Round) -> list[ToolMessage]:
    """The answers in the order of the calls, whatever finished first.

    Raises Suspend only after every sibling has ended or waits."""
    if not _all_answered(walk, round_):
        await walk.take_in_tools(round_.key, again=False)
        walk.ready()
        turn_down(walk, round_)
    calls = zip(round_.keys, round_.calls, strict=True)
    work = [functools.partial(_call, walk, key, call, round_) for key, call in calls]
    ended = await walk.side_by_side(work)
    return [told(walk, *of) for of in zip(round_.keys, round_.calls, ended, strict=True)]


def _all_answered(walk: Walk, round_: Round) -> bool:
    """Reads what is on record of every call before any of them goes on: what is left then is another code's, and no
    call may be begun beside it."""
    for key in round_.keys:
        if walk.has(f"{key}/result"):
            walk.pass_over(key)
            continue
        walk.seen(keys.approval(key, 0), ApprovalRequested)
        if isinstance(walk.seen(f"{key}/call", ToolCalled, SubagentStarted), ToolCalled):
            read_all(walk, key)
    if all(walk.has(f"{key}/result") for key in round_.keys):
        return True
    walk.frontier(f"{round_.key}/calls")
    return False


def told(walk: Walk, key: str, call: ToolCall, ended: Ended) -> ToolMessage:
    """A call that a person has changed says so, or the model would think that its own had been made."""
    made = _made_with(walk, key)
    changed = prompts.edited(canonical(made)) if made is not None and made != call.arguments else ""
    text = changed + model_view(said(ended), seen_of(walk, call.name), call.id)
    return ToolMessage(call_id=call.id, name=call.name, text=text, ok=went_well(ended))


def _made_with(walk: Walk, key: str) -> JsonObject | None:
    """The arguments the call was made with, where it was."""
    intent = _last_intent(walk, key)
    if isinstance(intent, SubagentStarted):
        return {"task": intent.task, **({"profile": intent.profile} if intent.profile else {})}
    return intent.arguments if intent else None


def _last_intent(walk: Walk, key: str) -> ToolCalled | SubagentStarted | None:
    number = repeats(walk, key)
    return walk.seen(f"{key}/call/{number}" if number else f"{key}/call", ToolCalled, SubagentStarted)


# -- one call
async def _call(walk: Walk, key: str, call: ToolCall, round_: Round) -> Ended:
    """The record decides, then the tool list, never the other way round."""
    result = walk.seen(f"{key}/result", *ENDED)
    if result is not None:
        return _obeyed(walk, key, result)
    walk.ready()
    tool = walk.tools.find(call.name)
    intent = _last_intent(walk, key)
    if walk.step_cancelled(key):
        return _cut_short(walk, key, call, round_)
    if isinstance(intent, SubagentStarted):
        raise Suspend(wait_for(walk, key, intent))
    if intent is not None:
        return await _doubtful(walk, key, after_a_loss(walk, key, tool, intent))
    return await _begin(walk, key, call, round_, tool)


async def _begin(walk: Walk, key: str, call: ToolCall, round_: Round, tool: Tool | None) -> Ended:
    """What comes of a call at its frontier: it is refused, a person is asked, or it is made."""
    if tool is None:
        approvals.still_waiting(walk, key)
        return _answered(walk, key, rejected(call, round_, "unknown-tool", f"{call.name} is no longer offered."))
    arguments = approvals.admitted(walk, _wanted(key, call, tool, round_))
    if isinstance(arguments, Denied):
        return _answered(walk, key, rejected(call, round_, "denied", arguments.message), *arguments.notes)
    if walk.has(keys.approval(key, 0)) and (fault := _misfit(tool, arguments)):
        return _answered(walk, key, rejected(call, round_, "invalid-arguments", fault))
    if call.name in walk.agent.subagents:
        return _answered(walk, key, delegate(walk, key, call, round_, arguments))
    walk.before_effect(f"{key}/call")
    intent = ToolCalled(
        call_id=call.id,
        name=call.name,
        server=tool.server,
        arguments=arguments,
        idempotency_key=keys.idempotency_key(walk.run_id, key, arguments),
        read_only=tool.read_only,
        safe_to_repeat=tool.safe_to_repeat,
        on_unknown=tool.on_unknown,
        step=round_.step,
        round=round_.number,
    )
    money = {} if call.name in ALWAYS_RUN else {key: Amount(tool_calls=1)}
    walk.write(Draft(key=f"{key}/call", event=intent, money=money))
    return await _perform(walk, key, tool, intent)


def _cut_short(walk: Walk, key: str, call: ToolCall, round_: Round) -> Ended:
    """By the cancel of the step: what was begun may have happened, the rest does not begin."""
    begun = _last_intent(walk, key)
    if isinstance(begun, SubagentStarted):
        why = "its step was cancelled"
        sends = (kin.cancel(walk.run_id, key, begun, why),)
        return _answered(walk, key, kin.given_up(begun, why), sends=sends)
    if begun:
        return _answered(walk, key, cut_off(begun))
    return _answered(walk, key, rejected(call, round_, "cancelled", "The step was cancelled before this call began."))


def _wanted(key: str, call: ToolCall, tool: Tool, round_: Round) -> Wanted:
    return Wanted(
        key=key,
        call_id=call.id,
        name=call.name,
        server=tool.server,
        arguments=call.arguments,
        read_only=tool.read_only,
        requires_approval=tool.requires_approval,
        step=round_.step,
        round=round_.number,
    )


def _misfit(tool: Tool, arguments: JsonObject) -> str | None:
    """A deploy may have changed the tool while a person was thinking."""
    try:
        tool.check(copy.deepcopy(arguments))
    except InvalidArguments as error:
        return str(error)
    return None


def _answered(
    walk: Walk,
    key: str,
    event: Ended,
    *more: Draft,
    files: Sequence[StoredFile] = (),
    sends: Sequence[Send] = (),
) -> Ended:
    """The call's one outcome, as it is kept: what the model sees now is what it would see after a restart.

    A call that was never made gives back what was reserved for it."""
    reserved = isinstance(event, ToolRejected) and key in walk.journal.money and never_made(walk, key)
    taken = {draft.key for draft in more}
    closing = (*approvals.closing(walk.journal, key), *elicitation.closing(walk.journal, key))
    closed = [draft for draft in closing if draft.key not in taken]
    result = Draft(key=f"{key}/result", event=event, money={key: Amount()} if reserved else {})
    walk.write(result, *more, *closed, files=files, sends=sends)
    return _obeyed(walk, key, walk.kept(f"{key}/result", *ENDED))


def _obeyed(walk: Walk, key: str, result: Ended) -> Ended:
    """What a recorded outcome still demands of this life: the end of the run, by policy or by on_error."""
    if isinstance(result, ToolUnknown) and result.policy == "fail" and walk.in_this_life(f"{key}/result"):
        raise OutcomeForbidden(result.message)
    if (abort := walk.seen(f"{key}/abort", Fault)) and walk.in_this_life(f"{key}/abort"):
        raise Aborted(abort.message)
    return result


async def _perform(walk: Walk, key: str, tool: Tool, intent: ToolCalled) -> Ended:
    """One real call, its intent on disk where it may be made only once. Lost, cut and timed out are one outcome:
    unknown."""
    if not intent.safe_to_repeat:
        await walk.journal.log.durable()
    walk.ready()
    began, limit, files = walk.ports.clock.now(), asyncio.timeout(tool.timeout), CallFiles(walk, intent.call_id)
    ask = functools.partial(elicitation.held, walk, key, intent, limit)
    context = replace(context_of(walk, key, tool, intent, files), ask=ask)
    try:
        output = await walk.effect(key, _within(limit, tool, intent, context))
    except Cut:
        walk.ready()  # the end of the run answers the call; that of a step is answered here
        return _answered(walk, key, cut_off(intent))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the model
        return await _raised(walk, key, tool, intent, _Failure(error, began, files, timed_out=limit.expired()))
    made = outcome(walk, tool, intent, output, duration_ms=walk.ports.clock.now() - began, files=files)
    more = [*_of_skills(key, intent, output), *_discovered(key, intent, output)]
    ended = _answered(walk, key, made.result, *more, files=made.files)
    await _tell(walk, key, intent)
    return ended


def _of_skills(key: str, intent: ToolCalled, output: ToolOutput) -> list[Draft]:
    """What a call did to the skills of the run, for the append of its result. A tool of the author's has no say."""
    return [Draft(key=f"{key}/skill", event=output.skill)] if output.skill and intent.name in SKILL_TOOLS else []


async def _within(limit: asyncio.Timeout, tool: Tool, intent: ToolCalled, context: ToolContext) -> ToolOutput:
    async with limit:
        output = cast(object, await tool.run(copy.deepcopy(intent.arguments), context))
    if not isinstance(output, ToolOutput):
        raise ToolError(f"it ran to its end, but gave back a {type(output).__name__}, not a ToolOutput")
    return output


def _discovered(key: str, intent: ToolCalled, output: ToolOutput) -> list[Draft]:
    """For the boundaries to come, which offer what was found."""
    if output.found is None or intent.name != FIND_TOOLS:
        return []
    event = ToolsDiscovered(query=output.found.query, names=output.found.names)
    return [Draft(key=f"{key}/discovered", event=event, by="note")]


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception
    began: int
    files: CallFiles
    timed_out: bool

    @property
    def outcome_is_unknown(self) -> bool:
        return self.timed_out or isinstance(self.error, OutcomeUnknown | Stray)


async def _raised(walk: Walk, key: str, tool: Tool, intent: ToolCalled, failure: _Failure) -> Ended:
    """An error result for the model; an unknown outcome where the call may have happened and must not happen twice."""
    said = f"no answer within {tool.timeout:g} s" if failure.timed_out else str(failure.error)
    made = repeats(walk, key)
    if walk.ports.can_ask and made < MOST_REPEATS and isinstance(failure.error, NeedsSignIn | NeedsAnswer):
        asked = f"{key}/ask/{made}"
        if isinstance(failure.error, NeedsSignIn):
            raise ask_for_call(walk, asked, failure.error)
        raise elicitation.ask(walk, asked, failure.error)
    if failure.outcome_is_unknown and not intent.safe_to_repeat:
        cause: UnknownCause = "timed-out" if failure.timed_out else "lost"
        said = sanitized(walk, intent.name, said)[0]
        return await _doubtful(walk, key, by_policy(walk, key, tool, intent, cause, detail=said))
    output = ToolOutput(text=f"{intent.name} failed: {said or type(failure.error).__name__}", ok=False)
    took = walk.ports.clock.now() - failure.began
    made = outcome(walk, tool, intent, output, duration_ms=took, files=failure.files)
    more: list[Draft] = []
    if await wants_abort(walk, key, "tool", intent.name, failure.error):
        more = [Draft(key=f"{key}/abort", event=Fault(kind="tool", message=made.result.output, action="failed"))]
    ended = _answered(walk, key, made.result, *more, files=made.files)
    await _tell(walk, key, intent)
    return ended


async def _tell(walk: Walk, key: str, intent: ToolCalled) -> None:
    """after_tool comes after the record: one that hangs or dies costs no outcome."""
    if after_tool := walk.agent.hooks.after_tool:
        call = ToolCall(id=intent.call_id, name=intent.name, arguments=copy.deepcopy(intent.arguments))
        result = walk.kept(f"{key}/result", ToolResult)
        await may(walk, key, "after_tool", lambda: after_tool(call, result))


# -- outcomes that are not known
async def _doubtful(walk: Walk, key: str, verdict: Again | Told) -> Ended:
    """The call once more, or what is told of it."""
    if isinstance(verdict, Told):
        return _answered(walk, key, verdict.event, *verdict.notes)
    walk.ready()
    again = f"{key}/call/{repeats(walk, key) + 1}"
    walk.before_effect(again)
    walk.write(Draft(key=again, event=verdict.intent))
    return await _perform(walk, key, verdict.tool, verdict.intent)
