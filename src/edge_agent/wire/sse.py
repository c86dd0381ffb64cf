"""Server-sent events, both ways and without I/O: bytes in, frames out, and the text of a frame of our own.

The format is the one of the HTML standard (field lines, ended by CR, LF or CRLF; a blank line ends a frame), with one
addition: `Decoder.end` gives the last frame of a server that forgets its blank line.
"""

import codecs
import re
from dataclasses import dataclass

MAX_CHARS = 16 * 1024 * 1024
_LINE_END = re.compile("\r\n|\n|\r")
_DIGITS = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Frame:
    """`data`: its lines joined by line feeds. `event` None: the server named none. `id`: the last one seen, also in an
    earlier frame."""

    data: str
    event: str | None = None
    id: str | None = None


class Decoder:
    """Takes a stream in pieces cut anywhere, also inside a character or a CRLF.

    `retry`: milliseconds to wait before a reconnect, as the server asked last. `last_id`: what a reconnect sends as
    Last-Event-ID. Raises ValueError when one frame grows beyond `max_chars` characters.
    """

    def __init__(self, max_chars: int = MAX_CHARS) -> None:
        self.retry: int | None = None
        self.last_id: str | None = None
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._max_chars = max_chars
        self._started = False
        self._after_cr = False
        self._line: list[str] = []  # the pieces of a line whose end has not come
        self._data: list[str] = []
        self._event: str | None = None
        self._waiting = 0  # characters of that line
        self._chars = 0  # of the data of the frame being read

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this piece completes, in order."""
        text = self._text(chunk)
        if not text:
            return []
        if "\n" not in text:
            self._wait_for_rest(text)
            return []
        lines = text.split("\n")
        if self._line:
            lines[0] = "".join(self._line) + lines[0]
            self._line.clear()
            self._waiting = 0
        rest = lines.pop()
        frames = self._take(lines)
        if rest:
            self._wait_for_rest(rest)
        return frames

    def end(self) -> list[Frame]:
        """What is left when the connection has ended: the last frame, if its blank line is missing. It may have been
        cut."""
        lines = [*("".join(self._line).split("\n") if self._line else ()), ""]
        self._line.clear()
        return self._take(lines)

    def _text(self, chunk: bytes) -> str:
        """The piece as text whose lines end by a line feed."""
        text = self._utf8.decode(chunk)
        if not self._started and text:
            self._started = True
            text = text.removeprefix("\ufeff")
        if self._after_cr and text:
            self._after_cr = False
            text = text.removeprefix("\n")
        if "\r" in text:
            # A CR ends its line at once: waiting for an LF that may belong to it would hold back a whole frame.
            self._after_cr = text.endswith("\r")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text

    def _take(self, lines: list[str]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if not line:
                if self._data:
                    frames.append(Frame("\n".join(self._data), self._event, self.last_id))
                    self._data = []
                self._event = None
                self._chars = 0
            elif line.startswith("data:"):
                self._add(line[6:] if line.startswith(" ", 5) else line[5:])
            else:
                self._field(line)
        return frames

    def _add(self, data: str) -> None:
        self._data.append(data)
        self._chars += len(data)
        self._check_size()

    def _wait_for_rest(self, text: str) -> None:
        self._line.append(text)
        self._waiting += len(text)
        self._check_size()

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._add(value)
        elif name == "event":
            self._event = value or None
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and _DIGITS.fullmatch(value):
            self.retry = int(value)

    def _check_size(self) -> None:
        if self._chars + self._waiting > self._max_chars:
            raise ValueError(f"a server-sent event is longer than {self._max_chars} characters")


def encode(event: str | None, data: str, id: str | None = None) -> str:  # noqa: A002 (the field's name)
    """One frame, its blank line included. Line ends inside `data` arrive as line feeds.

    Raises ValueError for an event or id that holds a line end or NUL: it would begin a field of its own."""
    for value in (event, id):
        if value is not None and ("\n" in value or "\r" in value or "\0" in value):
            raise ValueError(f"{value!r} cannot be the event or the id of a frame: it holds a line end or NUL")
    head = ("" if id is None else f"id: {id}\n") + ("" if event is None else f"event: {event}\n")
    if "\n" not in data and "\r" not in data:
        return f"{head}data: {data}\n\n"
    return head + "".join(f"data: {line}\n" for line in _LINE_END.split(data)) + "\n"
