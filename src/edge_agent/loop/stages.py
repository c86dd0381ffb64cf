"""The stages around the steps of a planned run: the plan before them, the verdict after each, and the answer."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from edge_agent.core import keys
from edge_agent.core.events import (
    Boundary,
    Fault,
    Folding,
    Plan,
    PlanCreated,
    PlanRevised,
    PlanStep,
    ReplanCause,
    ReplanDecision,
    RevisionsExceeded,
    Stage,
    StopReason,
)
from edge_agent.core.journal import Draft
from edge_agent.core.messages import AssistantMessage, JsonObject, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts, sign_in, skills
from edge_agent.loop.ask import Question, Stopped, ask
from edge_agent.loop.direct import Ending
from edge_agent.loop.folding import Context, fold, harder, to_fold
from edge_agent.loop.planning import (
    Named,
    NoPlan,
    Planned,
    Verdict,
    parse_plan,
    parse_verdict,
    plan_schema,
    verdict_schema,
)
from edge_agent.loop.selection import catalogue, for_plans
from edge_agent.loop.steering import take_in_messages
from edge_agent.loop.structured import Asked, in_form
from edge_agent.loop.tries import ModelGaveUp
from edge_agent.loop.walk import Walk
from edge_agent.loop.work import Work, briefing, final_request, kept_for_answer, parts_of, step_key, take_folds

T = TypeVar("T")
MOST_STEPS = 8  # of a plan, where the limits say nothing


# -- the plan
async def make_plan(walk: Walk, work: Work) -> PlanCreated:
    """A planner that fails costs the run its plan, not its answer: then one step answers directly."""
    if found := walk.seen("plan", PlanCreated):
        await walk.over("plan", lambda: _ask_for(walk, "plan", "plan", work, _read_plan), but=skills.of_plan("plan"))
        take_folds(walk, work, "plan")
        skills.after_plan(walk, "plan", found.plan.skills)
        return found
    if walk.has(keys.attempt("plan", 0)) or walk.has(_folded_for("plan")):
        sign_in.pass_over(walk, "plan")
    else:
        walk.ready()
        await sign_in.take_in_tools(walk, "plan")
    notes: list[Draft] = []
    try:
        planned = await _ask_for(walk, "plan", "plan", work, _read_plan)
        notes, missing = await skills.to_activate(walk, "plan", planned.plan.skills)
        created = PlanCreated(plan=planned.plan, warnings=(*planned.warnings, *missing))
    except (ModelGaveUp, NoPlan, Stopped) as error:
        only = PlanStep(id="answer", description=walk.created.input, requires_tools=True)
        created = PlanCreated(plan=Plan(thought="", steps=(only,)), fallback=True, reason=str(error))
        notes = [_fault("plan", f"the planner failed, so the request is answered in one step: {error}")]
    walk.write(Draft(key="plan", event=created), *notes)
    skills.after_plan(walk, "plan", created.plan.skills)
    return walk.kept("plan", PlanCreated)


def _read_plan(walk: Walk, text: str) -> Planned:
    return parse_plan(text, _named(walk), walk.created.limits.max_plan_steps)


def _fault(key: str, message: str) -> Draft:
    return Draft(key=f"{key}/fault", event=Fault(kind="provider", message=message, action="fallback"), by="note")


# -- the verdict after a step
async def decide(walk: Walk, work: Work, cause: ReplanCause) -> ReplanDecision:
    """What the replanner says of the rest of the plan. One that fails changes nothing."""
    key = f"{step_key(work.done[-1].number)}/replan"
    if found := walk.seen(f"{key}/decision", ReplanDecision):
        await walk.over(key, lambda: _ask_for(walk, key, "replan", work, _read_verdict), but=skills.of_plan(key))
        take_folds(walk, work, key)
        skills.after_plan(walk, key, found.plan and found.plan.skills)
        return found
    notes: list[Draft] = []
    try:
        verdict = await _ask_for(walk, key, "replan", work, _read_verdict)
        decision = _decision(verdict, cause)
        notes = _notes(walk, work, key, decision)
        if any(isinstance(note.event, RevisionsExceeded) for note in notes):
            decision = ReplanDecision(mode="finish", reason="no revision is left", cause=cause)
        loaded, missing = await skills.to_activate(walk, key, decision.plan and decision.plan.skills)
        decision, notes = replace(decision, warnings=(*decision.warnings, *missing)), [*notes, *loaded]
    except Stopped:
        decision = ReplanDecision(mode="finish", reason="nothing more fits the caps", cause=cause, stop="budget")
    except (ModelGaveUp, NoPlan) as error:
        decision = ReplanDecision(mode="continue", reason=f"the replanner failed: {error}", cause=cause)
        notes = [_fault(key, f"the replanner failed, so the plan stands: {error}")]
    walk.write(Draft(key=f"{key}/decision", event=decision), *notes)
    skills.after_plan(walk, key, decision.plan and decision.plan.skills)
    return walk.kept(f"{key}/decision", ReplanDecision)


def _read_verdict(walk: Walk, text: str) -> Verdict:
    return parse_verdict(text, _named(walk), walk.created.limits.max_plan_steps)


def _decision(verdict: Verdict, cause: ReplanCause) -> ReplanDecision:
    planned = verdict.planned
    return ReplanDecision(
        mode=verdict.mode,
        reason=verdict.reason,
        cause=cause,
        plan=planned.plan if planned else None,
        warnings=planned.warnings if planned else (),
    )


def _notes(walk: Walk, work: Work, key: str, decision: ReplanDecision) -> list[Draft]:
    """For readers. A revision that people asked for is not counted."""
    if decision.plan is None:
        return []
    cap = walk.created.limits.max_revisions
    if decision.cause != "user-message" and cap is not None and work.revisions >= cap:
        return [Draft(key=f"{key}/exceeded", event=RevisionsExceeded(cap=cap), by="note")]
    revised = PlanRevised(plan=decision.plan, revision=work.revised + 1, reason=decision.reason)
    return [Draft(key=f"{key}/revised", event=revised, by="note")]


# -- the answer
async def synthesize(walk: Walk, work: Work) -> Ending:
    """Always, also after a budget stop (from the reserve); the last report stands in where not even that fits."""
    boundary = _final_boundary(walk, work)
    work.said += boundary.messages
    last = work.done[-1].end.summary if work.done else ""
    if boundary.stop:
        return Ending("budget", last)
    context = _context(walk, "final", work)
    await fold(walk, context, boundary.compact)
    question = Question(
        key="final",
        stage="final",
        build=lambda: final_request(walk, work),
        cap=budget.final_cap(walk.created.limits, walk.ports.context_window),
        kept=Amount,
        models=walk.created.synthesizer_models or walk.created.models,
        shorter=harder(walk, context, boundary.compact),
    )
    try:
        answered = (await ask(walk, question)).answered
    except Stopped:
        return Ending("budget", last)
    asked = Asked(question.build, question.models, lambda key: harder(walk, _context(walk, key, work), None))
    form = await in_form(walk, "final", answered.message.text, asked)
    return Ending(_reason(work, cut=answered.finish_reason == "length"), form.text, form.value)


def _reason(work: Work, *, cut: bool) -> StopReason:
    if work.stop != "stop":
        return work.stop
    return "blocked" if work.last_blocked else "max_tokens" if cut else "stop"


def _final_boundary(walk: Walk, work: Work) -> Boundary:
    if found := walk.seen("final", Boundary):
        return found
    walk.ready()
    messages, delivered = take_in_messages(walk, "final", "final")
    ahead = replace(work, said=[*work.said, *messages])
    tokens = walk.estimates.input(final_request(walk, ahead))
    cap = budget.final_cap(walk.created.limits, walk.ports.context_window)
    writer = (walk.created.synthesizer_models or walk.created.models)[0]
    if budget.overrun_of(walk, writer, tokens, cap, Amount()):
        walk.write(Draft(key="final", event=Boundary(stop="budget")))
    else:
        compact = to_fold(walk, parts_of(walk, ahead), tokens, cap)
        walk.write(Draft(key="final", event=Boundary(final=True, messages=messages, compact=compact)), *delivered)
    return walk.kept("final", Boundary)


def _context(walk: Walk, key: str, work: Work) -> Context:
    return Context(key=key, parts=parts_of(walk, work), kept=lambda: kept_for_answer(walk, work))


# -- a JSON answer, with one repair
async def _ask_for(walk: Walk, key: str, stage: Stage, work: Work, read: Callable[[Walk, str], T]) -> T:
    """Raises NoPlan when the repaired answer is none either, and what `ask` raises."""
    question, context = _question(walk, key, stage, work), _context(walk, key, work)
    folding = await _folding(walk, question, context)
    await fold(walk, context, folding)
    question = replace(question, shorter=harder(walk, context, folding))
    answer = (await ask(walk, question)).answered.message
    await walk.take_in_tools(key, again=False)
    try:
        return read(walk, answer.text)
    except NoPlan as fault:
        mend = (AssistantMessage(text=answer.text), UserMessage(text=prompts.mend_plan(str(fault))))
        question = _question(walk, f"{key}/repair", stage, work, *mend)
        return read(walk, (await ask(walk, question)).answered.message.text)


def _folded_for(key: str) -> str:
    """The boundary before a call for which something had to be folded."""
    return f"{key}/context"


async def _folding(walk: Walk, question: Question, context: Context) -> Folding | None:
    """Where something has to be folded before this stage, a boundary of its own says so."""
    key = _folded_for(question.key)
    if found := walk.seen(key, Boundary):
        return found.compact
    if walk.has(keys.attempt(question.key, 0)) or not any(part.older(0) for part in context.parts):
        return None
    walk.frontier(key)
    await walk.take_in_tools(key, again=False)
    walk.ready()
    folding = to_fold(walk, context.parts, walk.estimates.input(question.build()), question.cap)
    if folding is None:
        return None
    walk.write(Draft(key=key, event=Boundary(compact=folding)))
    return walk.kept(key, Boundary).compact


def _question(walk: Walk, key: str, stage: Stage, work: Work, *more: AssistantMessage | UserMessage) -> Question:
    limits, window = walk.created.limits, walk.ports.context_window

    def build() -> ModelRequest:
        role = prompts.PLANNER if stage == "plan" else prompts.REPLANNER
        system, tools = prompts.of_stage(role, walk.agent.instructions), catalogue(walk.agent, walk.tools.offered())
        return ModelRequest(
            system=skills.in_system(walk.agent.skills, walk.skills, system, tools, plans=True),
            messages=(*briefing(walk, work), *more),
            tool_choice="none",
            output_schema=_schema(walk, stage),
        )

    return Question(
        key=key,
        stage=stage,
        build=build,
        cap=budget.planner_cap(limits, window) if stage == "plan" else budget.replanner_cap(limits, window),
        kept=lambda: kept_for_answer(walk, work),
        models=walk.created.planner_models or walk.created.models,
        needs_tools=True,
    )


def _schema(walk: Walk, stage: Stage) -> JsonObject:
    most = walk.created.limits.max_plan_steps or MOST_STEPS
    return plan_schema(_named(walk), most) if stage == "plan" else verdict_schema(_named(walk), most)


def _named(walk: Walk) -> Named:
    """What a plan can name."""
    return Named(
        tools=tuple(tool.name for tool in for_plans(walk.tools.offered())),
        skills=skills.names(walk.agent.skills, walk.skills),
    )
