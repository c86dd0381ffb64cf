"""How much a model is to think, in the words it has for it."""

from typing import get_args

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import Thinking
from edge_agent.models.workers_ai.dialects import Dialect, Level

_LEVELS: tuple[Level, ...] = get_args(Level)
_LOW_BUDGET, _MEDIUM_BUDGET = 1024, 8192  # tokens, as Google's compatible endpoint maps levels to budgets


def thinking_fields(thinking: Thinking | None, dialect: Dialect) -> tuple[JsonObject, tuple[str, ...]]:
    """The fields that ask for it, and warnings for what the model cannot be told: the next higher level of those it
    has is taken, else its highest."""
    if thinking is None:
        return {}, ()
    if thinking == "none":
        if dialect.unthinking is not None:
            return dialect.unthinking, ()
        return _least(dialect)
    if not dialect.efforts:
        return {}, ("How much this model thinks cannot be set: it was not asked for.",)
    wanted = _LEVELS.index(_level(thinking) if isinstance(thinking, int) else thinking)
    enough = (effort for effort in dialect.efforts if _LEVELS.index(effort) >= wanted)
    return {"reasoning_effort": next(enough, dialect.efforts[-1])}, ()


def _least(dialect: Dialect) -> tuple[JsonObject, tuple[str, ...]]:
    if not dialect.efforts:
        return {}, ("This model's thinking cannot be switched off.",)
    least = dialect.efforts[0]
    return {"reasoning_effort": least}, (f"This model's thinking cannot be switched off: {least} was asked for.",)


def _level(budget: int) -> Level:
    if budget <= _LOW_BUDGET:
        return "low"
    return "medium" if budget <= _MEDIUM_BUDGET else "high"
