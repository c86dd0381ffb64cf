"""Text that comes in pieces and is shown as it comes: no piece shows half a character or a part of a secret."""

from collections.abc import Callable, Sequence

from edge_agent.core.strings import well_formed


class Streamed:
    """Shows each piece as soon as it can be shown. What was shown, joined, is the whole text, cleaned."""

    def __init__(self, secrets: Sequence[str], clean: Callable[[str], str]) -> None:
        self._secrets, self._clean = secrets, clean
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._held + piece
        cut = len(text) - self._unclear(text)
        self._held = text[cut:]
        return self._clean(well_formed(text[:cut]))

    def rest(self) -> str:
        """What was held back, when nothing more comes."""
        text, self._held = self._held, ""
        return self._clean(well_formed(text))

    def _unclear(self, text: str) -> int:
        """How many characters at the end may be the first half of a character, or the beginning of a secret."""
        half = 1 if "\ud800" <= text[-1:] <= "\udbff" else 0
        return max([half, *(_begun(secret, text) for secret in self._secrets)])


def _begun(secret: str, text: str) -> int:
    """The length of the longest proper beginning of the secret that the text ends with."""
    most = min(len(secret) - 1, len(text))
    return next((size for size in range(most, 0, -1) if text.endswith(secret[:size])), 0)
