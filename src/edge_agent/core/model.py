"""One neutral request, one neutral stream: what every model adapter takes and gives."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, Message, OpaquePart, ToolSpec
from edge_agent.core.usage import Usage

ToolChoice = Literal["auto", "none", "required"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """`max_output_tokens` includes reasoning. `metadata` goes to gateways' logs, never to the model."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: JsonObject | None = None
    max_output_tokens: int | None = None
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallGrew:
    """What came of tool calls just now: to be measured, and for nothing else. The call comes whole, at the end."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledTool:
    """A whole tool call; `arguments` is the text the model wrote, not yet parsed."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    part: OpaquePart


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeen:
    """The whole call so far: the last one counts, they are never added."""

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The last event of a whole answer. A stream that ends without it was cut."""

    reason: FinishReason


ModelEvent = TextDelta | ReasoningDelta | CallGrew | CalledTool | Opaque | UsageSeen | Finished


class Model(Protocol):
    """A model by one provider.

    `force_text_after_tool`: a small model that would call tools for ever gets none in the round after a tool round."""

    @property
    def name(self) -> str: ...
    @property
    def provider(self) -> str: ...
    @property
    def force_text_after_tool(self) -> bool: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """One call, streamed. Ends with `Finished` or raises ModelError and nothing else; never retries: the loop does.
        Closing or cancelling it closes the provider's connection."""
        ...
