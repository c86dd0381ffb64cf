"""How many tokens a request sends, as far as can be told without its tokenizer: rather too many than too few."""

from collections.abc import Sequence

from edge_agent.core.canonical import canonical
from edge_agent.core.messages import AssistantMessage, Message, MessageWithFiles, ToolMessage, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.core.tokens import estimate
from edge_agent.loop.remembered import Remembered

FRAME, PER_MESSAGE, PER_TOOL = 48, 8, 16  # tokens of what a provider writes around a request, a message, a tool


class Estimates:
    """Of one request after another."""

    def __init__(self) -> None:
        self._messages, self._tools = Remembered(_of_message), Remembered(_of_tool)
        self._systems: dict[str, int] = {}  # by value: the same prompt is put together anew for each request

    def input(self, request: ModelRequest) -> int:
        """Tokens of everything the request sends, and of what providers write around it."""
        self._messages.next_request()
        self._tools.next_request()
        schema = PER_TOOL + estimate(canonical(request.output_schema)) if request.output_schema is not None else 0
        tools = sum(map(self._tools.of, request.tools))
        return FRAME + self._system(request.system) + self.messages(request.messages) + tools + schema

    def messages(self, messages: Sequence[Message]) -> int:
        return sum(map(self._messages.of, messages))

    def _system(self, system: str) -> int:
        if system not in self._systems:
            self._systems[system] = estimate(system)
        return self._systems[system]


def estimated_input(request: ModelRequest) -> int:
    return Estimates().input(request)


def _of_tool(tool: ToolSpec) -> int:
    return PER_TOOL + estimate(canonical(tool))


def _of_message(message: Message) -> int:
    tokens = PER_MESSAGE + estimate(message.text)
    if isinstance(message, AssistantMessage):
        tokens += sum(_of_call(call.name, canonical(call.arguments)) for call in message.calls)
        tokens += sum(estimate(canonical(part.data)) for part in message.opaque)
    return tokens + of_files(message) + (estimate(message.name) if isinstance(message, ToolMessage) else 0)


def of_files(*messages: Message) -> int:
    """Tokens of images and PDF files alone."""
    with_files = (message for message in messages if isinstance(message, MessageWithFiles))
    return sum(file.tokens for message in with_files for file in message.attachments)


def _of_call(name: str, arguments: str) -> int:
    return PER_MESSAGE + estimate(name) + estimate(arguments)
