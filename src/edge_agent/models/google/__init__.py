"""Gemini's own wire: generateContent, streamed.

request.py, contents.py and thinking.py ask; answer.py, calls.py and usage.py listen; order.py is what one leaves to the
other."""

from dataclasses import dataclass

from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Answer, Call
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.google.answer import GeminiAnswer
from edge_agent.models.google.request import build
from edge_agent.models.source import Source


@dataclass(frozen=True, slots=True)
class Google:
    """Implements Adapter."""

    def call(self, request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
        return build(request, endpoint, model)

    def answer(self, request: ModelRequest, endpoint: Endpoint, source: Source) -> Answer:  # noqa: ARG002 (the protocol's)
        model = source.model.removeprefix(f"{endpoint.provider}/")
        return GeminiAnswer(source, provider=endpoint.provider, model=model)
