"""Token counts, normalised. Each chunk holds those of the whole call so far, or some of them."""

from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Usage

_COUNTS = (
    "promptTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "candidatesTokenCount",
    "thoughtsTokenCount",
)  # fmt: skip


class Counts:
    """The last number seen of each kind."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def take(self, reported: JsonObject) -> Usage | None:
        """The usage so far; None as long as no number has come."""
        for name in _COUNTS:
            value = reported.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                self._seen[name] = max(0, value)
        return self._usage() if self._seen else None

    def _usage(self) -> Usage:
        """Cached tokens are part of the prompt; thoughts stand beside the candidates, and the results of Google's own
        tools beside the prompt."""
        prompt, tools, cached, spoken, thought = (self._seen.get(name, 0) for name in _COUNTS)
        input_ = prompt + tools
        return Usage(input=input_, cached=min(cached, input_), output=spoken + thought, reasoning=thought)
