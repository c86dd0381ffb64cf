"""The caps of a run, and which of them an amount would cross."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from edge_agent.core.usage import Amount

BudgetKind = Literal["input", "output", "reasoning", "total", "tool-calls", "steps", "usd", "seconds"]
FIELDS: Mapping[BudgetKind, str] = {
    "input": "max_input_tokens",
    "output": "max_output_tokens",
    "reasoning": "max_reasoning_tokens",
    "total": "max_total_tokens",
    "tool-calls": "max_tool_calls",
    "steps": "max_steps",
    "usd": "max_cost_usd",
    "seconds": "max_seconds",
}
FRACTIONAL = frozenset({"max_seconds", "max_cost_usd"})  # every other limit counts something
DUST = 1e-9  # dollars; what sums of floats may be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Caps of one run; None means no cap. A request may only lower what its agent sets.

    max_steps: model rounds of a direct run. max_*_tokens: tokens over the whole run (output includes reasoning, total
    is input + output). max_output_tokens_per_call: the output cap of each single model call. max_cost_usd: US dollars
    by the price table. max_seconds: active seconds, waiting excluded. max_tool_calls may be 0: none at all.
    Planned runs: max_plan_steps of one plan, max_steps_per_task rounds of one step, max_revisions of the plan,
    max_iterations executed steps in all.
    """

    max_steps: int | None = 10
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None
    max_reasoning_tokens: int | None = None
    max_total_tokens: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    max_output_tokens_per_call: int | None = None
    max_cost_usd: float | None = None
    max_plan_steps: int | None = 8
    max_steps_per_task: int | None = 8
    max_revisions: int | None = 2
    max_iterations: int | None = 16

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0 and not (value == 0 and field.name == "max_tool_calls"):
                raise ValueError(f"limits.{field.name} must be greater than 0, or absent for no cap; got {value}")

    def lowered_by(self, wanted: Mapping[str, float]) -> "Limits":
        """These limits with the wanted ones laid over them.

        Raises ValueError naming the field and its ceiling when a wanted value is above ours, and for an unknown
        field."""
        own: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in wanted.items():
            if name not in own:
                raise ValueError(f"limits.{name} is not a limit; known are {', '.join(own)}")
            if own[name] is not None and value > own[name]:
                raise ValueError(f"limits.{name} may be at most {own[name]}, the agent's own limit; got {value}")
        laid_over: dict[str, Any] = {**own, **wanted}
        return Limits(**laid_over)


def crossed(limits: Limits, spent: Amount) -> tuple[BudgetKind, float, float] | None:
    """The first cap that `spent` is over, as (kind, used, cap)."""
    checks: tuple[tuple[BudgetKind, float, float | None], ...] = (
        ("input", spent.input, limits.max_input_tokens),
        ("output", spent.output, limits.max_output_tokens),
        ("reasoning", spent.reasoning, limits.max_reasoning_tokens),
        ("total", spent.total, limits.max_total_tokens),
        ("tool-calls", spent.tool_calls, limits.max_tool_calls),
        ("usd", spent.usd - DUST, limits.max_cost_usd),
    )
    return next(((kind, used, cap) for kind, used, cap in checks if cap is not None and used > cap), None)
