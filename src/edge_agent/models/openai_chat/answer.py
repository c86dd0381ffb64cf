"""The pure half of a call: bytes of a chat completion in, neutral events out."""

from collections.abc import Callable
from typing import Any, cast

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, OpaquePart
from edge_agent.core.model import Finished, ModelEvent, Opaque
from edge_agent.core.usage import Usage
from edge_agent.models.accumulator import Accumulator
from edge_agent.models.body import Body, cut
from edge_agent.models.failures import failed_inside
from edge_agent.models.json_fields import object_in, objects_in
from edge_agent.models.openai_chat.replay import Replay
from edge_agent.models.openai_chat.tool_calls import ToolCalls
from edge_agent.models.openai_chat.usage import read_usage
from edge_agent.models.source import Source

_FINISHED: dict[str, FinishReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "filtered",
}


class ChatAnswer(Accumulator):
    """One answer. Feed it what arrives; `end` when the connection has ended or `over` says that nothing more will come.

    Text and reasoning go out with each read, tool calls at the end only: a call of an unfinished answer must never run.
    Raises ModelError for errors inside the answer, and from `end` for one that was cut.

    model: who alone gets back what is replayed; None: any model of the provider. replayed, in_tags: what that is: see
    Profile. whole, text: see Body.
    translate: makes a chunk or an answer of another form one of this form."""

    def __init__(
        self,
        source: Source,
        *,
        provider: str,
        model: str | None = None,
        replayed: tuple[str, ...] = (),
        in_tags: bool = False,
        whole: tuple[str, ...] = ("choices",),
        text: str | None = None,
        translate: Callable[[JsonObject], JsonObject] | None = None,
    ) -> None:
        super().__init__(Body(source, whole=whole, text=text))
        self._source, self._provider, self._model, self._translate = source, provider, model, translate
        self._calls = ToolCalls()
        self._replayed, self._in_tags, self._replay = frozenset(replayed), in_tags, Replay()
        self._refused = False

    def end(self) -> list[ModelEvent]:
        """The rest of a whole answer, `Finished` last."""
        self._take_rest()
        if self._reason is None and not self._body.over:
            raise cut(self._source, "stopped without a finish reason")
        events = self._with_usage(self._deltas.end())
        if data := {**self._replay.data(), **({"calls": extras} if (extras := self._calls.extras()) else {})}:
            events.append(Opaque(part=OpaquePart(provider=self._provider, data=data, model=self._model)))
        return [*events, *self._calls.whole(), Finished(reason=self._finish_reason())]

    def _finish_reason(self) -> FinishReason:
        """Tool calls win over "stop": the loop follows them. A cut and a filter win over tool calls."""
        if self._refused:
            return "filtered"
        if self._reason in ("length", "filtered"):
            return self._reason
        return "tool-calls" if self._calls else self._reason if self._reason == "other" else "stop"

    def _growth(self) -> str:
        return self._calls.growth()

    def _take(self, payload: JsonObject) -> None:
        if self._translate is not None:
            payload = self._translate(payload)
        usage = payload.get("usage") or ("x_groq" in payload and object_in(payload, "x_groq").get("usage"))
        if isinstance(usage, dict):
            self._usage = read_usage(cast(JsonObject, usage), self._usage or Usage())
        if error := payload.get("error") or payload.get("errors"):
            raise failed_inside(self._source, error)
        for choice in objects_in(payload, "choices"):
            self._choice(choice)

    def _choice(self, choice: JsonObject) -> None:
        if choice.get("index"):
            return  # another answer to the same question; none was asked for
        if error := choice.get("error"):
            raise failed_inside(self._source, error)
        delta: Any = choice.get("delta" if "delta" in choice else "message")
        if isinstance(delta, dict):
            self._delta(cast(JsonObject, delta))
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            self._finish(reason)

    def _delta(self, delta: JsonObject) -> None:
        """By the fields that are there: a delta mostly is a word of content, and there are thousands."""
        if thought := delta.get("reasoning_content") or delta.get("reasoning"):
            self._reasoning(thought)  # first, wherever it stands: the model thought before it spoke
        for name, value in delta.items():
            if value is None or value == "":
                continue
            if name in self._replayed:
                self._replay.take(name, value)
            if name == "content":
                self._content(value)
            elif name == "tool_calls":
                self._calls.take(value)
            elif name == "refusal" and isinstance(value, str):
                self._refused = True
                self._deltas.text(value)

    def _finish(self, reason: str) -> None:
        if reason == "error":
            raise failed_inside(self._source, {"message": "finish_reason is error"})
        if self._reason not in ("length", "filtered"):  # a server may send several; a cut is never taken back
            self._reason = _FINISHED.get(reason, "other")

    def _content(self, content: Any) -> None:
        """Text; or a number (Workers AI); or a list of parts (Mistral)."""
        if isinstance(content, str):
            self._deltas.text(content)
        elif isinstance(content, list):
            for part in cast(list[Any], content):
                self._part(part)
        elif isinstance(content, int | float) and not isinstance(content, bool):
            self._deltas.text(str(content))

    def _part(self, part: Any) -> None:
        if not isinstance(part, dict):
            self._content(part if isinstance(part, str) else None)
            return
        fields = cast(JsonObject, part)
        if fields.get("type") == "thinking":
            self._reasoning(fields.get("thinking"))
        else:
            self._content(fields.get("text"))

    def _reasoning(self, thought: Any) -> None:
        if isinstance(thought, str):
            self._deltas.reasoning(thought)
            if self._in_tags:
                self._replay.think(thought)
        for part in cast(list[Any], thought) if isinstance(thought, list) else []:
            self._reasoning(cast(JsonObject, part).get("text") if isinstance(part, dict) else part)
