"""The direct loop: model and tools take turns until the model answers. A planned run works off each step by it."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from edge_agent.core import keys
from edge_agent.core.events import (
    Boundary,
    Fault,
    FinishReason,
    ModelAnswered,
    StopReason,
)
from edge_agent.core.journal import Draft
from edge_agent.core.messages import Message, ToolSpec, UserMessage, user_message
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts, sign_in, skills
from edge_agent.loop.ask import Question, Stopped, ask, crossing
from edge_agent.loop.calls import Round, call_tools
from edge_agent.loop.folding import Context, fold, harder, stale_results, to_fold, told_cleared
from edge_agent.loop.hooking import may
from edge_agent.loop.offer import described
from edge_agent.loop.parts import Foldable, Past
from edge_agent.loop.selection import changed_lists, selected
from edge_agent.loop.settling import wait_for_costs
from edge_agent.loop.steering import take_in_messages
from edge_agent.loop.structured import Asked, in_form
from edge_agent.loop.talk import Talk
from edge_agent.loop.turns import keep_to_palette
from edge_agent.loop.walk import Walk

Stop = Literal["max_steps", "budget", "cancelled"]
SCOPE = "s1"  # of a direct run, which is one step
FIRST = keys.round_(SCOPE, 1)
SHORTENED = (None, 4_000, 1_000, 250)  # characters of a result that the last round sees, as far as needed
MOST_REJECTIONS = 2  # in a row; then the answer stands


@dataclass(frozen=True, slots=True)
class Ending:
    stop_reason: StopReason
    text: str
    output: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the rounds of a scope are to do.

    system: of the agent whose turn it is. opening: what they begin with, as it is now; parts: those of its parts that
    can be folded. most_rounds: None for no cap. last_round: at a cap one more round without tools is made, from the
    reserve. kept: what stays reserved for the run's final answer meanwhile. suggested: tools, where a plan has chosen.
    """

    scope: str
    system: Callable[[], str]
    opening: Callable[[], tuple[Message, ...]]
    parts: tuple[Foldable, ...]
    most_rounds: int | None
    last_round: bool
    kept: Callable[[Talk], Amount]
    suggested: tuple[str, ...] | None = None


async def direct(walk: Walk) -> Ending:
    """Raises what `ask` and `call_tools` raise."""
    past, asked = Past(walk.created.history), user_message(walk.created.input, walk.created.attachments)
    known = walk.skills  # what is loaded meanwhile stands in the conversation
    work = Assignment(
        scope=SCOPE,
        system=lambda: skills.in_system(walk.agent.skills, known, prompts.system(walk.agent.instructions), works=True),
        opening=lambda: (*past.messages, asked),
        parts=(past,),
        most_rounds=walk.created.limits.max_steps,
        last_round=True,
        kept=lambda talk: _kept(walk, work, talk),
    )
    talk = Talk(opening=work.opening())
    worked = await rounds(walk, work, talk)
    reason = worked.stop or ("max_tokens" if worked.finish_reason == "length" else "stop")
    if worked.finish_reason is None:
        return Ending(reason, worked.text)
    form = await in_form(walk, "output", worked.text, _answered(walk, work, talk))
    return Ending(reason, form.text, form.value)


