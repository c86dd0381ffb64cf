"""Text and reasoning on their way out: in order, several of one read as one, and never half a surrogate pair."""

from itertools import groupby
from operator import itemgetter

from edge_agent.core.model import ModelEvent, ReasoningDelta, TextDelta

Kind = type[TextDelta] | type[ReasoningDelta]
LONE = "\ufffd"  # what stands for half a surrogate pair


class Deltas:
    """Providers cut where they like, also between the two escapes of an emoji. A lone half could be sent to nobody:
    the first half waits for the next piece, and what stays alone becomes U+FFFD."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Kind, str]] = []
        self._held: dict[Kind, str] = {}

    def text(self, piece: str) -> None:
        if piece:
            self._pieces.append((TextDelta, piece))

    def reasoning(self, piece: str) -> None:
        if piece:
            self._pieces.append((ReasoningDelta, piece))

    def drain(self) -> list[ModelEvent]:
        """What can be said now."""
        events: list[ModelEvent] = []
        for kind, pieces in groupby(self._pieces, key=itemgetter(0)):
            if said := self._whole(kind, "".join(piece for _, piece in pieces)):
                events.append(kind(text=said))
        self._pieces.clear()
        return events

    def end(self) -> list[ModelEvent]:
        """The rest, when nothing more will come."""
        events = self.drain()
        events += [kind(text=LONE) for kind, held in self._held.items() if held]
        self._held.clear()
        return events

    def _whole(self, kind: Kind, text: str) -> str:
        held = self._held.pop(kind, "")
        if not held and (text.isascii() or encodable(text)):
            return text
        text = held + text
        if "\ud800" <= text[-1] <= "\udbff":
            self._held[kind], text = text[-1], text[:-1]
        return mended(text)


def encodable(text: str) -> bool:
    """Whether the text holds no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mended(text: str) -> str:
    """Surrogate pairs joined, lone halves replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
