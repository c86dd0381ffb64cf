"""A model that says what a test tells it to: strict, so that neither a call too many nor one too few goes unseen."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.messages import AssistantMessage, JsonObject, OpaquePart
from edge_agent.core.model import (
    CalledTool,
    Finished,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage

SOME_USAGE = Usage(input=10, output=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of a script.

    calls: (tool, arguments), the arguments as an object or as the very text the model writes.
    error: raised after everything else was said. cut: the stream ends without `Finished`.
    delay: seconds before each piece. pause: awaited after the first piece (or before the end, where nothing is said),
    for tests that act in the middle of a stream. finish None: tool-calls where there are calls, else stop.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, JsonObject | str], ...] = ()
    opaque: tuple[JsonObject, ...] = ()
    usage: Usage | None = SOME_USAGE
    finish: FinishReason | None = None
    error: ModelError | None = None
    cut: bool = False
    delay: float = 0.0
    pause: Callable[[], Awaitable[object]] | None = None


Said = Answer | str | ModelError
Item = Said | Callable[[ModelRequest], Said]


@dataclass(slots=True, kw_only=True, eq=False)
class ScriptedModel:
    """Implements the Model port. A plain text is an answer with that text, a ModelError one that fails; a function
    makes one of the request.

    answers: in order, one for each call; a call beyond them is an AssertionError.
    by_turn: the answer is chosen by the number of assistant messages in the request, and may be given again: for runs
        that are killed and ask again what they had asked before.
    takes: media types of the images and files it takes. piece: characters of a delta. requests: every request so far.
    closed: streams that were left before their end.
    """

    answers: list[Item]
    name: str = "scripted"
    provider: str = "scripted"
    force_text_after_tool: bool = False
    by_turn: bool = False
    takes: tuple[str, ...] = ()
    piece: int = 8
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])
    closed: int = 0
    _used: set[int] = field(default_factory=set[int])
    _unexpected: int = 0

    def assert_done(self) -> None:
        """Raises AssertionError where an answer was left over or a call was unexpected (also one whose error was
        swallowed)."""
        left = [index for index in range(len(self.answers)) if index not in self._used]
        if left:
            raise AssertionError(f"{len(left)} answers of the script were not asked for, the first is number {left[0]}")
        if self._unexpected:
            raise AssertionError(f"{self._unexpected} calls came after the last answer of the script")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        answer = self._next(request)
        whole = False
        try:
            async for event in _events(answer, self.provider, self.piece):
                yield event
            whole = True
        except ModelError:
            whole = True
            raise
        finally:
            self.closed += not whole

    def _next(self, request: ModelRequest) -> Answer:
        index = len(self.requests)
        if self.by_turn:
            index = sum(isinstance(message, AssistantMessage) for message in request.messages)
        self.requests.append(request)
        if index >= len(self.answers):
            self._unexpected += 1
            last = request.messages[-1] if request.messages else None
            raise AssertionError(f"the script has {len(self.answers)} answers and was asked for number {index}: {last}")
        self._used.add(index)
        item = self.answers[index]
        said = item(request) if callable(item) else item
        if isinstance(said, str):
            return Answer(text=said)
        return Answer(error=said) if isinstance(said, ModelError) else said


async def _events(answer: Answer, provider: str, piece: int) -> AsyncGenerator[ModelEvent]:
    deltas: list[ModelEvent] = [ReasoningDelta(text=text) for text in _pieces(answer.reasoning, piece)]
    deltas += [TextDelta(text=text) for text in _pieces(answer.text, piece)]
    paused = answer.pause is None
    for delta in deltas:
        await asyncio.sleep(answer.delay)  # also without a delay: a real stream lets others run
        yield delta
        if not paused and answer.pause is not None:
            paused = True
            await answer.pause()
    if not paused and answer.pause is not None:
        await answer.pause()
    for event in _rest(answer, provider):
        yield event
    if answer.error is not None:
        raise answer.error
    if not answer.cut:
        yield Finished(reason=answer.finish or ("tool-calls" if answer.calls else "stop"))


def _rest(answer: Answer, provider: str) -> list[ModelEvent]:
    rest: list[ModelEvent] = [UsageSeen(usage=answer.usage)] if answer.usage else []
    rest += [Opaque(part=OpaquePart(provider=provider, data=data)) for data in answer.opaque]
    if answer.error is None and not answer.cut:
        rest += [CalledTool(name=name, arguments=_text(arguments)) for name, arguments in answer.calls]
    return rest


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _text(arguments: JsonObject | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
