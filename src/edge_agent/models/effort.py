"""What a level of thinking is worth in tokens, for wires that know only one of the two."""

from collections.abc import Mapping, Sequence

from edge_agent.core.model import Effort, Thinking

# Those of Google's OpenAI-compatible endpoint, and one step more at either end.
TOKENS: Mapping[Effort, int] = {
    "none": 0, "minimal": 512, "low": 1_024, "medium": 8_192, "high": 24_576, "xhigh": 32_768,
}  # fmt: skip


def nearest(levels: Sequence[Effort], wanted: Thinking) -> Effort:
    """The lowest of these levels, given lowest first, that is worth what is wanted; else the highest."""
    tokens = TOKENS[wanted] if isinstance(wanted, str) else wanted
    enough: list[Effort] = [level for level in levels if TOKENS[level] >= tokens]
    return enough[0] if enough else levels[-1]
