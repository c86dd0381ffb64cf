"""Listening to one attempt: deltas go out as they come, the whole is kept for the record."""

from contextlib import aclosing
from dataclasses import dataclass, field

from edge_agent.core import keys
from edge_agent.core.arguments import parse_arguments
from edge_agent.core.events import FinishReason, StepReasoningDelta, StepTextDelta
from edge_agent.core.messages import AssistantMessage, JsonObject, OpaquePart, ToolCall
from edge_agent.core.model import (
    CalledTool,
    Finished,
    Model,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.loop.walk import Walk


@dataclass(slots=True, kw_only=True)
class Heard:
    """What an attempt has said so far; what is kept of it when it fails in the middle."""

    text: str = ""
    thought: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    opaque: list[OpaquePart] = field(default_factory=list[OpaquePart])
    usage: Usage | None = None
    finish_reason: FinishReason = "other"

    @property
    def anything(self) -> bool:
        return bool(self.text or self.thought or self.calls)

    def message(self) -> AssistantMessage:
        return AssistantMessage(text=self.text, calls=tuple(self.calls), opaque=tuple(self.opaque))


async def listen(walk: Walk, part: str, round_key: str, model: Model, request: ModelRequest, heard: Heard) -> None:
    """Raises ModelError. Cancelling it closes the provider's connection."""
    step = keys.step_of(part) or 1
    async with aclosing(model.stream(request)) as stream:
        async for event in stream:
            match event:
                case TextDelta(text=text):
                    walk.ports.sink.passing(StepTextDelta(part=part, offset=len(heard.text), delta=text, step=step))
                    heard.text += text
                case ReasoningDelta(text=text):
                    walk.ports.sink.passing(
                        StepReasoningDelta(part=part, offset=len(heard.thought), delta=text, step=step)
                    )
                    heard.thought += text
                case CalledTool():
                    heard.calls.append(_call(walk, keys.tool_call(round_key, len(heard.calls)), event))
                case Opaque(part=opaque):
                    heard.opaque.append(opaque)
                case UsageSeen(usage=usage):
                    heard.usage = usage
                case Finished(reason=reason):
                    heard.finish_reason = reason


def _call(walk: Walk, key: str, called: CalledTool) -> ToolCall:
    """The call under our own id, its arguments parsed and sanitized before anything is recorded."""
    arguments, malformed = parse_arguments(called.arguments)
    if malformed is None:
        arguments, malformed = _sanitized(walk, called.name, arguments)
    return ToolCall(id=keys.call_id(walk.run_id, key), name=called.name, arguments=arguments, malformed=malformed)


def _sanitized(walk: Walk, tool: str, arguments: JsonObject) -> tuple[JsonObject, str | None]:
    sanitize = walk.ports.agent.hooks.sanitize_input
    if sanitize is None:
        return arguments, None
    try:
        return sanitize(tool, arguments), None
    except Exception:
        return {}, "(left out: the input sanitizer failed on them)"
