"""A plan while it forms: the thought as it grows and each step's description as soon as it is whole."""

import json
import re
from dataclasses import dataclass, field

_THOUGHT = re.compile(r'"thought"\s*:\s*"((?:[^"\\]|\\.)*)')
_DESCRIPTION = re.compile(r'"description"\s*:\s*("(?:[^"\\]|\\.)*")')
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$|\\u[dD][89abAB][0-9a-fA-F]{2}$")


@dataclass(slots=True)
class PlanStream:
    """`feed` gives (what the thought has grown by, the descriptions of steps that have come)."""

    text: str = ""
    thought: str = ""
    steps: int = 0
    rewritten: bool = field(default=False)

    def feed(self, piece: str) -> tuple[str, list[str]]:
        """Hints: a provider that writes a thought anew is followed no further."""
        self.text += piece
        return self._grown(), self._described()

    def _grown(self) -> str:
        found = _THOUGHT.search(self.text)
        if found is None or self.rewritten:
            return ""
        now = _decoded(_HALF_ESCAPE.sub("", found[1]))
        if not now.startswith(self.thought):
            self.rewritten = True
            return ""
        grown, self.thought = now[len(self.thought) :], now
        return grown

    def _described(self) -> list[str]:
        whole = [_decoded(found[1:-1]) for found in _DESCRIPTION.findall(self.text)]
        new, self.steps = whole[self.steps :], len(whole)
        return new


def _decoded(body: str) -> str:
    try:
        return json.loads(f'"{body}"', strict=False)
    except ValueError:
        return body
