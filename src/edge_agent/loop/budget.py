"""What the next model call may cost: reserved before it is made, so that no cap is ever crossed.

Two measures are at work. What a provider counts is known afterwards; before and while it speaks there is our estimate
(core/tokens.py), which is never below the count of ordinary text and at most OVERESTIMATE times it. So a call that a
cap of the run bounds is sent with an output cap of the room left, divided by OVERESTIMATE, and left as soon as what it
said is estimated at the whole room. A provider that keeps to its cap is never cut off, and one that does not cannot
get past the room.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from edge_agent.core import keys
from edge_agent.core.compaction import Compaction
from edge_agent.core.errors import ConfigError
from edge_agent.core.events import TERMINAL_TYPES, ModelAnswered, Stage
from edge_agent.core.journal import Journal
from edge_agent.core.limits import FIELDS, BudgetKind, Limits, crossed
from edge_agent.core.price import FREE, Price
from edge_agent.core.usage import Amount, Usage
from edge_agent.loop.walk import Walk

LEAST_OUTPUT = 64  # tokens; a call that could say less is not worth making
OVERESTIMATE = 1.4  # how far an estimate may be above the count
PATIENCE = 2  # where no cap of the run is near, an answer is left at so many times its output cap
IMPLAUSIBLE = 0.5  # of our estimate; a provider that counts less than that has not counted everything
SHARES: dict[Stage, tuple[int, int, int]] = {  # a part of the window, at least, at most (tokens)
    "plan": (64, 512, 4_000),
    "round": (16, 2_048, 32_000),
    "replan": (128, 256, 2_000),
    "final": (32, 1_024, 16_000),
}
SUMMARY_SHARE = 8  # of the window, at least that part is left to others beside a summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """What a call sets aside. `cap`: the output cap it is sent with. `most`: the estimated output at which it is left.
    `by`: the cap of the run that made it smaller than its stage's."""

    amount: Amount
    cap: int
    most: int
    by: BudgetKind | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    kind: BudgetKind
    used: float
    cap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Of the model that is asked, and of the dearest one that may write the final answer."""

    call: Price = FREE
    last: Price = FREE


# -- the output cap of a stage
def stage_cap(stage: Stage, limits: Limits, window: int) -> int:
    """The caller's own, else a share of the window and never more than half of it."""
    part, least, most = SHARES[stage]
    return limits.max_output_tokens_per_call or min(max(window // part, least), most, window // 2)


def round_cap(limits: Limits, window: int) -> int:
    return stage_cap("round", limits, window)


def final_cap(limits: Limits, window: int) -> int:
    return stage_cap("final", limits, window)


def planner_cap(limits: Limits, window: int) -> int:
    return stage_cap("plan", limits, window)


def replanner_cap(limits: Limits, window: int) -> int:
    return stage_cap("replan", limits, window)


def summary_cap(compaction: Compaction, limits: Limits, window: int) -> int:
    """Of a summary: small beside what it stands for, also in a small window."""
    own = limits.max_output_tokens_per_call or compaction.summary_max_tokens
    return min(own, compaction.summary_max_tokens, max(LEAST_OUTPUT, window // SUMMARY_SHARE))


def cap_name(stage: Stage, limits: Limits, by: BudgetKind | None) -> str:
    """What bounds a call's output, in words."""
    if by is not None:
        return FIELDS[by]
    if limits.max_output_tokens_per_call:
        return "max_output_tokens_per_call"
    return "summary_max_tokens" if stage == "compact" else f"1/{SHARES[stage][0]} of the context window"


# -- the reserve
def kept_for_the_end(limits: Limits, window: int, input_tokens: int) -> Amount:
    """What stays reserved for the final answer: its input, and an eighth of the tightest output cap, so that a small
    budget still has room for rounds. Its dollars are added by `reserve`, which knows the prices."""
    caps = (limits.max_output_tokens, limits.max_reasoning_tokens, limits.max_total_tokens)
    most = min((cap // 8 for cap in caps if cap is not None), default=math.inf)
    output = math.ceil(OVERESTIMATE * max(LEAST_OUTPUT, min(final_cap(limits, window), most)))
    return Amount(input=input_tokens, output=output, reasoning=output if limits.max_reasoning_tokens else 0)


def reserve(  # noqa: PLR0917 - in the order of a sentence: under these limits, this spent, a call of that size …
    limits: Limits, spent: Amount, input_tokens: int, cap: int, kept: Amount, prices: Prices = Prices()
) -> Reserve | Overrun:
    """The reserve of a call that sends `input_tokens`, with `kept` left for the final answer; the cap shrinks to what
    is left.

    An Overrun when the call does not fit."""
    least, smallest, by = min(cap, LEAST_OUTPUT) * OVERESTIMATE, math.inf, None
    held = spent + priced(limits, kept, prices.last)
    for kind, room in _rooms(limits, held, input_tokens, prices, follows=kept != Amount()):
        if room < least:
            return overrun(limits, spent, kind)
        if room < smallest:
            smallest, by = room, kind
    if smallest / OVERESTIMATE >= cap:
        by = None
    output = cap if by is None else math.floor(smallest / OVERESTIMATE + 1e-6)
    amount = Amount(
        input=input_tokens,
        output=output,
        reasoning=output if limits.max_reasoning_tokens else 0,
        usd=prices.call.at_most(input_tokens, output),
    )
    return Reserve(amount=amount, cap=output, most=math.floor(min(PATIENCE * output, smallest)), by=by)


def _rooms(
    limits: Limits, held: Amount, input_tokens: int, prices: Prices, *, follows: bool
) -> Iterator[tuple[BudgetKind, float]]:
    """Tokens of output that each cap leaves room for, below zero where not even the input fits. What is said now comes
    back as input of the final answer, where that `follows`."""
    again = 1 if follows else 0
    if limits.max_input_tokens is not None:
        yield "input", _shared(limits.max_input_tokens - held.input - input_tokens, again)
    if limits.max_output_tokens is not None:
        yield "output", limits.max_output_tokens - held.output
    if limits.max_reasoning_tokens is not None:
        yield "reasoning", limits.max_reasoning_tokens - held.reasoning
    if limits.max_total_tokens is not None:
        yield "total", _shared(limits.max_total_tokens - held.total - input_tokens, 1 + again)
    if limits.max_cost_usd is not None:
        left = limits.max_cost_usd - held.usd - input_tokens * prices.call.per_input
        yield "usd", _shared(left, prices.call.per_output + again * prices.last.per_input)


def _shared(left: float, for_each: float) -> float:
    """How many tokens `left` is enough for; -1 where it is used up already."""
    if left < 0:
        return -1.0
    return left / for_each if for_each else math.inf


def priced(limits: Limits, kept: Amount, price: Price) -> Amount:
    """What is kept, with its dollars; under a cap on those no more than an eighth of it goes into the output."""
    output = kept.output
    if limits.max_cost_usd is not None and price.per_output:
        eighth = math.ceil(OVERESTIMATE * (limits.max_cost_usd / 8 / price.per_output))
        output = min(output, max(math.ceil(OVERESTIMATE * LEAST_OUTPUT), eighth)) if output else 0
    usd = price.at_most(kept.input, output)
    return replace(kept, output=output, reasoning=min(kept.reasoning, output), usd=kept.usd + usd)


def overrun(limits: Limits, spent: Amount, kind: BudgetKind) -> Overrun:
    by_kind = {"input": spent.input, "output": spent.output, "reasoning": spent.reasoning, "usd": spent.usd}
    by_kind["tool-calls"] = spent.tool_calls
    return Overrun(kind=kind, used=by_kind.get(kind, spent.total), cap=getattr(limits, FIELDS[kind]))


def calls_used_up(walk: Walk) -> Overrun | None:
    """Whether calls had to be turned down in this life: then the answer is due."""
    if not walk.has(keys.budget("tool-calls", walk.journal.life)):
        return None
    return overrun(walk.created.limits, walk.journal.spent, "tool-calls")


def overrun_of(walk: Walk, model: str, input_tokens: int, cap: int, kept: Amount) -> Overrun | None:
    """What a call of that model would cross now; None where it fits."""
    held = reserve(walk.created.limits, walk.journal.spent, input_tokens, cap, kept, prices_of(walk, model))
    return held if isinstance(held, Overrun) else None


def prices_of(walk: Walk, name: str) -> Prices:
    """Raises ConfigError where dollars are capped and a model has no price (any more)."""
    writers = walk.created.synthesizer_models or walk.created.models
    return Prices(call=_price(walk, name), last=max((_price(walk, one) for one in writers), key=lambda p: p.per_output))


def _price(walk: Walk, name: str) -> Price:
    price = walk.ports.price(name)
    if price is None and walk.created.limits.max_cost_usd is not None:
        example = f'EDGE_AGENT_PRICES={{"{name}": {{"input": 1.0, "cached": 0.1, "output": 4.0}}}}'
        fault = f"has no price for {name}, and the dollars of this run are capped"
        raise ConfigError("EDGE_AGENT_PRICES", fault, example)
    return price or FREE


def too_low(
    limits: Limits, *, first_input: int, final_input: int, cap: int, window: int, prices: Prices
) -> tuple[str, float] | None:
    """The first cap that is too small for one call and the final answer, as (field, the smallest that works)."""

    def refused(limits: Limits) -> Overrun | None:
        kept = kept_for_the_end(limits, window, final_input)
        held = reserve(limits, Amount(), first_input, cap, kept, prices)
        return held if isinstance(held, Overrun) else None

    over = refused(limits)
    if over is None:
        return None
    field, unit = FIELDS[over.kind], 1e-6 if over.kind == "usd" else 1
    none = Limits(max_steps=None, max_output_tokens_per_call=limits.max_output_tokens_per_call)

    def works(units: int) -> bool:
        alone = replace(none, **{field: units * unit if over.kind == "usd" else units})
        return refused(alone) is None

    low, high = 0, 1
    while not works(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if works(middle) else (middle, high)
    return field, round(high * unit, 6)


# -- afterwards
def counted(limits: Limits, reported: Usage | None, estimate: Usage, of_files: int = 0) -> Usage:
    """What an attempt is charged with: the provider's count, or our estimate where there is none.

    Under a cap a count that is not plausible is not taken: it would let the run spend what it has not got. `of_files`:
    how much of the estimated input is that of images and files, which may be far too high."""
    if reported is None or not is_capped(limits):
        return reported or estimate
    return replace(
        reported,
        input=_plausible(reported.input, estimate.input, estimate.input - of_files),
        output=_plausible(reported.output, estimate.output),
        reasoning=_plausible(reported.reasoning, estimate.reasoning),
    )


def _plausible(count: int, estimate: int, sure: int | None = None) -> int:
    """`sure`: so much of the estimate is close to the truth; None: all of it."""
    return count if count >= IMPLAUSIBLE * (estimate if sure is None else sure) else estimate


def heard_of(limits: Limits, reported: Usage | None, estimate: Usage, of_files: int = 0) -> Usage:
    """Of an attempt that was left or broke off: at least what was received, for what was reported came before that."""
    usage = counted(limits, reported, estimate, of_files)
    if not is_capped(limits) and usage.output >= IMPLAUSIBLE * estimate.output:
        return usage
    output, reasoning = max(usage.output, estimate.output), max(usage.reasoning, estimate.reasoning)
    return replace(usage, output=output, reasoning=reasoning)


def is_capped(limits: Limits) -> bool:
    """Whether tokens or dollars are."""
    return any(getattr(limits, FIELDS[kind]) is not None for kind in ("input", "output", "reasoning", "total", "usd"))


def over_by_now(limits: Limits, spent: Amount) -> Overrun | None:
    """The cap that a provider's count has crossed after all."""
    over = crossed(limits, spent)
    return Overrun(kind=over[0], used=over[1], cap=over[2]) if over else None


def cut_by_the_run(answered: ModelAnswered) -> bool:
    """Whether a cap of the whole run cut the answer: there is no room for another one but the last."""
    return answered.cut_by in FIELDS.values()


# -- time
def late(limits: Limits, journal: Journal, now: int) -> Overrun | None:
    """Whether the active seconds are used up."""
    if limits.max_seconds is None:
        return None
    seconds = active_seconds(journal, now)
    return None if seconds < limits.max_seconds else Overrun(kind="seconds", used=seconds, cap=limits.max_seconds)


def active_seconds(journal: Journal, now: int) -> float:
    """By the records: all the time of the run but what it waited for someone, or lay ended. That of a fork begins with
    its own records: the waits of the other run are not among those it took."""
    records = journal.in_order()[journal.created.inherited :]
    times = [*(record.at for record in records[1:]), now]
    idle = {"run.waiting", *TERMINAL_TYPES}
    active = (later - record.at for record, later in zip(records, times, strict=False) if record.type not in idle)
    return sum(active) / 1000
