"""What a model is asked, as one hash: equal for equal prompts, whatever the output cap and the labels."""

from edge_agent.core import keys
from edge_agent.core.model import ModelRequest
from edge_agent.loop.remembered import Remembered


class PromptHashes:
    """Of one prompt after another: what they have in common is hashed once."""

    def __init__(self) -> None:
        self._messages, self._tools = Remembered(keys.digest), Remembered(keys.digest)

    def of(self, request: ModelRequest) -> str:
        self._messages.next_request()
        self._tools.next_request()
        said = [self._messages.of(message) for message in request.messages]
        offered = [self._tools.of(tool) for tool in request.tools]
        return keys.digest(request.system, said, offered, request.tool_choice, request.output_schema)


def prompt_hash(request: ModelRequest) -> str:
    return PromptHashes().of(request)
