"""Listening to one attempt: deltas go out as they come, the whole is kept for the record."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from edge_agent.core import keys
from edge_agent.core.arguments import parse_arguments
from edge_agent.core.canonical import canonical
from edge_agent.core.errors import ModelError
from edge_agent.core.events import (
    FinalReasoningDelta,
    FinalTextDelta,
    FinishReason,
    PlanStepAdded,
    PlanThoughtDelta,
    Stage,
    StepReasoningDelta,
    StepTextDelta,
)
from edge_agent.core.messages import AssistantMessage, JsonObject, OpaquePart, ToolCall
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    Finished,
    GatewayLog,
    Model,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
    Warned,
)
from edge_agent.core.streamed import Streamed
from edge_agent.core.tokens import Meter, passes
from edge_agent.core.usage import Usage
from edge_agent.loop.plan_stream import PlanStream
from edge_agent.loop.walk import Walk


class Said:
    """A text that grows, with its length at hand."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self.length += len(text)

    def __str__(self) -> str:
        return "".join(self._pieces)


@dataclass(slots=True, kw_only=True)
class Heard:
    """What an attempt has said so far; what is kept of it when it fails in the middle.

    pending: calls that are still being written. left: before its end, because it had said enough; late: or because the
    time was up."""

    text: Said = field(default_factory=Said)
    thought: Said = field(default_factory=Said)
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    opaque: list[OpaquePart] = field(default_factory=list[OpaquePart])
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    meter: Meter = field(default_factory=Meter)
    thought_meter: Meter = field(default_factory=Meter)
    pending: Meter = field(default_factory=Meter)
    left: bool = False
    late: bool = False
    gateway_log_id: str | None = None

    @property
    def anything(self) -> bool:
        return bool(self.text.length or self.thought.length or self.calls or self.pending.tokens)

    def message(self) -> AssistantMessage:
        return AssistantMessage(text=str(self.text), calls=tuple(self.calls), opaque=tuple(self.opaque))


@dataclass(slots=True)
class Listener:
    """Takes in one stream. `part` is the key of the attempt, `asked` that of what it is an attempt at.

    most: estimated tokens after which it is left. until: ms since the epoch; it is left then too."""

    walk: Walk
    asked: str
    part: str
    stage: Stage
    heard: Heard
    most: float
    until: int | None = None
    texts: Streamed = field(init=False)
    thoughts: Streamed = field(init=False)
    plan: PlanStream = field(default_factory=PlanStream)

    def __post_init__(self) -> None:
        declared, clean = self.walk.ports.declared, self.walk.journal.cleaned_text
        self.texts, self.thoughts = Streamed(declared, clean), Streamed(declared, clean)

    async def listen(self, model: Model, request: ModelRequest) -> None:
        """Raises ModelError. Cancelling it closes the provider's connection."""
        async with aclosing(model.stream(request)) as stream:
            async for event in stream:
                self._take(event)
                if self.heard.finish_reason is None and self._enough():
                    self.heard.finish_reason, self.heard.left = "length", True
                    break
        self._say(self.texts.rest())
        self._think(self.thoughts.rest())
        if self.heard.finish_reason is None:
            raise ModelError("truncated", "the answer broke off before its end", retryable=True)

    def _enough(self) -> bool:
        self.heard.late = self.until is not None and self.walk.ports.clock.now() >= self.until
        return self.heard.late or passes(self.most, self.heard.meter, self.heard.thought_meter, self.heard.pending)

    def _take(self, event: ModelEvent) -> None:
        heard = self.heard
        match event:
            case TextDelta(text=text):
                heard.meter.add(text)
                self._say(self.texts.feed(text))
            case ReasoningDelta(text=text):
                heard.thought_meter.add(text)
                self._think(self.thoughts.feed(text))
            case CallGrew(text=text):
                heard.pending.add(text)
            case CalledTool(name=name, arguments=arguments):
                heard.meter.add(f"{name} {arguments}\n")
                heard.pending = Meter()  # calls come whole together, at the end
                heard.calls.append(self._call(keys.tool_call(self.asked, len(heard.calls)), event))
            case Opaque(part=opaque):
                heard.opaque.append(opaque)
            case GatewayLog(id=log_id):
                heard.gateway_log_id = log_id
            case Warned(message=message):
                self.walk.warn(message)
            case UsageSeen(usage=usage):
                heard.usage = usage
            case Finished(reason=reason):
                heard.finish_reason = reason

    def _say(self, text: str) -> None:
        if not text:
            return
        offset, tell = self.heard.text.length, self.walk.ports.sink.passing
        match self.stage:
            case "round":
                tell(StepTextDelta(part=self.part, offset=offset, delta=text, step=keys.step_of(self.part) or 1))
            case "final":
                tell(FinalTextDelta(part=self.part, offset=offset, delta=text))
            case "plan":
                self._tell_plan(text)
            case "replan" | "compact":  # a verdict is read whole, and a summary is no word to anybody
                pass
        self.heard.text.add(text)

    def _tell_plan(self, text: str) -> None:
        """What is streamed is JSON: its thought and its steps are told, not its letters."""
        before, known = len(self.plan.thought), self.plan.steps
        grown, steps = self.plan.feed(text)
        if grown:
            self.walk.ports.sink.passing(PlanThoughtDelta(part=self.part, offset=before, delta=grown))
        for index, description in enumerate(steps, start=known):
            self.walk.ports.sink.passing(PlanStepAdded(part=self.part, step=description, index=index))

    def _think(self, text: str) -> None:
        if not text:
            return
        offset, tell = self.heard.thought.length, self.walk.ports.sink.passing
        if self.stage == "round":
            step = keys.step_of(self.part) or 1
            tell(StepReasoningDelta(part=self.part, offset=offset, delta=text, step=step))
        elif self.stage == "final":
            tell(FinalReasoningDelta(part=self.part, offset=offset, delta=text))
        self.heard.thought.add(text)

    def _call(self, key: str, called: CalledTool) -> ToolCall:
        """The call under our own id, its arguments parsed and sanitized before anything is recorded."""
        arguments, malformed = parse_arguments(called.arguments)
        if sanitize := self.walk.agent.hooks.sanitize_input:
            arguments, malformed = _sanitized(sanitize, called.name, arguments, malformed)
        call_id = keys.call_id(self.walk.run_id, key)
        return ToolCall(id=call_id, name=called.name, arguments=arguments, malformed=malformed)


def _sanitized(
    sanitize: Callable[[str, JsonObject], JsonObject], tool: str, arguments: JsonObject, malformed: str | None
) -> tuple[JsonObject, str | None]:
    """What the sanitizer makes of them, where that is a JSON object. It fails no run: the call is invalid then."""
    if malformed is not None:
        return {}, "(left out: only a JSON object can be sanitized)"
    try:
        clean = sanitize(tool, arguments)
        if canonical(clean)[:1] == "{":
            return clean, None
    except Exception:  # noqa: BLE001, S110 - what it says might hold what it was to hide
        pass
    return {}, "(left out: the input sanitizer failed on them)"
