"""The pure half of a call: bytes of generateContent in, neutral events out."""

from typing import Any, cast

from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, OpaquePart
from edge_agent.core.model import Finished, ModelEvent, Opaque
from edge_agent.models.accumulator import Accumulator
from edge_agent.models.body import Body, cut
from edge_agent.models.failures import failed_inside
from edge_agent.models.google.calls import BadCall, Calls
from edge_agent.models.google.order import SIGNATURE, Order
from edge_agent.models.google.usage import Counts
from edge_agent.models.json_fields import object_in, objects_in
from edge_agent.models.source import Source

_FINISHED: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
}
_BAD_CALL = "malformed_function_call"
_FAULTS = {  # as codes of errors
    "MALFORMED_FUNCTION_CALL": _BAD_CALL,
    "UNEXPECTED_TOOL_CALL": _BAD_CALL,
    "TOO_MANY_TOOL_CALLS": _BAD_CALL,
    "MALFORMED_RESPONSE": _BAD_CALL,
    "MISSING_THOUGHT_SIGNATURE": "400",
}


class GeminiAnswer(Accumulator):
    """Implements Answer. What makes an answer worthless is told at its end: its usage, in the same chunk, counts."""

    def __init__(self, source: Source, *, provider: str, model: str) -> None:
        super().__init__(Body(source, whole=("candidates", "promptFeedback")))
        self._source, self._provider, self._model = source, provider, model
        self._calls, self._order, self._counts = Calls(), Order(), Counts()
        self._fault: ModelError | None = None

    @property
    def finished(self) -> bool:
        return super().finished or self._fault is not None

    def end(self) -> list[ModelEvent]:
        self._take_rest()
        if self._fault is not None:
            raise self._fault
        if self._reason is None:
            raise cut(self._source, "stopped without a finish reason")
        events = self._with_usage(self._deltas.end())
        if data := self._order.data():
            events.append(Opaque(part=OpaquePart(provider=self._provider, model=self._model, data=data)))
        calls = self._whole_calls(self._reason)
        reason = "tool-calls" if calls and self._reason in ("stop", "other") else self._reason
        return [*events, *calls, Finished(reason=reason)]

    def _whole_calls(self, reason: FinishReason) -> list[ModelEvent]:
        try:
            return [*self._calls.whole(cut=reason == "length")]
        except BadCall as fault:
            raise self._failed(_BAD_CALL, str(fault)) from None

    def _growth(self) -> str:
        return self._calls.growth()

    def _take(self, payload: JsonObject) -> None:
        if usage := object_in(payload, "usageMetadata"):
            self._usage = self._counts.take(usage)
        if error := payload.get("error") or payload.get("errors"):
            raise failed_inside(self._source, error)
        if reason := object_in(payload, "promptFeedback").get("blockReason"):
            what = f"did not take the prompt: its filter says {reason}"
            self._fault = self._source.error("refused", what, "Change the request.", retryable=False)
        for candidate in objects_in(payload, "candidates"):
            self._candidate(candidate)

    def _candidate(self, candidate: JsonObject) -> None:
        if candidate.get("index"):
            return  # another answer to the same question; none was asked for
        for part in objects_in(object_in(candidate, "content"), "parts"):
            self._part(part)
        reason = candidate.get("finishReason")
        if isinstance(reason, str) and reason not in ("", "FINISH_REASON_UNSPECIFIED"):
            self._finish(reason, candidate.get("finishMessage"))

    def _part(self, part: JsonObject) -> None:
        signature = {SIGNATURE: part[SIGNATURE]} if part.get(SIGNATURE) else {}
        call, text = part.get("functionCall"), part.get("text")
        if isinstance(call, dict):
            self._call(cast(JsonObject, call), signature)
        elif not isinstance(text, str):
            self._order.other(part)
        elif not part.get("thought"):
            self._deltas.text(text)
            self._order.text(text, signature)
        else:
            self._deltas.reasoning(text)
            if signature:
                self._order.other(part)

    def _call(self, call: JsonObject, signature: JsonObject) -> None:
        try:
            begins = self._calls.take(call)
        except BadCall as fault:
            raise self._failed(_BAD_CALL, str(fault)) from None
        if begins:
            self._order.call(signature)

    def _finish(self, reason: str, message: Any) -> None:
        if code := _FAULTS.get(reason):
            self._fault = self._failed(code, message if isinstance(message, str) else reason)
        elif self._reason not in ("length", "filtered"):  # several may come; a cut is never taken back
            self._reason = _FINISHED.get(reason, "other")

    def _failed(self, code: str, words: str) -> ModelError:
        return failed_inside(self._source, {"code": code, "message": words})
