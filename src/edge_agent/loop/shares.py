"""What a child may spend: an equal part of what is left for those of the same answer, reserved until it is settled."""

import math
from collections.abc import Mapping

from edge_agent.core.limits import Limits
from edge_agent.core.usage import Amount
from edge_agent.loop import budget
from edge_agent.loop.admit import Round
from edge_agent.loop.walk import Walk

SHORT_ANSWER = 200  # tokens of a child's answer that the rounds after it must at least have room for


def shares(walk: Walk, round_: Round) -> dict[str, float]:
    """By the names of limits, for the next child of this answer: what the run has left beside its own final answer,
    divided by the children that have not begun. Empty where nothing is capped; zero or less where nothing is left."""
    limits, spent = walk.created.limits, walk.journal.spent
    fresh = [call for key, call in zip(round_.keys, round_.calls, strict=True) if not _begun(walk, key)]
    children = sum(call.name in walk.agent.subagents for call in fresh)
    kept = _kept(walk, round_) if budget.is_capped(limits) else Amount()
    left: tuple[tuple[str, float | None, float], ...] = (
        ("max_input_tokens", limits.max_input_tokens, spent.input + kept.input),
        ("max_output_tokens", limits.max_output_tokens, spent.output + kept.output),
        ("max_reasoning_tokens", limits.max_reasoning_tokens, spent.reasoning + kept.reasoning),
        ("max_total_tokens", limits.max_total_tokens, spent.total + kept.total),
        ("max_tool_calls", limits.max_tool_calls, spent.tool_calls + len(fresh)),
    )
    caps: dict[str, float] = {name: (cap - used) // children for name, cap, used in left if cap is not None}
    if limits.max_cost_usd is not None:
        caps["max_cost_usd"] = (limits.max_cost_usd - spent.usd - kept.usd) / children
    return _within_total(caps)


def _begun(walk: Walk, key: str) -> bool:
    return walk.has(f"{key}/call") or walk.has(f"{key}/result")


def _kept(walk: Walk, round_: Round) -> Amount:
    """For the final answer, which is to see something of every call."""
    answers = Amount(input=SHORT_ANSWER * len(round_.calls))
    last = budget.prices_of(walk, walk.models[0]).last
    return budget.priced(walk.created.limits, round_.kept() + answers, last)


def _within_total(caps: dict[str, float]) -> dict[str, float]:
    """Input and output together never more than the total, so that they can be reserved apart."""
    names = ("max_input_tokens", "max_output_tokens")
    parts = [caps[name] for name in names if name in caps]
    total = caps.get("max_total_tokens", math.inf)
    if len(parts) < len(names) or sum(parts) <= total or min(*parts, total) <= 0:
        return caps
    input_ = math.floor(total * parts[0] / sum(parts))
    return {**caps, "max_input_tokens": input_, "max_output_tokens": total - input_}


def used_up(caps: dict[str, float]) -> str | None:
    """The limit of which nothing is left. A child may have no tool calls: it can still answer."""
    return next((name for name, left in caps.items() if left < 0 or (left == 0 and name != "max_tool_calls")), None)


def lower(own: Limits, caps: Mapping[str, float]) -> dict[str, float]:
    """The caps that are lower than an agent's own limits."""
    return {name: cap for name, cap in caps.items() if getattr(own, name) is None or cap < getattr(own, name)}


def reserve(limits: Limits, child: Limits) -> Amount:
    """The most that a child with these limits can cost the run, in the kinds that the run caps; and its call."""
    input_ = _of(limits.max_input_tokens, child.max_input_tokens)
    output = _of(limits.max_output_tokens, child.max_output_tokens)
    total = _of(limits.max_total_tokens, child.max_total_tokens)
    if limits.max_total_tokens is not None and limits.max_output_tokens is None:
        input_ = min(input_, total) if limits.max_input_tokens is not None else total
        output = total - input_
    elif limits.max_total_tokens is not None and limits.max_input_tokens is None:
        output = min(output, total)
        input_ = total - output
    return Amount(
        input=input_,
        output=output,
        reasoning=_of(limits.max_reasoning_tokens, child.max_reasoning_tokens),
        tool_calls=1 + _of(limits.max_tool_calls, child.max_tool_calls),
        usd=0.0 if limits.max_cost_usd is None else child.max_cost_usd or 0.0,
    )


def _of(capped: int | None, most: int | None) -> int:
    return 0 if capped is None else most or 0
