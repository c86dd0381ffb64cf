"""What one attempt is charged with, and what is told of it: the cap that cut it, the caps that are crossed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from edge_agent.core import keys
from edge_agent.core.events import BudgetExceeded, ModelFailed, ModelRequested, Stage, UsageSoFar
from edge_agent.core.journal import Draft
from edge_agent.core.price import Price, spent_by
from edge_agent.core.usage import Amount, Usage, total_of
from edge_agent.loop import budget
from edge_agent.loop.listen import Heard
from edge_agent.loop.walk import Walk

NEARLY = 0.95  # of its output cap; an answer that is cut there was cut by it
_PHASES: Mapping[Stage, Literal["plan", "execute", "replan", "synthesize", "compact"]] = {
    "plan": "plan",
    "round": "execute",
    "replan": "replan",
    "final": "synthesize",
    "compact": "compact",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """`key`: of the attempt, under which it was reserved and is settled. `input_tokens`: estimated, `of_files` of them
    those of images and files."""

    walk: Walk
    key: str
    stage: Stage
    input_tokens: int
    held: budget.Reserve
    price: Price
    of_files: int = 0

    def usage(self, heard: Heard) -> Usage:
        limits, thought = self.walk.created.limits, heard.thought_meter.tokens
        said = heard.meter.tokens + heard.pending.tokens + thought
        estimate = Usage(input=self.input_tokens, output=said, reasoning=thought)
        whole = heard.finish_reason is not None and not heard.left
        return (budget.counted if whole else budget.heard_of)(limits, heard.usage, estimate, self.of_files)

    def amount(self, usage: Usage) -> Amount:
        return spent_by(usage, self.price)

    def cut_by(self, heard: Heard, usage: Usage) -> str | None:
        """The cap that cut the answer, by name; None also where the provider cut it at a limit of its own."""
        if heard.late:
            return "max_seconds"
        if heard.finish_reason != "length" or not (heard.left or usage.output >= NEARLY * self.held.cap):
            return None
        return budget.cap_name(self.stage, self.walk.created.limits, self.held.by)

    def crossed(self, amount: Amount, cut_by: str | None) -> list[Draft]:
        """Told together with the answer: the cap that cut it, or that its provider's count has crossed after all."""
        walk, limits, journal = self.walk, self.walk.created.limits, self.walk.journal
        spent = total_of([amount, *(other for key, other in journal.money.items() if key != self.key)])
        over = budget.over_by_now(limits, spent)
        if cut_by == "max_seconds":
            over = budget.late(limits, journal, walk.ports.clock.now())
        elif over is None and self.held.by is not None and cut_by is not None:
            over = budget.overrun(limits, spent, self.held.by)
        return crossing(walk, over) if over else []


def unheard(
    key: str, asked: ModelRequested, reserve: Amount, error: Literal["lost", "run-ended"], message: str
) -> Draft:
    """The end of an attempt whose answer nobody heard: its tokens may have been used, so it costs its whole reserve."""
    failed = ModelFailed(
        stage=asked.stage,
        attempt=asked.attempt,
        error=error,
        message=message,
        retryable=error == "lost",
        usage=Usage(input=reserve.input, output=reserve.output),
    )
    return Draft(key=f"{key}/end", event=failed, money={key: reserve}, by="loop")


def crossing(walk: Walk, over: budget.Overrun) -> list[Draft]:
    """budget.exceeded, once per kind and life."""
    key = keys.budget(over.kind, walk.journal.life)
    if walk.has(key):
        return []
    return [Draft(key=key, event=BudgetExceeded(kind=over.kind, used=over.used, cap=over.cap), by="note")]


def tell_usage(walk: Walk, stage: Stage) -> None:
    spent = walk.journal.spent
    walk.ports.sink.passing(UsageSoFar(phase=_PHASES[stage], usage=spent, cost_usd=spent.usd))
