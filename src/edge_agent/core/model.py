"""One neutral request, one neutral stream: what every model adapter takes and gives."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, Message, OpaquePart, ToolSpec
from edge_agent.core.usage import Usage

ToolChoice = Literal["auto", "none", "required"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]
Thinking = Effort | int  # a level, or a budget in tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCache:
    """key: what requests that begin alike have in common. ttl: how long what was read is kept; None: the provider's
    own time."""

    key: str
    ttl: Literal["5m", "1h"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call.

    system: run-stable, so that caches can hold it; whatever changes stands in the messages behind it.
    max_output_tokens: reasoning included. thinking: None for the provider's own default, "none" for off where that can
    be had. include_thoughts: whether thoughts are wanted in the stream. cache: None where nothing may be kept.
    metadata: goes to gateways' logs, never to the model. files: the bytes of attachments by name; a request that is not
    about to be sent has none. options: fields of the provider's own wire, over everything
    else.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: JsonObject | None = None
    max_output_tokens: int | None = None
    thinking: Thinking | None = None
    include_thoughts: bool = True
    cache: PromptCache | None = None
    metadata: Mapping[str, str] | None = None
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    options: JsonObject | None = None


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
class GatewayLog:
    """The id under which a gateway keeps its log of this call, with what it cost."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """Something could not be asked for as it was meant; for whoever follows the run."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The last event of a whole answer. A stream that ends without it was cut."""

    reason: FinishReason


ModelEvent = TextDelta | ReasoningDelta | CallGrew | CalledTool | Opaque | UsageSeen | GatewayLog | Warned | Finished


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


@runtime_checkable
class TakesFiles(Protocol):
    """A model that says itself which images and files it takes, by their media types. Of others the names tell."""

    @property
    def takes(self) -> Sequence[str]: ...
