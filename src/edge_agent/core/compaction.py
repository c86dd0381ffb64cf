"""How a run is kept within the context window of its models."""

from dataclasses import dataclass, fields

_LEAST_SUMMARY = 64  # tokens
_LEAST_RESULT = 1_000  # characters; less than that is a marker and nothing else


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What is shown in full, and from when on a summary stands for the rest. Tokens are estimated.

    auto: False summarises and clears nothing. threshold_ratio: the share of the context window a request may take, or
    threshold_tokens in its place. keep_recent_turns of the history, keep_recent_steps of a plan (and rounds of a run or
    step) stay as they were. summary_max_tokens: the output cap of a summary.
    max_tool_output_chars: characters of one result a model sees, head and tail; 0: all of them.
    clear_tool_results_after: when the rounds of a run or step take more than that share of the window, a line stands
    for each older result but for the newest keep_tool_results; 0: never.
    """

    auto: bool = True
    threshold_ratio: float = 0.85
    threshold_tokens: int | None = None
    keep_recent_turns: int = 4
    keep_recent_steps: int = 3
    summary_max_tokens: int = 1_024
    max_tool_output_chars: int = 20_000
    clear_tool_results_after: float = 0.25
    keep_tool_results: int = 3

    def __post_init__(self) -> None:
        """Raises ValueError naming the field, what it may be, and an example."""
        _require(self.auto in (True, False), "auto", "true or false", self.auto, "auto=False")
        ratio, share = self.threshold_ratio, self.clear_tool_results_after
        of_window = "a share of the context window, above 0 and at most 1"
        _require(_is_number(ratio) and 0 < ratio <= 1, "threshold_ratio", of_window, ratio, "threshold_ratio=0.85")
        of_window = "a share of the context window, at most 1, or 0 for never"
        example = "clear_tool_results_after=0.25"
        _require(_is_number(share) and 0 <= share <= 1, "clear_tool_results_after", of_window, share, example)
        for name in ("keep_recent_turns", "keep_recent_steps", "keep_tool_results"):
            kept = getattr(self, name)
            _require(_is_whole(kept) and kept >= 0, name, "a whole number from 0", kept, f"{name}=3")
        tokens, summary, seen = self.threshold_tokens, self.summary_max_tokens, self.max_tool_output_chars
        least = f"a whole number of tokens from {_LEAST_SUMMARY}"
        fits = tokens is None or (_is_whole(tokens) and tokens >= _LEAST_SUMMARY)
        _require(fits, "threshold_tokens", f"{least}, or absent", tokens, "threshold_tokens=100000")
        enough = _is_whole(summary) and summary >= _LEAST_SUMMARY
        _require(enough, "summary_max_tokens", least, summary, "summary_max_tokens=1024")
        readable = _is_whole(seen) and (seen == 0 or seen >= _LEAST_RESULT)
        least = f"a whole number of characters from {_LEAST_RESULT}, or 0 for all"
        _require(readable, "max_tool_output_chars", least, seen, "max_tool_output_chars=20000")

    def room(self, window: int, output: int) -> int:
        """Tokens a request may have before something is folded. `output`: what its answer may take; of that no more
        than a quarter of the window is left free."""
        most = int(self.threshold_ratio * window) if self.threshold_tokens is None else self.threshold_tokens
        return min(most, window - min(output, window // 4))


FIELDS = tuple(field.name for field in fields(Compaction))


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_whole(value) or isinstance(value, float)


def _require(fine: bool, name: str, kind: str, got: object, example: str) -> None:  # noqa: FBT001 - a condition
    if not fine:
        raise ValueError(f"compaction.{name} must be {kind}; got {got!r}. Example: Compaction({example})")
