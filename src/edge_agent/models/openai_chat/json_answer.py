"""JSON tool mode, the answering half: {"tool", "arguments"} becomes an ordinary tool call, the text of {"answer"} is
streamed."""

import json
import re
from collections.abc import Collection
from typing import Any, cast

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import CalledTool, CallGrew, Finished, ModelEvent, TextDelta
from edge_agent.models.deltas import Deltas
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.source import Source

_ANSWER_BEGINS = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_TOOL = re.compile(r'"(?:tool|name)"\s*:\s*"([^"\\]*)"')
_FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*(?:```)?\s*", re.DOTALL)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_STRING = re.compile(r'(?:[^"\\]+|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')


class JsonToolAnswer:
    """Wraps the answer of a model that was asked by json_tools.py; the same two calls.

    A server that does not keep to the constraint is understood where it can be: plain text is the answer, a fenced
    block is opened, {"name", "arguments"} is a call too. Raises ModelError("bad-answer") for JSON that is neither."""

    def __init__(self, answer: ChatAnswer, source: Source, tools: Collection[str]) -> None:
        self._answer, self._source, self._tools = answer, source, tools
        self._written = ""  # until it is known what it is; a call stays here whole
        self._string: JsonString | None = None  # the answer, once it has begun
        self._plain = False
        self._deltas = Deltas()

    @property
    def over(self) -> bool:
        return self._answer.over

    @property
    def finished(self) -> bool:
        return self._answer.finished

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        return self._read(self._answer.feed(chunk))

    def end(self) -> list[ModelEvent]:
        return self._read(self._answer.end())

    def _read(self, events: list[ModelEvent]) -> list[ModelEvent]:
        read: list[ModelEvent] = []
        for event in events:
            if isinstance(event, TextDelta):
                self._text(event.text)
                if self._string is None and not self._plain:
                    read.append(CallGrew(text=event.text))
                read += self._deltas.drain()
            elif isinstance(event, Finished):
                read += self._end(event.reason)
            else:
                read.append(event)
        return read

    def _text(self, text: str) -> None:
        if self._plain:
            self._deltas.text(text)
        elif self._string is not None:
            self._deltas.text(self._string.feed(text))
        else:
            self._written += text
            if begins := _ANSWER_BEGINS.match(self._written):
                self._string = JsonString()
                self._deltas.text(self._string.feed(self._written[begins.end() :]))
            elif self._written.strip() and self._written.lstrip()[0] not in "{`":
                self._plain = True
                self._deltas.text(self._written)

    def _end(self, reason: FinishReason) -> list[ModelEvent]:
        if self._plain or self._string is not None or not self._written.strip():
            return [*self._deltas.end(), Finished(reason=reason)]
        found = _object(self._written)
        if found is None:
            return self._broken(reason)
        if isinstance(answer := found.get("answer"), str):
            self._deltas.text(answer)
            return [*self._deltas.end(), Finished(reason=reason)]
        name, arguments = found.get("tool", found.get("name")), found.get("arguments", found.get("parameters", {}))
        if not isinstance(name, str) or ("tool" not in found and name not in self._tools):
            return self._broken(reason)
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return [CalledTool(name=name, arguments=text), Finished(reason="tool-calls" if reason == "stop" else reason)]

    def _broken(self, reason: FinishReason) -> list[ModelEvent]:
        """A call that the output cap cut is told as one, so that the loop can say so; it never runs."""
        name = _TOOL.search(self._written)
        if reason == "length":
            return [CalledTool(name=name[1] if name else "", arguments=self._written), Finished(reason=reason)]
        raise self._source.error(
            "bad-answer",
            f"was asked for a tool call or an answer and wrote something else{self._source.quoted(self._written)}",
            "Try again; if it keeps happening, the server may not support response_format json_schema.",
            retryable=True,
        )


class JsonString:
    """Decodes the inside of a JSON string while it is being written. What follows its closing quote is ignored."""

    def __init__(self) -> None:
        self._held = ""
        self._closed = False

    def feed(self, text: str) -> str:
        """The characters that are certain now; half an escape is held back."""
        if self._closed:
            return ""
        raw, decoded = self._held + text, ""
        while True:
            whole = _STRING.match(raw)
            stop = whole.end() if whole else 0
            decoded += cast(str, json.loads(f'"{raw[:stop]}"', strict=False))
            raw = raw[stop:]
            if raw.startswith("\\") and not _half(raw):
                decoded, raw = decoded + raw[:2], raw[2:]  # no escape of JSON's: taken as it stands
                continue
            self._closed = raw.startswith('"')
            self._held = "" if self._closed else raw
            return decoded


def _half(raw: str) -> bool:
    """Whether a backslash may still become an escape."""
    return bool(_HALF_ESCAPE.fullmatch(raw))


def _object(text: str) -> JsonObject | None:
    fenced = _FENCE.fullmatch(text)
    try:
        value: Any = json.loads(fenced[1] if fenced and "`" in text[:20] else text)
    except (ValueError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None
