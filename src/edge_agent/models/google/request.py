"""The pure half of asking: a neutral request in, a call of generateContent out."""

from typing import Any, cast
from urllib.parse import quote

from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.model import ModelRequest, ToolChoice
from edge_agent.models.adapter import Call
from edge_agent.models.asking import headers, schema_in_words
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.google.contents import contents
from edge_agent.models.google.thinking import family_of, thinking_config

_MODES: dict[ToolChoice, str] = {"none": "NONE", "required": "ANY"}


def build(request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
    """Options win over everything, as Adapter says; those of generationConfig do so field by field."""
    family = family_of(model)
    in_words = request.output_schema is not None and (
        endpoint.profile.structured_output == "prompt" or (bool(request.tools) and not family.schema_with_tools)
    )
    thinking, warnings = thinking_config(request, model)
    generation: JsonObject = {"thinkingConfig": thinking} if thinking else {}
    if request.max_output_tokens is not None:
        generation["maxOutputTokens"] = request.max_output_tokens
    if request.output_schema is not None and not in_words:
        generation |= {"responseMimeType": "application/json", "responseJsonSchema": request.output_schema}
    system = request.system
    if request.output_schema is not None and in_words:
        system = f"{system}\n\n{schema_in_words(request.output_schema)}".strip()
    body: JsonObject = {
        **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
        **_tools(request),
        "contents": contents(request.messages, endpoint.provider, model, signed=family.signed),
        **({"generationConfig": generation} if generation else {}),
    }
    for options in (endpoint.profile.options, endpoint.options, request.options or {}):
        body = _with(body, options)
    path = f"/models/{quote(model, safe='@')}:streamGenerateContent?alt=sse"
    return Call(path=path, headers=headers(request, endpoint), body=body, warnings=warnings)


def _tools(request: ModelRequest) -> JsonObject:
    """Nothing for no tools: an empty list is refused."""
    if not request.tools:
        return {}
    told: JsonObject = {"tools": [{"functionDeclarations": [_tool(spec) for spec in request.tools]}]}
    mode = _MODES.get(request.tool_choice)
    return told | {"toolConfig": {"functionCallingConfig": {"mode": mode}}} if mode else told


def _tool(spec: ToolSpec) -> JsonObject:
    return {"name": spec.name, "description": spec.description, "parametersJsonSchema": spec.parameters}


def _with(body: JsonObject, options: JsonObject) -> JsonObject:
    own, wanted = body.get("generationConfig"), options.get("generationConfig")
    if isinstance(own, dict) and isinstance(wanted, dict):
        options = {**options, "generationConfig": cast(dict[str, Any], own) | cast(dict[str, Any], wanted)}
    return body | options
