"""The pure half of asking: a neutral request in, the body of a chat completion out."""

import json
from collections.abc import Mapping

from edge_agent.core.messages import AssistantMessage, JsonObject, Message, MessageWithFiles, ToolMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.asking import schema_in_words
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.openai_chat import json_tools
from edge_agent.models.openai_chat.content import content_of
from edge_agent.models.openai_chat.replay import put_back
from edge_agent.models.openai_chat.schema_fields import SchemaFields
from edge_agent.models.openai_chat.thinking import thinking_fields

PATH = "/chat/completions"


def build(request: ModelRequest, endpoint: Endpoint, model: str) -> tuple[JsonObject, tuple[str, ...]]:
    """The body, and what of the request could not be said in it. Options win over everything: the profile's, then the
    endpoint's, then the request's; they go to the wire as they are."""
    profile = endpoint.profile
    by_json = profile.tool_mode == "json"
    system, messages = request.system, _messages(request, endpoint.provider, model)
    if by_json:
        system, messages = json_tools.told(request, required=profile.auto_requires_tool)
    if request.output_schema is not None and profile.structured_output == "prompt":
        system = f"{system}\n\n{schema_in_words(request.output_schema)}".strip()
    thinking, warnings = thinking_fields(request, model, profile.thinking)
    body: JsonObject = {
        "model": model,
        "messages": [{"role": "system", "content": system}, *messages] if system else messages,
        "stream": True,
        **thinking,
    }
    if profile.include_usage:
        body["stream_options"] = {"include_usage": True}
    if profile.cache_key and request.cache is not None:
        body["prompt_cache_key"] = request.cache.key
    if request.max_output_tokens is not None:
        body[profile.max_tokens_field] = request.max_output_tokens
    if by_json and json_tools.offers(request):
        body["response_format"] = json_tools.response_format(request, required=profile.auto_requires_tool)
    else:
        schemas = SchemaFields(profile)
        body |= schemas.tools(request) | schemas.structured(request)
        warnings += tuple(schemas.warnings)
    return body | profile.options | endpoint.options | (request.options or {}), warnings


def _messages(request: ModelRequest, provider: str, model: str) -> list[JsonObject]:
    told = (told_message(message, provider, model, request.files) for message in request.messages)
    return [message for message in told if message is not None]


def told_message(message: Message, provider: str, model: str, files: Mapping[str, bytes]) -> JsonObject | None:
    """None for an answer that said nothing at all: many servers refuse an empty one."""
    if isinstance(message, AssistantMessage):
        return _assistant(message, provider, model) if message.text or message.calls else None
    if isinstance(message, ToolMessage):
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    content = content_of(message, files) if isinstance(message, MessageWithFiles) else message.text
    return {"role": "user", "content": content}


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
