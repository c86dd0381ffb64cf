"""What a model reads and writes, in no provider's dialect."""

from dataclasses import dataclass
from typing import Any, Literal

from edge_agent.core.attachments import Attachment

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of an answer.

    `id` is ours: nine letters or digits, unique in the run (providers repeat theirs).
    `malformed` keeps the text of arguments that were no JSON object; `arguments` is then empty, so history stays
    well-formed.
    """

    id: str
    name: str
    arguments: JsonObject
    malformed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaquePart:
    """A part only its provider understands (a signature, encrypted reasoning): kept as it came, sent back to that
    provider and model only. `model` None: to any of that provider's."""

    provider: str
    data: JsonObject
    model: str | None = None

    def is_for(self, provider: str, model: str) -> bool:
        return self.provider == provider and self.model in (None, model)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    text: str
    role: Literal["user"] = "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWithFiles(UserMessage):
    """`text` holds the mark of each attachment where it stands."""

    attachments: tuple[Attachment, ...]


def user_message(text: str, attachments: tuple[Attachment, ...] | None) -> UserMessage:
    return MessageWithFiles(text=text, attachments=attachments) if attachments else UserMessage(text=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[OpaquePart, ...] = ()
    role: Literal["assistant"] = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The answer to one call, as the model sees it."""

    call_id: str
    name: str
    text: str
    ok: bool
    role: Literal["tool"] = "tool"


Message = MessageWithFiles | UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of an earlier conversation, given with the request. `attachments`: of a user's turn; `text` holds their
    marks."""

    role: Literal["user", "assistant"]
    text: str
    attachments: tuple[Attachment, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as it is described to a model; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: JsonObject
