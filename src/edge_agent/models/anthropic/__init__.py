"""Anthropic's Messages API: Claude directly, through AI Gateway or on Bedrock, and servers that speak its wire.

request.py asks, with turns.py, thinking.py, structured.py and families.py; answer.py listens, with blocks.py and
usage.py; layout.py is what one leaves to the other."""

from dataclasses import dataclass

from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Answer, Call
from edge_agent.models.anthropic.answer import MessagesAnswer
from edge_agent.models.anthropic.families import family_of
from edge_agent.models.anthropic.request import build
from edge_agent.models.anthropic.structured import form_of
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.source import Source


@dataclass(frozen=True, slots=True)
class Anthropic:
    """Implements Adapter."""

    def call(self, request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
        return build(request, endpoint, model)

    def answer(self, request: ModelRequest, endpoint: Endpoint, source: Source) -> Answer:
        model = source.model.removeprefix(f"{endpoint.provider}/")
        form = form_of(request, endpoint.profile, family_of(model))
        return MessagesAnswer(source, provider=endpoint.provider, model=model, answer_tool=form.tool if form else None)
