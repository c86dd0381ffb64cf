"""Token counts of an answer, normalised."""

from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.core.usage import Usage
from edge_agent.models.json_fields import count_in, object_in


class Counts:
    """What was reported so far. Reports are cumulative: each field that comes again replaces what it said before."""

    def __init__(self) -> None:
        self._reported: JsonObject = {}

    def take(self, reported: Any) -> None:
        if isinstance(reported, dict):
            fields = cast(JsonObject, reported)
            self._reported |= {name: value for name, value in fields.items() if value is not None}

    def usage(self) -> Usage | None:
        """None while nothing was reported. `input_tokens` counts only what no cache had a part in."""
        if not self._reported:
            return None
        cached, written = self._count("cache_read_input_tokens"), self._count("cache_creation_input_tokens")
        output = self._count("output_tokens")
        return Usage(
            input=self._count("input_tokens") + cached + written,
            cached=cached,
            cache_write=written,
            output=output,
            reasoning=min(self._thinking(), output),
        )

    def _thinking(self) -> int:
        return count_in(object_in(self._reported, "output_tokens_details"), "thinking_tokens") or 0

    def _count(self, name: str) -> int:
        return count_in(self._reported, name) or 0
