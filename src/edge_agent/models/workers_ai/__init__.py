"""Workers AI: the models of Cloudflare (@cf/…), by the AI binding or over REST.

dialects.py says how each is asked, request.py asks, answer.py listens. The shapes are as documented, and not yet
compared with the live service.
"""

from dataclasses import dataclass

from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Answer, Call
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.openai_chat.json_answer import JsonToolAnswer
from edge_agent.models.source import Source
from edge_agent.models.workers_ai.answer import REASONING, TEXT, WHOLE, as_chat
from edge_agent.models.workers_ai.dialects import dialect_of
from edge_agent.models.workers_ai.request import call, forced

_CATALOGUES = ("@cf/", "@hf/")


@dataclass(frozen=True, slots=True)
class WorkersAI:
    """Implements Adapter. A model is named with or without its @cf/."""

    def call(self, request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
        name = _whole(model)
        return call(request, endpoint, name, dialect_of(name))

    def answer(self, request: ModelRequest, endpoint: Endpoint, source: Source) -> Answer:
        name = _whole(source.model.removeprefix(f"{endpoint.provider}/"))
        answer = ChatAnswer(
            source,
            provider=endpoint.provider,
            model=name,
            replayed=(REASONING,),
            whole=WHOLE,
            text=TEXT,
            translate=as_chat,
        )
        if forced(request) and dialect_of(name).leaks_calls:
            return JsonToolAnswer(answer, source, [spec.name for spec in request.tools])
        return answer


def _whole(model: str) -> str:
    return model if model.startswith(_CATALOGUES) else f"@cf/{model}"
