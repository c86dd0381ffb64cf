"""How far a planned run has come, and how its stages are told of it. Built from records alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edge_agent.core import keys
from edge_agent.core.answers import ENDED, Ended, said, went_well
from edge_agent.core.events import (
    Boundary,
    CallOutcome,
    ContextCompacted,
    DeliveredMessage,
    Part,
    PlanStep,
    StepCompleted,
    StopReason,
)
from edge_agent.core.messages import Message, user_message
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts, skills
from edge_agent.loop.parts import Foldable, Older, Past
from edge_agent.loop.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An executed step: its number over all revisions, and what came of it."""

    number: int
    step: PlanStep
    end: StepCompleted


@dataclass(slots=True, kw_only=True)
class Work:
    """past: the earlier conversation. said: every message that was delivered so far. revisions: those that count;
    revised: all of them. stop: why the work ended, where it did before its time. summary: stands for the reports of the
    first `folded` steps."""

    past: Past
    todo: list[PlanStep] = field(default_factory=list[PlanStep])
    done: list[Done] = field(default_factory=list[Done])
    said: list[DeliveredMessage] = field(default_factory=list[DeliveredMessage])
    revisions: int = 0
    revised: int = 0
    index: int = 0
    stop: StopReason = "stop"
    summary: str = ""
    folded: int = 0

    @property
    def last_blocked(self) -> bool:
        return bool(self.done) and self.done[-1].end.blocked


def step_key(number: int) -> str:
    return f"s{number}"


def messages_of(walk: Walk, key: str) -> list[DeliveredMessage]:
    """What the boundaries of a step's rounds took in, also where the step is not entered again."""
    found: list[DeliveredMessage] = []
    for under in walk.journal.under.get(key, ()):
        if boundary := walk.journal.event(under, Boundary) if keys.round_of(under) else None:
            found += boundary.messages
    return found


def calls_of(walk: Walk, key: str) -> Iterator[Ended]:
    """The outcomes of a step's calls, in the order of rounds and calls whatever finished first."""
    found = [under for under in walk.journal.under.get(key, ()) if under.endswith("/result")]
    for under in sorted(found, key=lambda name: [int(part[1:]) for part in name.split("/")[1:3]]):
        for kind in ENDED:
            if event := walk.journal.event(under, kind):
                yield event


def outcomes_of(walk: Walk, key: str) -> tuple[CallOutcome, ...]:
    return tuple(CallOutcome(call_id=call.call_id, name=call.name, ok=went_well(call)) for call in calls_of(walk, key))


# -- what a stage is told
def reports(walk: Walk, work: Work) -> list[str]:
    """Each executed step with its summary and what its tools found, clipped; the first ones perhaps as one summary."""
    earlier = [prompts.steps_so_far(work.summary)] if work.summary else []
    return [*earlier, *(_report(walk, done) for done in work.done[work.folded :])]


def _report(walk: Walk, done: Done) -> str:
    report = prompts.step_report(done.number, done.step.description, done.end.summary, blocked=done.end.blocked)
    findings = [prompts.finding(call.name, said(call)) for call in calls_of(walk, step_key(done.number))]
    return "\n".join([report, *findings])


@dataclass(frozen=True, slots=True)
class Trace:
    """The executed steps of a plan, as a part of a prompt."""

    walk: Walk
    work: Work
    name: Part = "trace"

    def older(self, keep: int) -> Older | None:
        work = self.work
        fresh = work.done[work.folded : max(work.folded, len(work.done) - keep)]
        if not fresh:
            return None
        pieces = [_report(self.walk, done) for done in fresh]
        return Older(pieces=pieces, earlier=work.summary, replaces=tuple(step_key(done.number) for done in fresh))

    def take(self, folded: ContextCompacted) -> None:
        self.work.summary, self.work.folded = folded.summary or "", keys.step_of(folded.replaces[-1]) or 0


def parts_of(walk: Walk, work: Work) -> tuple[Foldable, ...]:
    """What every stage of a planned run can fold."""
    return (Trace(walk, work), work.past)


def take_folds(walk: Walk, work: Work, key: str, *, but: str | None = None) -> None:
    """What was folded under `key`, also where that is not entered again; what is under `but` was folded later."""
    parts = {part.name: part for part in parts_of(walk, work)}
    later = frozenset(walk.journal.under.get(but, ()) if but else ())
    for under in walk.journal.under.get(key, ()):
        folded = walk.journal.event(under, ContextCompacted) if under not in later else None
        if folded is not None and folded.summary is not None and folded.scope in parts:
            parts[folded.scope].take(folded)


def briefing(walk: Walk, work: Work, *more: str) -> tuple[Message, ...]:
    """The earlier conversation, then one turn: the request, what was done, what is ahead, what the user has said."""
    ahead = [step.description for step in work.todo]
    parts = [prompts.request(walk.created.input), *prompts.plan_so_far(reports(walk, work), ahead)]
    if work.said:
        parts.append(prompts.said_meanwhile(work.said))
    return (*work.past.messages, user_message("\n\n".join([*parts, *more]), walk.created.attachments))


# -- the answer at the end, and what is kept for it
def final_request(walk: Walk, work: Work) -> ModelRequest:
    role = prompts.of_stage(prompts.SYNTHESIZER, walk.agent.instructions)
    return ModelRequest(
        system=skills.in_system(walk.agent.skills, walk.skills, role, index=False),
        messages=briefing(walk, work, prompts.ANSWER),
        tool_choice="none",
        output_schema=walk.created.output_schema,
    )


def kept_for_answer(walk: Walk, work: Work) -> Amount:
    """The reserve of the final answer: its input as it would be now, with room for one more report, and its output."""
    if not budget.is_capped(walk.created.limits):
        return Amount()
    tokens = walk.estimates.input(final_request(walk, work)) + ONE_MORE_REPORT
    return budget.kept_for_the_end(walk.created.limits, walk.ports.context_window, tokens)


ONE_MORE_REPORT = 2_000  # tokens: a summary of 4 000 characters, and a little
