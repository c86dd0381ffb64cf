"""The planned loop: plan, execute, replan, synthesize. Each step is worked off by the direct loop's rounds."""

from collections.abc import Sequence

from edge_agent.core.events import (
    Boundary,
    CallOutcome,
    DeliveredMessage,
    PlanStep,
    ReplanCause,
    ReplanDecision,
    StepCompleted,
    StepStarted,
)
from edge_agent.core.journal import Draft
from edge_agent.core.messages import UserMessage
from edge_agent.core.tokens import estimate
from edge_agent.loop import budget, prompts, skills
from edge_agent.loop.ask import crossing
from edge_agent.loop.direct import Assignment, Ending, Worked, direct, rounds
from edge_agent.loop.estimates import of_files
from edge_agent.loop.hooking import may
from edge_agent.loop.parts import Past
from edge_agent.loop.settling import wait_for_costs
from edge_agent.loop.stages import decide, make_plan, synthesize
from edge_agent.loop.steering import take_in_messages
from edge_agent.loop.talk import Talk
from edge_agent.loop.walk import Walk
from edge_agent.loop.work import (
    Done,
    Work,
    briefing,
    kept_for_answer,
    messages_of,
    outcomes_of,
    parts_of,
    step_key,
    take_folds,
)

LONGEST_SUMMARY = 4_000  # characters of a step's report that later stages see
ASKED: frozenset[ReplanCause] = frozenset({"user-message", "llm-decision", "predicate"})


async def whole(walk: Walk) -> Ending:
    """The run from its beginning to its end, in the mode it was created with."""
    await skills.take_in(walk)
    return await (planned(walk) if walk.created.mode == "planned" else direct(walk))


async def planned(walk: Walk) -> Ending:
    """Raises what `ask` and `call_tools` raise."""
    work = Work(past=Past(walk.created.history))
    work.todo = list((await make_plan(walk, work)).plan.steps)
    most = walk.created.limits.max_iterations
    while work.todo:
        if most is not None and len(work.done) >= most:
            work.stop = "budget"
            break
        await _execute(walk, work)
        boundary = await _after_step(walk, work)
        work.said += boundary.messages
        if boundary.stop:
            work.stop = "budget"
            break
        await _look_ahead(walk, work, boundary)
    walk.hand_over(None)
    return await synthesize(walk, work)


async def _look_ahead(walk: Walk, work: Work, boundary: Boundary) -> None:
    """The plan as it is after a step: as it was, revised, or at its end."""
    if boundary.replan not in ASKED:
        return
    decision = await decide(walk, work, boundary.replan)
    work.stop = decision.stop or work.stop
    if decision.mode == "finish":
        work.todo = []
    elif decision.plan is not None:
        work.todo, work.index = list(decision.plan.steps), 0
        work.revised += 1
        work.revisions += decision.cause != "user-message"


# -- a step
async def _execute(walk: Walk, work: Work) -> None:
    """The next step of the plan, by rounds of its own; with its end on record it is not entered again."""
    walk.hand_over(None)  # each step begins with the run's own agent
    step, number = work.todo.pop(0), len(work.done) + 1
    key, known = step_key(number), walk.skills
    end = walk.seen(f"{key}/end", StepCompleted)
    if end is not None:
        walk.seen(key, StepStarted)
        await walk.over(key, lambda: _rounds(walk, work, step, number), but=f"{key}/replan")
        take_folds(walk, work, key, but=f"{key}/replan")
    else:
        end = await _work_off(walk, work, step, number)
    skills.after_step(walk, known, key)
    work.said += messages_of(walk, key)
    work.done.append(Done(number=number, step=step, end=end))
    work.index += 1


async def _work_off(walk: Walk, work: Work, step: PlanStep, number: int) -> StepCompleted:
    key = step_key(number)
    if walk.seen(key, StepStarted) is None and await _begin_step(walk, work, step, number):
        return walk.kept(f"{key}/end", StepCompleted)
    worked = await _rounds(walk, work, step, number)
    end = _end_of(walk, key, number, worked)
    walk.write(Draft(key=f"{key}/end", event=end))
    if hook := walk.agent.hooks.on_step_complete:
        await may(walk, f"{key}/end", "on_step_complete", lambda: hook(end))
    return walk.kept(f"{key}/end", StepCompleted)


async def _rounds(walk: Walk, work: Work, step: PlanStep, number: int) -> Worked:
    assignment = _assignment(walk, work, step, number)
    return await rounds(walk, assignment, Talk(opening=assignment.opening()))


async def _begin_step(walk: Walk, work: Work, step: PlanStep, number: int) -> bool:
    """Records the start; with it the end, where the on_step_start hook cancels the step: then True."""
    key = step_key(number)
    walk.ready()
    started = StepStarted(step=number, index=work.index, id=step.id, description=step.description)
    hook = walk.agent.hooks.on_step_start
    drafts = [Draft(key=key, event=started)]
    refused = hook is not None and await may(walk, key, "on_step_start", lambda: hook(started)) is False
    walk.ready()
    if refused:
        end = StepCompleted(
            step=number, summary="cancelled before it began", blocked=True, stop="cancelled", duration_ms=0
        )
        drafts.append(Draft(key=f"{key}/end", event=end))
    walk.write(*drafts)
    return refused


