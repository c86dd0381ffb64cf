"""A model for the proof that no run spends more than its cap: it counts with a real tokenizer what it got and sent."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from edge_agent.core.canonical import canonical
from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.limits import Limits
from edge_agent.core.messages import AssistantMessage, JsonObject
from edge_agent.core.model import CalledTool, Finished, ModelEvent, ModelRequest, ReasoningDelta, TextDelta, UsageSeen
from edge_agent.core.price import Price
from edge_agent.core.usage import Usage
from tests.tokenizer import beginning, count

PRICE = Price(input=2.5, cached=0.25, output=10.0)
Reports = Literal["all", "nothing", "too little", "at first"]
Words = Sequence[str]
CAPPED = ("max_total_tokens", "max_input_tokens", "max_output_tokens", "max_reasoning_tokens", "max_cost_usd")
PIECE = 24  # characters of a delta, and never more tokens than that
AROUND = 4  # tokens a provider writes around each message and tool


@dataclass(slots=True, kw_only=True)
class CountingModel:
    """Implements the Model port.

    honours: whether it keeps to the output cap of a request. reports: what it says of its usage. at_once: calls of one
    answer, at most. busy: the share of its answers that have calls. `input` and `output` are what it counted, over all
    attempts, also those that failed, were cut off or abandoned.
    """

    chance: random.Random
    words: Words
    honours: bool = True
    reports: Reports = "all"
    faulty: float = 0.0
    talkative: int = 400
    at_once: int = 1
    busy: float = 0.75
    name: str = "counting"
    provider: str = "test"
    force_text_after_tool: bool = False
    input: int = 0
    output: int = 0
    reasoning: int = 0
    calls: int = 0
    caps: list[int] = field(default_factory=list[int])

    @property
    def dollars(self) -> float:
        return PRICE.of(Usage(input=self.input, output=self.output))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.calls += 1
        fault = self.chance.random() < self.faulty
        if fault and self.chance.random() < 0.4:  # turned down at the door: nothing is counted
            raise self.chance.choice(REFUSALS)
        got = counted_input(request)
        self.input += got
        if fault and self.chance.random() < 0.3:  # accepted, counted, and nothing came of it
            raise ModelError("unavailable", "503", retryable=True)
        breaks_off = fault and self.chance.random() < 0.8
        if self.reports == "at first":
            yield UsageSeen(usage=Usage(input=got, output=1))
        before, thought = self.output, self.reasoning
        reason: FinishReason = "stop"
        async for event in self._say(request, breaks_off=breaks_off):
            if isinstance(event, Finished):
                reason = event.reason
            else:
                yield event
        if breaks_off:
            raise ModelError("truncated", "the connection broke", retryable=True)
        if (usage := self._reported(got, self.output - before, self.reasoning - thought)) is not None:
            yield UsageSeen(usage=usage)
        yield Finished(reason=reason)

    def _reported(self, got: int, sent: int, thought: int) -> Usage | None:
        if self.reports == "nothing":
            return None
        if self.reports == "too little":
            share = self.chance.uniform(0, 0.4)
            return Usage(input=int(got * share), output=int(sent * share))
        return Usage(input=got, output=sent, reasoning=thought)

    async def _say(self, request: ModelRequest, *, breaks_off: bool) -> AsyncGenerator[ModelEvent]:
        """Counted as it goes out: what is not listened to any more was not sent."""
        cap = request.max_output_tokens
        assert cap is not None, "a call without an output cap could cost anything"
        self.caps.append(cap)
        left = cap if self.honours else 10**9
        thought, text, calls = self._answer(request)
        for piece in (*_pieces(thought, ReasoningDelta), *_pieces(text, TextDelta)):
            if (spoken := beginning(piece.text, left)) is None:
                yield Finished(reason="length")
                return
            await asyncio.sleep(0.01)
            self.output += count(spoken)
            self.reasoning += count(spoken) if isinstance(piece, ReasoningDelta) else 0
            left -= count(spoken)
            yield type(piece)(text=spoken)
            if spoken != piece.text:
                yield Finished(reason="length")
                return
            if breaks_off and self.chance.random() < 0.2:
                return
        for call in () if breaks_off else calls:
            needed = AROUND + count(call.name + call.arguments)
            if needed > left:
                yield Finished(reason="length")
                return
            self.output += needed
            left -= needed
            yield call
        yield Finished(reason="tool-calls" if calls else "stop")

    def _answer(self, request: ModelRequest) -> tuple[str, str, list[CalledTool]]:
        """(thought, text, calls) of an answer that would end by itself."""
        if request.output_schema is not None:
            return "", self._json(request.output_schema), []
        long = self.chance.random() < 0.2
        text = self._prose(self.talkative * 6 if long else self.chance.randrange(5, self.talkative))
        thought = self._prose(self.chance.randrange(self.talkative)) if self.chance.random() < 0.3 else ""
        if not request.tools or self.chance.random() >= self.busy:
            return thought, text, []
        return thought, text, [self._call(request) for _ in range(self.chance.randrange(self.at_once) + 1)]

    def _call(self, request: ModelRequest) -> CalledTool:
        tool = self.chance.choice(request.tools)
        said = {name: self._prose(20) for name in tool.parameters.get("required", ())}
        return CalledTool(name=tool.name, arguments=json.dumps(said, ensure_ascii=False))

    def _json(self, schema: JsonObject) -> str:
        tokens = self.chance.randrange(10, 60)
        steps: list[JsonObject] = [
            {"id": f"s{number}", "description": self._prose(tokens), "expected_outcome": "", "suggested_tools": []}
            for number in range(self.chance.randrange(1, 4))
        ]
        if "mode" in schema["properties"]:
            mode = self.chance.choice(["continue", "continue", "revise", "finish"])
            return json.dumps({"reason": self._prose(10), "mode": mode, "steps": steps if mode == "revise" else []})
        return json.dumps({"thought": self._prose(tokens), "steps": steps}, ensure_ascii=False)

    def _prose(self, tokens: int) -> str:
        """About so many tokens."""
        said: list[str] = []
        while tokens > 0:
            said.append(self.chance.choice(self.words))
            tokens -= 1 + len(said[-1]) // 4
        return " ".join(said)


def largest_share(limits: Limits, model: CountingModel) -> float:
    """Of the cap of which most was used, by the model's own count. One that ignores its output cap is left in the
    middle of a word; the piece of each answer that was under way then is not held against the run."""
    under_way = 0 if model.honours else PIECE * model.calls
    used = {
        "max_total_tokens": model.input + model.output - under_way,
        "max_input_tokens": model.input,
        "max_output_tokens": model.output - under_way,
        "max_reasoning_tokens": model.reasoning - under_way,
        "max_cost_usd": model.dollars - under_way * PRICE.per_output,
    }
    caps = {name: getattr(limits, name) for name in CAPPED}
    return max(used[name] / cap for name, cap in caps.items() if cap is not None)


REFUSALS = (
    ModelError("rate-limited", "busy", retryable=True),
    ModelError("rate-limited", "busy", retryable=True, retry_after=60),
    ModelError("unauthorized", "the key is wrong", retryable=False),
)


def counted_input(request: ModelRequest) -> int:
    """As a provider counts it: the texts, the calls, the tools and the schema, and a little around each."""
    tokens = count(request.system) + AROUND
    for message in request.messages:
        tokens += count(message.text) + AROUND
        if isinstance(message, AssistantMessage):
            tokens += sum(count(call.name + canonical(call.arguments)) + AROUND for call in message.calls)
    tokens += sum(count(canonical(tool)) + AROUND for tool in request.tools)
    return tokens + (count(canonical(request.output_schema)) if request.output_schema else 0)


def _pieces(text: str, kind: type[TextDelta] | type[ReasoningDelta]) -> Iterator[TextDelta | ReasoningDelta]:
    return (kind(text=text[start : start + PIECE]) for start in range(0, len(text), PIECE))
