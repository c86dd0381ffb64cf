"""OpenAI-compatible chat completions: OpenAI, gateways, vLLM, llama-server, Ollama and the many others.

request.py, schema_fields.py, thinking.py and json_tools.py ask, answer.py and json_answer.py listen."""

from dataclasses import dataclass

from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Answer, Call
from edge_agent.models.asking import headers
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.openai_chat import json_tools
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.openai_chat.json_answer import JsonToolAnswer
from edge_agent.models.openai_chat.request import PATH, build
from edge_agent.models.source import Source


@dataclass(frozen=True, slots=True)
class OpenAIChat:
    """Implements Adapter."""

    def call(self, request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
        body, warnings = build(request, endpoint, model)
        return Call(path=PATH, headers=headers(request, endpoint), body=body, warnings=warnings)

    def answer(self, request: ModelRequest, endpoint: Endpoint, source: Source) -> Answer:
        profile, model = endpoint.profile, source.model.removeprefix(f"{endpoint.provider}/")
        in_tags = model.startswith(profile.in_tags)
        answer = ChatAnswer(
            source,
            provider=endpoint.provider,
            model=model if in_tags else None,
            replayed=profile.replayed,
            in_tags=in_tags,
        )
        if profile.tool_mode == "json" and json_tools.offers(request):
            return JsonToolAnswer(answer, source, [spec.name for spec in request.tools])
        return answer