def _assignment(walk: Walk, work: Work, step: PlanStep, number: int) -> Assignment:
    brief = prompts.this_step(number, step.description, step.expected_outcome, step.suggested_tools)
    known = walk.skills  # what is loaded meanwhile stands in the conversation

    def system() -> str:
        role = prompts.of_stage(prompts.EXECUTOR, walk.agent.instructions)
        return skills.in_system(walk.agent.skills, known, role, works=True)

    return Assignment(
        scope=step_key(number),
        system=system,
        opening=lambda: briefing(walk, work, brief),
        parts=parts_of(walk, work),
        most_rounds=walk.created.limits.max_steps_per_task,
        last_round=False,
        kept=lambda _: kept_for_answer(walk, work),
        suggested=None if step.requires_tools else step.suggested_tools,
    )


def _end_of(walk: Walk, key: str, number: int, worked: Worked) -> StepCompleted:
    calls = outcomes_of(walk, key)
    text = worked.text.replace(prompts.BLOCKED, "").strip()
    blocked = prompts.BLOCKED in worked.text or worked.stop == "cancelled" or (worked.stop == "max_steps" and not text)
    began = walk.journal.records[key].at
    return StepCompleted(
        step=number,
        summary=text[:LONGEST_SUMMARY] or _why_silent(worked, calls),
        calls=calls,
        blocked=blocked,
        stop=worked.stop,
        duration_ms=walk.ports.clock.now() - began,
    )


def _why_silent(worked: Worked, calls: Sequence[CallOutcome]) -> str:
    if worked.stop == "cancelled":
        return "cancelled"
    if worked.stop == "budget":
        return "stopped by the budget"
    return f"{len(calls)} calls without a message" if calls else "no output"


# -- the boundary after a step
async def _after_step(walk: Walk, work: Work) -> Boundary:
    """Cancelled? caps? messages? and whether the replanner is asked: one record."""
    done = work.done[-1]
    key = f"{step_key(done.number)}/replan"
    if found := walk.seen(key, Boundary):
        if found.replan not in ASKED and not found.stop:
            walk.seen(f"{key}/decision", ReplanDecision)
        return found
    walk.ready()
    wait_for_costs(walk)
    wants = await _wants_replan(walk, done.end)
    walk.ready()
    over = _over(walk, work)
    if over or done.end.stop == "budget":
        walk.write(Draft(key=key, event=Boundary(stop="budget")), *(crossing(walk, over) if over else []))
        return walk.kept(key, Boundary)
    messages, delivered = take_in_messages(walk, key, "replan")
    cause = _cause(walk, work, wants, [*messages_of(walk, step_key(done.number)), *messages])
    drafts = [Draft(key=key, event=Boundary(messages=messages, replan=cause)), *delivered]
    if cause not in ASKED:
        mode = "finish" if cause == "last-step" else "continue"
        drafts.append(Draft(key=f"{key}/decision", event=ReplanDecision(mode=mode, reason="", cause=cause)))
    walk.write(*drafts)
    walk.seen(f"{key}/decision", ReplanDecision)
    return walk.kept(key, Boundary)


def _cause(walk: Walk, work: Work, wants: ReplanCause, fresh: Sequence[DeliveredMessage]) -> ReplanCause:
    """A message is always looked at, and so is a blocked last step, as long as another step could be made."""
    most = walk.created.limits.max_iterations
    if most is not None and len(work.done) >= most:
        return "last-step"
    if fresh:
        return "user-message"
    return wants if work.todo or (work.last_blocked and wants in ASKED) else "last-step"


async def _wants_replan(walk: Walk, end: StepCompleted) -> ReplanCause:
    """By `replan_after`; a function that fails counts as `failure`."""
    after = walk.agent.replan_after
    if after == "always":
        return "llm-decision"
    if callable(after):
        verdict = await may(walk, f"s{end.step}/replan", "replan_after", lambda: after(end))
        if verdict is not None:
            return "predicate" if verdict else "clean-step"
    return "llm-decision" if end.blocked or _failed(end.calls) else "clean-step"


def _failed(calls: Sequence[CallOutcome]) -> bool:
    """A tool that failed and was not later successful in that step."""
    last = {call.name: call.ok for call in calls}
    return not all(last.values())


def _over(walk: Walk, work: Work) -> budget.Overrun | None:
    """Whether another call of any kind still fits beside the answer."""
    limits = walk.created.limits
    over = budget.late(limits, walk.journal, walk.ports.clock.now()) or budget.calls_used_up(walk)
    if over is not None or not budget.is_capped(limits):
        return over
    kept = kept_for_answer(walk, work)
    told = [message for message in briefing(walk, work) if isinstance(message, UserMessage)]
    tokens = sum(estimate(message.text) for message in told) + of_files(*told)
    return budget.overrun_of(walk, walk.created.models[0], tokens, budget.LEAST_OUTPUT, kept)
