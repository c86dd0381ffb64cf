"""What an adapter is: how one wire is asked and how its answers are read, both without I/O.

provider_model.py connects it to a transport; endpoint.py says, as data, how servers of one wire differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelEvent, ModelRequest
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: `path` goes behind the endpoint's base URL, `warnings` are told to whoever follows the run."""

    path: str
    headers: Mapping[str, str]
    body: JsonObject
    warnings: tuple[str, ...] = ()


class Answer(Protocol):
    """One answer. It is fed what arrives; `end` is called once, when the connection has ended or `over` says that
    nothing more will come.

    Text and reasoning go out with each read, tool calls at the end only: a call of an unfinished answer must never
    run."""

    @property
    def over(self) -> bool: ...
    @property
    def finished(self) -> bool:
        """Whether the model has said why it stopped. Usage may still come."""
        ...

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """Raises ModelError for an error inside the answer."""
        ...

    def end(self) -> list[ModelEvent]:
        """The rest of a whole answer, `Finished` last. Raises ModelError for one that was cut."""
        ...


class Adapter(Protocol):
    def call(self, request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
        """Options win over everything: the profile's, then the endpoint's, then the request's; they go to the wire as
        they are."""
        ...

    def answer(self, request: ModelRequest, endpoint: Endpoint, source: Source) -> Answer: ...
