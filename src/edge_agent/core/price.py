"""What a model's tokens cost."""

from dataclasses import dataclass

from edge_agent.core.usage import Amount, Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens. `cached` and `cache_write` None: priced like other input."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None

    def of(self, usage: Usage) -> float:
        """Dollars for one call, by what its provider counted."""
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        millions = plain * self.input + usage.cached * cached + usage.cache_write * written + usage.output * self.output
        return millions / _MILLION

    @property
    def per_input(self) -> float:
        """Dollars for one input token that no cache holds yet: what a reserve must count with."""
        return max(self.input, self.cache_write or 0.0) / _MILLION

    @property
    def per_output(self) -> float:
        return self.output / _MILLION

    def at_most(self, input_tokens: int, output_tokens: int) -> float:
        """Dollars a call with so many tokens can cost."""
        return input_tokens * self.per_input + output_tokens * self.per_output


FREE = Price(input=0.0, output=0.0)


def spent_by(usage: Usage, price: Price) -> Amount:
    return Amount(input=usage.input, output=usage.output, reasoning=usage.reasoning, usd=price.of(usage))
