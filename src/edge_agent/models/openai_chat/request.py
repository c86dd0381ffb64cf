"""The pure half of asking: a neutral request in, the body of a chat completion out."""

import json

from edge_agent.core.messages import AssistantMessage, JsonObject, Message, ToolMessage, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.models.asking import schema_in_words
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.openai_chat import json_tools
from edge_agent.models.openai_chat.replay import put_back

PATH = "/chat/completions"


def build(request: ModelRequest, endpoint: Endpoint, model: str) -> JsonObject:
    """The body. Options win over everything: the profile's, then the endpoint's, then the request's; they go to the
    wire as they are."""
    profile = endpoint.profile
    by_json = profile.tool_mode == "json"
    system, messages = request.system, _messages(request, endpoint.provider, model)
    if by_json:
        system, messages = json_tools.told(request, required=profile.auto_requires_tool)
    if request.output_schema is not None and profile.structured_output == "prompt":
        system = f"{system}\n\n{schema_in_words(request.output_schema)}".strip()
    body: JsonObject = {
        "model": model,
        "messages": [{"role": "system", "content": system}, *messages] if system else messages,
        "stream": True,
    }
    if profile.include_usage:
        body["stream_options"] = {"include_usage": True}
    if request.max_output_tokens is not None:
        body[profile.max_tokens_field] = request.max_output_tokens
    if by_json and json_tools.offers(request):
        body["response_format"] = json_tools.response_format(request, required=profile.auto_requires_tool)
    else:
        body |= _tools(request, endpoint) | _structured(request, endpoint)
    return body | profile.options | endpoint.options | (request.options or {})


def _messages(request: ModelRequest, provider: str, model: str) -> list[JsonObject]:
    return [told for message in request.messages if (told := told_message(message, provider, model)) is not None]


def told_message(message: Message, provider: str, model: str) -> JsonObject | None:
    """None for an answer that said nothing at all: many servers refuse an empty one."""
    if isinstance(message, AssistantMessage):
        return _assistant(message, provider, model) if message.text or message.calls else None
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    return {"role": "user", "content": message.text}


def _assistant(message: AssistantMessage, provider: str, model: str) -> JsonObject:
    """Content is "" beside calls, not null, which Workers AI refuses. Arguments are always the text of an object."""
    told: JsonObject = {"role": "assistant", "content": message.text}
    if message.calls:
        told["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.calls
        ]
    for part in message.opaque:
        if part.is_for(provider, model):
            told = put_back(told, part.data)
    return told


def _tools(request: ModelRequest, endpoint: Endpoint) -> JsonObject:
    """Nothing for no tools: an empty list is refused."""
    if not request.tools or endpoint.profile.tool_mode == "json":
        return {}
    choice = request.tool_choice
    if choice == "auto" and endpoint.profile.auto_requires_tool:
        choice = "required"
    if choice == "required" and not endpoint.profile.takes_required:
        choice = "auto"
    told: JsonObject = {"tools": [_tool(spec) for spec in request.tools]}
    return told if choice == "auto" else told | {"tool_choice": choice}


def _tool(spec: ToolSpec) -> JsonObject:
    """An object schema without properties is refused by some; empty ones mean the same."""
    parameters: JsonObject = {"type": "object", "properties": {}, **spec.parameters}
    return {
        "type": "function",
        "function": {"name": spec.name, "description": spec.description, "parameters": parameters},
    }


def _structured(request: ModelRequest, endpoint: Endpoint) -> JsonObject:
    if request.output_schema is None or endpoint.profile.structured_output == "prompt":
        return {}
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.output_schema}}
    }
