"""How much was used: the provider's count of one call, and the amounts a budget is kept in."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call. `input` includes the cached ones, `output` includes reasoning."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What a record reserves or settles under a key: tokens by kind, tool calls, dollars."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    tool_calls: int = 0
    usd: float = 0.0

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Amount)})
