"""How thinking is asked for: the same wish in the form the family of the model takes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Effort, ModelRequest
from edge_agent.models.anthropic.families import Family

LEAST_BUDGET = 1_024  # tokens; less is refused
BUDGETS: Mapping[Effort, int] = {
    "minimal": LEAST_BUDGET,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 32_768,
}
ANSWER_SHARE = 4  # a quarter of the output stays for the answer, whatever the budget
BINDING_BETA = "thinking-binding-controls-2026-08-01"
INTERLEAVED_BETA = "interleaved-thinking-2025-05-14"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """`config`: the field `thinking`; None: it is left out. on: whether thoughts of earlier rounds are shown to the
    model, which is refused where it does not think."""

    on: bool
    config: JsonObject | None = None
    effort: str | None = None
    beta: str | None = None
    warnings: tuple[str, ...] = ()


def thought(request: ModelRequest, family: Family, max_tokens: int, *, forced: bool, unopened: bool) -> Thought:
    """forced: a tool is demanded. unopened: the calls that are being answered began without a thought that could be
    shown; with a budget, both are refused together with thinking."""
    wish = request.thinking
    if not family.thinks:
        told = wish not in (None, "none")
        return Thought(on=False, warnings=("This model does not think: thinking was not asked for.",) if told else ())
    if wish == "none":
        return _off(request, family)
    if wish is None and not family.thinks_unasked:
        return Thought(on=False)
    if family.adaptive and not (family.budget and isinstance(wish, int)):
        return _adaptive(request, family)
    if forced:
        obstacle = "Thinking is off for this call: this model cannot think where a tool is demanded."
    elif unopened:
        obstacle = "Thinking is off until the next question: the calls that are answered began without a thought."
    else:
        return _budget(request, family, max_tokens)
    return _off(request, family, obstacle)


def _off(request: ModelRequest, family: Family, *warnings: str) -> Thought:
    if family.off is None:
        told = "Thinking cannot be switched off for this model: it thinks as little as it can."
        return replace(_adaptive(request, family), effort="low", warnings=(told,))
    return Thought(on=False, config={"type": family.off}, warnings=warnings)


def _adaptive(request: ModelRequest, family: Family) -> Thought:
    config: JsonObject = {"type": "adaptive", "display": "summarized" if request.include_thoughts else "omitted"}
    if family.bound:
        config["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
    wish = request.thinking
    rounded = "This model takes no budget of thinking tokens: the nearest effort was asked for."
    return Thought(
        on=True,
        config=config,
        effort=None if wish is None else _effort(wish, family),
        beta=BINDING_BETA if family.bound else None,
        warnings=(rounded,) if isinstance(wish, int) else (),
    )


def _budget(request: ModelRequest, family: Family, max_tokens: int) -> Thought:
    wish = request.thinking
    wanted = wish if isinstance(wish, int) else BUDGETS.get(wish or "medium", LEAST_BUDGET)
    most = max_tokens - max_tokens // ANSWER_SHARE
    if most < LEAST_BUDGET:
        return _off(request, family, f"Thinking is off for this call: {max_tokens} output tokens leave no room for it.")
    budget = min(max(wanted, LEAST_BUDGET), most)
    cut = f"The thinking budget is {budget} tokens, not {wanted}: at least {LEAST_BUDGET}, and within the output cap."
    return Thought(
        on=True,
        config={"type": "enabled", "budget_tokens": budget}
        | ({} if request.include_thoughts else {"display": "omitted"}),
        beta=INTERLEAVED_BETA if family.interleaved and request.tools else None,
        warnings=(cut,) if isinstance(wish, int) and budget != wanted else (),
    )


def _effort(wish: Any, family: Family) -> str | None:
    level = _nearest(wish) if isinstance(wish, int) else wish
    named = {"minimal": "low", "xhigh": "xhigh" if "xhigh" in family.efforts else "max"}.get(level, level)
    return named if named in family.efforts else None


def _nearest(tokens: int) -> Effort:
    return min(BUDGETS, key=lambda level: abs(BUDGETS[level] - tokens))
