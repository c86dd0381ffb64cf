"""What a model is asked, as one hash: equal for equal prompts, whatever the output cap and the labels."""

import hashlib
from typing import Any

from edge_agent.core import keys
from edge_agent.core.canonical import canonical
from edge_agent.core.messages import Message
from edge_agent.core.model import ModelRequest


def prompt_hash(request: ModelRequest) -> str:
    return PromptHashes().of(request)


class PromptHashes:
    """Of one prompt after another, where each goes on from the one before: what they have in common is hashed once, so
    that all prompts of a run cost as much as the longest of them."""

    def __init__(self) -> None:
        self._messages: tuple[Message, ...] = ()
        self._so_far: Any = hashlib.sha256()

    def of(self, request: ModelRequest) -> str:
        said = self._hashed(request.messages)
        return keys.digest(request.system, said, request.tools, request.tool_choice, request.output_schema)

    def _hashed(self, messages: tuple[Message, ...]) -> str:
        common = len(self._messages)
        if messages[:common] != self._messages:
            self._messages, self._so_far, common = (), hashlib.sha256(), 0
        for message in messages[common:]:
            self._so_far.update(canonical(message).encode("utf-8", "surrogatepass") + b"\n")
        self._messages = messages
        return str(self._so_far.hexdigest())
