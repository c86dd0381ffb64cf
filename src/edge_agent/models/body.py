"""The body of an answer as JSON objects, whatever form the server chose: a stream of events, one JSON document, or
neither."""

import json
from typing import Any, Literal, cast

from edge_agent.core.errors import ModelError
from edge_agent.core.messages import JsonObject
from edge_agent.models.source import Source
from edge_agent.wire.sse import MAX_CHARS, Decoder, Frame

Form = Literal["events", "document", "html", "text"]
_HEAD = 200  # bytes kept of a body that is neither
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_BOM = b"\xef\xbb\xbf"


class Body:
    """Bytes in, objects out. The first character decides the form: content types are not to be relied on.

    whole: fields of which an answer in one document has at least one. text: the field that a document which is a mere
    string stands for; None: such a document is no answer. over: [DONE] has come; what follows is of no interest. Raises
    ModelError("bad-answer")."""

    def __init__(self, source: Source, *, whole: tuple[str, ...], text: str | None = None) -> None:
        self.over = False
        self._source, self._whole, self._text = source, (*whole, "error", "errors"), text
        self._form: Form | None = None
        self._events = Decoder()
        self._kept = bytearray()  # the document, or the head of what is none
        self._objects = 0

    def feed(self, chunk: bytes) -> list[JsonObject]:
        if self._form == "events":
            return self._read(self._events.feed(chunk))
        self._kept += chunk
        if self._form is None:
            self._form = _form(self._kept)
            if self._form == "events":
                chunk = bytes(self._kept)
                del self._kept[_HEAD:]
                return self._read(self._events.feed(chunk))
        if self._form != "document":
            del self._kept[_HEAD:]
        elif len(self._kept) > MAX_CHARS:
            raise self._bad(f"sent a document of more than {MAX_CHARS} bytes")
        return []

    def end(self) -> list[JsonObject]:
        """What is left when the connection has ended. Raises ModelError("truncated") for half a document."""
        if self._form == "document":
            return self._document()
        if self._form == "html":
            raise self._bad("answered with an HTML page")
        if self._form == "events":
            left = self._read(self._events.end(), last=True)
            if self._objects or self.over or bytes(self._kept).lstrip().startswith(_FIELDS):
                return left
        if self._form is None:
            raise cut(self._source, "sent nothing")
        raise self._bad(f"sent no events and no JSON{self._source.quoted(self._kept.decode('utf-8', 'replace'))}")

    def _read(self, frames: list[Frame], *, last: bool = False) -> list[JsonObject]:
        """`last`: the frame may be half; then it says nothing."""
        for number, frame in enumerate(frames):
            if frame.data.startswith("[DONE]"):
                self.over = True
                frames = frames[:number]
                break
        objects = _together(frames)
        if objects is None:
            objects = [one for frame in frames for one in self._one(frame, last=last)]
        self._objects += len(objects)
        return objects

    def _one(self, frame: Frame, *, last: bool) -> list[JsonObject]:
        try:
            return _objects(json.loads(frame.data), failed=frame.event == "error")
        except (ValueError, RecursionError):
            if last or not frame.data.strip():
                return []
            what = f"sent an event that is no JSON{self._source.quoted(frame.data)}"
            raise self._source.error("bad-answer", what, "Try again.", retryable=True) from None

    def _document(self) -> list[JsonObject]:
        try:
            value: Any = json.loads(self._kept.removeprefix(_BOM))
        except (ValueError, RecursionError):
            raise cut(self._source, "sent a JSON document that breaks off or is malformed") from None
        if isinstance(value, str) and self._text is not None:
            value = {self._text: value}
        objects = _objects(value, failed=False)
        if not any(name in one for one in objects for name in self._whole):
            raise self._bad("sent a JSON document that is no answer of a model")
        self.over = True
        return objects

    def _bad(self, what: str) -> ModelError:
        remedy = "The base URL likely is wrong: it often ends in /v1, Gemini's in /v1beta."
        return self._source.error("bad-answer", what, remedy, retryable=False)


def cut(source: Source, what: str) -> ModelError:
    """An answer that ended before its end."""
    return source.error("truncated", f"{what}: the answer was cut", "Try again.", retryable=True)


def _form(head: bytearray) -> Form | None:
    """What the first characters look like; None while there are none."""
    first = head.removeprefix(_BOM).lstrip()[:1]
    if not first or _BOM.startswith(head):
        return None
    if first in b'{["':
        return "document"
    if first.startswith(b"<"):
        return "html"
    return "events" if first in b":deir" else "text"


def _together(frames: list[Frame]) -> list[JsonObject] | None:
    """The objects of plain frames, decoded at one go: half the price. None where a frame needs a closer look."""
    try:
        values = json.loads(f"[{','.join([frame.data for frame in frames])}]")
    except (ValueError, RecursionError):
        return None
    plain = len(values) == len(frames) and all(type(value) is dict for value in values)
    return values if plain and not any(frame.event == "error" for frame in frames) else None


def _objects(value: Any, *, failed: bool) -> list[JsonObject]:
    """The objects of one event or document; Google's compatible endpoint puts an error into a list."""
    if isinstance(value, list):
        return [cast(JsonObject, one) for one in cast(list[Any], value) if isinstance(one, dict)]
    if failed and not (isinstance(value, dict) and "error" in value):
        return [{"error": value}]
    return [cast(JsonObject, value)] if isinstance(value, dict) else []
