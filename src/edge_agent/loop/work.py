"""How far a planned run has come, and how its stages are told of it. Built from records alone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from edge_agent.core import keys
from edge_agent.core.answers import ENDED, Ended, said, went_well
from edge_agent.core.events import (
    Boundary,
    CallOutcome,
    DeliveredMessage,
    PlanStep,
    StepCompleted,
    StopReason,
)
from edge_agent.core.messages import Message, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.core.usage import Amount
from edge_agent.loop import budget, prompts
from edge_agent.loop.direct import history
from edge_agent.loop.walk import Walk


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An executed step: its number over all revisions, and what came of it."""

    number: int
    step: PlanStep
    end: StepCompleted


@dataclass(slots=True, kw_only=True)
class Work:
    """said: every message that was delivered so far. revisions: those that count; revised: all of them.
    stop: why the work ended, where it did before its time."""

    todo: list[PlanStep]
    done: list[Done] = field(default_factory=list[Done])
    said: list[DeliveredMessage] = field(default_factory=list[DeliveredMessage])
    revisions: int = 0
    revised: int = 0
    index: int = 0
    stop: StopReason = "stop"

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
    """Each executed step with its summary and what its tools found, clipped."""
    told: list[str] = []
    for done in work.done:
        report = prompts.step_report(done.number, done.step.description, done.end.summary, blocked=done.end.blocked)
        findings = [prompts.finding(call.name, said(call)) for call in calls_of(walk, step_key(done.number))]
        told.append("\n".join([report, *findings]))
    return told


def briefing(walk: Walk, work: Work, *more: str) -> tuple[Message, ...]:
    """The earlier conversation, then one turn: the request, what was done, what is ahead, what the user has said."""
    ahead = [step.description for step in work.todo]
    parts = [prompts.request(walk.created.input), *prompts.plan_so_far(reports(walk, work), ahead)]
    if work.said:
        parts.append(prompts.said_meanwhile(work.said))
    return (*history(walk), UserMessage(text="\n\n".join([*parts, *more])))


# -- the answer at the end, and what is kept for it
def final_request(walk: Walk, work: Work) -> ModelRequest:
    return ModelRequest(
        system=prompts.of_stage(prompts.SYNTHESIZER, walk.agent.instructions),
        messages=briefing(walk, work, prompts.ANSWER),
        tool_choice="none",
        output_schema=walk.created.output_schema,
        metadata={"run": walk.run_id, "agent": walk.agent.name, "stage": "final"},
    )


def kept_for_answer(walk: Walk, work: Work) -> Amount:
    """The reserve of the final answer: its input as it would be now, with room for one more report, and its output."""
    tokens = budget.estimated_input(final_request(walk, work)) + ONE_MORE_REPORT
    return budget.kept_for_the_end(walk.created.limits, walk.ports.context_window, tokens)


ONE_MORE_REPORT = 2_000  # tokens: a summary of 4 000 characters, and a little
