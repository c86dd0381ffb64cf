"""Text and reasoning on their way out: in order, several of one read as one, and never half a surrogate pair."""

from edge_agent.core.model import ModelEvent, ReasoningDelta, TextDelta


class Deltas:
    """Providers cut where they like, also between the two escapes of an emoji. A lone half could be sent to nobody:
    the first half waits for the next piece, and what stays alone becomes U+FFFD."""

    def __init__(self) -> None:
        self._pieces: list[tuple[bool, str]] = []  # (whether it is reasoning, text)
        self._held = {False: "", True: ""}

    def text(self, piece: str) -> None:
        if piece:
            self._pieces.append((False, piece))

    def reasoning(self, piece: str) -> None:
        if piece:
            self._pieces.append((True, piece))

    def drain(self) -> list[ModelEvent]:
        """What can be said now."""
        events: list[ModelEvent] = []
        start = 0
        while start < len(self._pieces):
            thinks, stop = self._pieces[start][0], start + 1
            while stop < len(self._pieces) and self._pieces[stop][0] is thinks:
                stop += 1
            said = self._whole(thinks, "".join(piece for _, piece in self._pieces[start:stop]))
            if said:
                events.append(ReasoningDelta(text=said) if thinks else TextDelta(text=said))
            start = stop
        self._pieces.clear()
        return events

    def end(self) -> list[ModelEvent]:
        """The rest, when nothing more will come."""
        events = self.drain()
        if self._held[True]:
            events.append(ReasoningDelta(text="\ufffd"))
        if self._held[False]:
            events.append(TextDelta(text="\ufffd"))
        self._held = {False: "", True: ""}
        return events

    def _whole(self, thinks: bool, text: str) -> str:
        held = self._held[thinks]
        if not held and (text.isascii() or encodable(text)):
            return text
        text = held + text
        self._held[thinks] = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return mended(text[:-1] if self._held[thinks] else text)


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
