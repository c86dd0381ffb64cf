"""The pure half of a call: bytes of a message in, neutral events out."""

from collections.abc import Mapping
from typing import Any, cast

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, OpaquePart
from edge_agent.core.model import CallGrew, Finished, ModelEvent, Opaque, UsageSeen
from edge_agent.core.usage import Usage
from edge_agent.models.anthropic.blocks import Blocks
from edge_agent.models.anthropic.layout import data_of
from edge_agent.models.anthropic.usage import Counts
from edge_agent.models.body import Body, cut
from edge_agent.models.deltas import Deltas
from edge_agent.models.failures import failed_inside
from edge_agent.models.source import Source

_FINISHED: Mapping[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",  # whether there are calls is seen from the calls
    "max_tokens": "length",
    "refusal": "filtered",
    "pause_turn": "paused",
}
_OVERFLOW = "model_context_window_exceeded"


class MessagesAnswer:
    """Implements Answer. `model`: the name it was asked by, for what only that model understands. `answer_tool`: the
    tool whose input is the answer's text."""

    def __init__(self, source: Source, *, provider: str, model: str, answer_tool: str | None = None) -> None:
        self._source, self._provider, self._model = source, provider, model
        self._body = Body(source, whole=("content",))
        self._deltas = Deltas()
        self._blocks = Blocks(self._deltas, answer_tool)
        self._counts = Counts()
        self._told: Usage | None = None  # the usage that went out last
        self._reason: FinishReason | None = None
        self._explained = ""  # why it was refused
        self._stopped = False

    @property
    def over(self) -> bool:
        return self._stopped or self._body.over

    @property
    def finished(self) -> bool:
        return self._reason is not None

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        for payload in self._body.feed(chunk):
            self._take(payload)
        events = self._deltas.drain()
        if grown := self._blocks.growth():
            events.append(CallGrew(text=grown))
        return self._said(events)

    def end(self) -> list[ModelEvent]:
        for payload in self._body.end():
            self._take(payload)
        if self._reason is None and not self.over:
            raise cut(self._source, "stopped without a stop reason")
        self._blocks.end()
        if self._explained and not self._blocks.spoke:
            self._deltas.text(self._explained)
        events = self._said(self._deltas.end())
        if data := data_of(self._blocks.layout()):
            events.append(Opaque(part=OpaquePart(provider=self._provider, model=self._model, data=data)))
        reason = self._reason or "stop"
        calls = [] if reason == "filtered" else self._blocks.calls()
        return [*events, *calls, Finished(reason="tool-calls" if calls and reason != "length" else reason)]

    def _said(self, events: list[ModelEvent]) -> list[ModelEvent]:
        usage = self._counts.usage()
        if usage is not None and usage != self._told:
            self._told = usage
            events.append(UsageSeen(usage=usage))
        return events

    def _take(self, payload: JsonObject) -> None:
        """One event, or a whole message. What is not known is passed over."""
        if error := payload.get("error") or payload.get("errors"):
            raise failed_inside(self._source, error)
        match payload.get("type"):
            case "content_block_delta":
                self._blocks.delta(payload.get("index"), _of(payload, "delta"))
            case "content_block_start":
                self._blocks.start(payload.get("index"), payload.get("content_block"))
            case "content_block_stop":
                self._blocks.stop(payload.get("index"))
            case "message_start":  # may come twice
                self._counts.take(_of(payload, "message").get("usage"))
            case "message_delta":
                self._counts.take(payload.get("usage"))
                self._stop(_of(payload, "delta"))
            case "message_stop":
                self._stopped = True
            case "message":
                self._message(payload)
            case _:
                pass

    def _message(self, message: JsonObject) -> None:
        self._counts.take(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(cast(list[Any], content) if isinstance(content, list) else []):
            self._blocks.start(index, block)
            self._blocks.stop(index)
        self._stop(message)

    def _stop(self, told: JsonObject) -> None:
        reason = told.get("stop_reason")
        if not isinstance(reason, str):
            return
        if reason == _OVERFLOW:
            raise failed_inside(self._source, {"message": f"the context window is full ({_OVERFLOW})"})
        self._reason = _FINISHED.get(reason, "other")
        explanation = _of(told, "stop_details").get("explanation")
        self._explained = explanation if isinstance(explanation, str) else ""


def _of(fields: JsonObject, name: str) -> JsonObject:
    value = fields.get(name)
    return cast(JsonObject, value) if isinstance(value, dict) else {}
