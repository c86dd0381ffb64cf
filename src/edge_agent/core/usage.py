"""How much was used: the provider's count of one call, and the amounts a budget is kept in."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call. `input` includes the cached ones, `output` includes reasoning."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


def total_usage(usages: Iterable[Usage]) -> Usage:
    input_, cached, cache_write, output, reasoning = 0, 0, 0, 0, 0
    for usage in usages:
        input_ += usage.input
        cached += usage.cached
        cache_write += usage.cache_write
        output += usage.output
        reasoning += usage.reasoning
    return Usage(input=input_, cached=cached, cache_write=cache_write, output=output, reasoning=reasoning)


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
        return total_of((self, other))


def total_of(amounts: Iterable[Amount]) -> Amount:
    input_, output, reasoning, tool_calls, usd = 0, 0, 0, 0, 0.0
    for amount in amounts:
        input_ += amount.input
        output += amount.output
        reasoning += amount.reasoning
        tool_calls += amount.tool_calls
        usd += amount.usd
    return Amount(input=input_, output=output, reasoning=reasoning, tool_calls=tool_calls, usd=usd)