def _answered(walk: Walk, work: Assignment, talk: Talk) -> Asked:
    """The conversation before its last answer."""

    def request() -> ModelRequest:
        whole = _request(work, talk, (), final=False)
        return replace(whole, messages=whole.messages[:-1])

    return Asked(request, walk.models, lambda key: harder(walk, _context(work, key, talk), None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """How the rounds of a scope ended. `stop` None: the model answered."""

    stop: Stop | None
    text: str
    finish_reason: FinishReason | None = None


async def rounds(walk: Walk, work: Assignment, talk: Talk) -> Worked:
    """Raises what `ask` and `call_tools` raise."""
    for number in itertools.count(1):
        key = keys.round_(work.scope, number)
        boundary = await _boundary(walk, work, key, number, talk)
        talk.clear(boundary.cleared)
        context = _context(work, key, talk)
        try:
            await fold(walk, context, boundary.compact)
            talk.hear(key, boundary.messages)
            if boundary.stop and not boundary.final:
                return Worked(stop=boundary.stop, text=talk.last_text)
            answer = await ask(walk, _question(walk, work, boundary, context, talk))
        except Stopped as stopped:
            if boundary.stop or stopped.stop == "cancelled":
                return Worked(stop=boundary.stop or stopped.stop, text=talk.last_text)
            talk.refused = True
            continue
        if answer.rejected:
            talk.reject(key, answer.rejected.reminder)
            continue
        talk.rejections = 0
        message = answer.answered.message
        talk.say(key, message)
        if not boundary.stop and budget.cut_by_the_run(answer.answered):
            talk.refused = True  # what is left is for the answer at the end
            if not message.calls:
                continue
        if message.calls:
            await _take_turn(walk, talk, _round(key, number, boundary, answer.answered, lambda: work.kept(talk)))
            talk.hold(skills.loaded_in(walk, work.scope))
        goes_on = message.calls or answer.answered.finish_reason == "paused"
        if boundary.stop or not goes_on:
            return Worked(stop=boundary.stop, text=message.text, finish_reason=answer.answered.finish_reason)
    raise AssertionError("unreachable")


async def _take_turn(walk: Walk, talk: Talk, round_: Round) -> None:
    """The calls of an answer, and whose turn it is after them."""
    repeated = talk.turns.repeated(round_)
    keep_to_palette(walk, round_)
    talk.say(round_.key, *await call_tools(walk, replace(round_, repeated=repeated)))
    skills.after_calls(walk, round_.keys)
    talk.after_tools, talk.text_next = True, bool(repeated)
    talk.turns.hand_over(walk, round_)


def _round(key: str, number: int, boundary: Boundary, answered: ModelAnswered, kept: Callable[[], Amount]) -> Round:
    return Round(
        key=key,
        step=keys.step_of(key) or 1,
        number=number,
        calls=answered.message.calls,
        offered=boundary.tools.names,
        cut_off=answered.finish_reason == "length",
        kept=kept,
    )


# -- the boundary
async def _boundary(walk: Walk, work: Assignment, key: str, number: int, talk: Talk) -> Boundary:
    """The one place that looks at the tail: cancelled? caps? messages? which tools? Decided once, in one block."""
    if found := walk.seen(key, Boundary):
        sign_in.pass_over(walk, key)
        return found
    walk.ready()
    wait_for_costs(walk)
    if key == FIRST and (on_run_start := walk.agent.hooks.on_run_start):
        await may(walk, key, "on_run_start", lambda: on_run_start(walk.created.input))
        walk.ready()
    unreachable = await sign_in.take_in_tools(walk, key)
    walk.ready()
    messages, delivered = take_in_messages(walk, key, "round")
    stale = stale_results(walk, talk)
    chosen = () if _text_is_forced(walk, talk) else selected(walk, work.suggested, cleared=bool(stale))
    tools = skills.allowed(walk, chosen)
    ahead = talk.ahead(key, messages, stale)
    stop, notes = _caps(walk, work, number, ahead, tools)
    final, clipped = _last_round(walk, work, ahead) if stop and work.last_round else (False, None)
    shown = () if stop else tools
    boundary = Boundary(
        stop=stop, final=final, clipped=clipped, messages=messages, tools=walk.offers.of(shown), cleared=stale
    )
    if stop and not final:  # no round follows that could show them: they wait for whoever comes next
        boundary, delivered = replace(boundary, messages=(), cleared=()), []
    else:
        tokens, cap = walk.estimates.input(_next(work, ahead, boundary, shown)), _cap(walk, final=final)
        boundary = replace(boundary, compact=to_fold(walk, (ahead, *work.parts), tokens, cap))
        notes += told_cleared(walk, key, boundary, tokens, before=talk.ahead(key, messages, ()), after=ahead)
    files = described(walk.journal, shown, boundary.tools)
    notes += [*changed_lists(walk, key), *_faults(walk, key, unreachable)]
    walk.write(Draft(key=key, event=boundary), *notes, *delivered, files=files)
    return boundary


def _text_is_forced(walk: Walk, talk: Talk) -> bool:
    forced = walk.agent.force_text_after_tool or walk.ports.model(walk.models[0]).force_text_after_tool
    return talk.text_next or (forced and talk.after_tools)


def _faults(walk: Walk, key: str, sentences: Sequence[str]) -> list[Draft]:
    """A server that stays away is reported once, not before every round."""
    told = {record.event.message for record in walk.journal.types.get("fault", ()) if isinstance(record.event, Fault)}
    fresh = [sentence for sentence in sentences if sentence not in told]
    events = [Fault(kind="mcp", message=sentence, action="continued") for sentence in fresh]
    return [Draft(key=f"{key}/fault/mcp/{index}", event=event, by="note") for index, event in enumerate(events)]


def _caps(
    walk: Walk, work: Assignment, number: int, talk: Talk, tools: tuple[ToolSpec, ...]
) -> tuple[Stop | None, list[Draft]]:
    limits = walk.created.limits
    if walk.step_cancelled(work.scope):
        return "cancelled", []
    if talk.refused or budget.calls_used_up(walk):
        return "budget", []
    if late := budget.late(limits, walk.journal, walk.ports.clock.now()):
        return "budget", crossing(walk, late)
    if work.most_rounds is not None and number > work.most_rounds:
        over_steps = budget.Overrun(kind="steps", used=number - 1, cap=work.most_rounds)
        return "max_steps", crossing(walk, over_steps) if work.last_round else []
    over = _fits(walk, work, talk, tools, kept=work.kept(talk), cap=budget.round_cap(limits, walk.ports.context_window))
    return ("budget", crossing(walk, over)) if over else (None, [])


def _last_round(walk: Walk, work: Assignment, talk: Talk) -> tuple[bool, int | None]:
    """Whether one more round fits, and to how many characters each result of a tool is shortened for that."""
    cap = _final_cap(walk)
    for clipped in SHORTENED:
        if _fits(walk, work, talk.shortened(clipped), (), kept=Amount(), cap=cap) is None:
            return True, clipped
    return False, None


def _final_cap(walk: Walk) -> int:
    return budget.final_cap(walk.created.limits, walk.ports.context_window)


def _kept(walk: Walk, work: Assignment, talk: Talk) -> Amount:
    """What stays reserved for the final answer while rounds are made. Nothing where neither tokens nor dollars
    are capped."""
    limits = walk.created.limits
    if not budget.is_capped(limits):
        return Amount()
    tokens = walk.estimates.input(_request(work, talk, (), final=True))
    return budget.kept_for_the_end(limits, walk.ports.context_window, tokens)


def _fits(
    walk: Walk, work: Assignment, talk: Talk, tools: tuple[ToolSpec, ...], *, kept: Amount, cap: int
) -> budget.Overrun | None:
    if not budget.is_capped(walk.created.limits):
        return None
    tokens = walk.estimates.input(_request(work, talk, tools, final=not tools))
    return budget.overrun_of(walk, walk.models[0], tokens, cap, kept)


# -- the request
def _context(work: Assignment, key: str, talk: Talk) -> Context:
    return Context(
        key=key,
        parts=(talk, *work.parts),
        kept=lambda: work.kept(talk),
        talk=talk,
        changed=lambda: talk.reopen(work.opening()),
    )


def _question(walk: Walk, work: Assignment, boundary: Boundary, context: Context, talk: Talk) -> Question:
    def build() -> ModelRequest:
        offered = {tool.name: tool for tool in walk.tools.offered()}
        tools = tuple(offered[name] for name in boundary.tools.names if name in offered)
        return _next(work, talk, boundary, tools)

    return Question(
        key=context.key,
        stage="round",
        build=build,
        cap=_cap(walk, final=boundary.final),
        kept=lambda: Amount() if boundary.final else work.kept(talk),
        models=walk.models,
        tools=boundary.tools,
        may_reject=talk.rejections < MOST_REJECTIONS and not boundary.final,
        needs_tools=bool(boundary.tools.names),
        last=boundary.final,
        shorter=harder(walk, context, boundary.compact),
    )


def _cap(walk: Walk, *, final: bool) -> int:
    return _final_cap(walk) if final else budget.round_cap(walk.created.limits, walk.ports.context_window)


def _next(work: Assignment, talk: Talk, boundary: Boundary, tools: tuple[ToolSpec, ...]) -> ModelRequest:
    return _request(work, talk.shortened(boundary.clipped), tools, final=boundary.final)


def _request(work: Assignment, talk: Talk, tools: tuple[ToolSpec, ...], *, final: bool) -> ModelRequest:
    last = [UserMessage(text=prompts.LAST_ROUND)] if final else []
    return ModelRequest(
        system=work.system(),
        messages=(*talk.messages, *last),
        tools=tools,
        tool_choice="auto" if tools else "none",
    )
