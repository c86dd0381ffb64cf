"""The pure half of a call: bytes of a message in, neutral events out."""

from collections.abc import Mapping

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, OpaquePart
from edge_agent.core.model import Finished, ModelEvent, Opaque
from edge_agent.models.accumulator import Accumulator
from edge_agent.models.anthropic.blocks import Blocks
from edge_agent.models.anthropic.layout import data_of
from edge_agent.models.anthropic.usage import Counts
from edge_agent.models.body import Body, cut
from edge_agent.models.failures import failed_inside
from edge_agent.models.json_fields import list_in, object_in
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


class MessagesAnswer(Accumulator):
    """Implements Answer. `model`: the name it was asked by, for what only that model understands. `answer_tool`: the
    tool whose input is the answer's text."""

    def __init__(self, source: Source, *, provider: str, model: str, answer_tool: str | None = None) -> None:
        super().__init__(Body(source, whole=("content",)))
        self._source, self._provider, self._model = source, provider, model
        self._blocks = Blocks(self._deltas, answer_tool)
        self._counts = Counts()
        self._explained = ""  # why it was refused
        self._stopped = False

    @property
    def over(self) -> bool:
        return self._stopped or self._body.over

    def end(self) -> list[ModelEvent]:
        self._take_rest()
        if self._reason is None and not self.over:
            raise cut(self._source, "stopped without a stop reason")
        self._blocks.end()
        if self._explained and not self._blocks.spoke:
            self._deltas.text(self._explained)
        events = self._with_usage(self._deltas.end())
        if data := data_of(self._blocks.layout()):
            events.append(Opaque(part=OpaquePart(provider=self._provider, model=self._model, data=data)))
        reason = self._reason or "stop"
        calls = [] if reason == "filtered" else self._blocks.calls()
        return [*events, *calls, Finished(reason="tool-calls" if calls and reason != "length" else reason)]

    def _growth(self) -> str:
        return self._blocks.growth()

    def _take(self, payload: JsonObject) -> None:
        """One event, or a whole message. What is not known is passed over."""
        if error := payload.get("error") or payload.get("errors"):
            raise failed_inside(self._source, error)
        match payload.get("type"):
            case "content_block_delta":
                self._blocks.delta(payload.get("index"), object_in(payload, "delta"))
            case "content_block_start":
                self._blocks.start(payload.get("index"), payload.get("content_block"))
            case "content_block_stop":
                self._blocks.stop(payload.get("index"))
            case "message_start":  # may come twice
                self._count(object_in(payload, "message"))
            case "message_delta":
                self._count(payload)
                self._stop(object_in(payload, "delta"))
            case "message_stop":
                self._stopped = True
            case "message":
                self._message(payload)
            case _:
                pass

    def _message(self, message: JsonObject) -> None:
        self._count(message)
        for index, block in enumerate(list_in(message, "content")):
            self._blocks.start(index, block)
            self._blocks.stop(index)
        self._stop(message)

    def _count(self, told: JsonObject) -> None:
        self._counts.take(told.get("usage"))
        self._usage = self._counts.usage()

    def _stop(self, told: JsonObject) -> None:
        reason = told.get("stop_reason")
        if not isinstance(reason, str):
            return
        if reason == _OVERFLOW:
            raise failed_inside(self._source, {"message": f"the context window is full ({_OVERFLOW})"})
        self._reason = _FINISHED.get(reason, "other")
        explanation = object_in(told, "stop_details").get("explanation")
        self._explained = explanation if isinstance(explanation, str) else ""
