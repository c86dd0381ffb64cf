"""The pure half of asking: a neutral request in, a call of generateContent out."""

from typing import Any, cast
from urllib.parse import quote

from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest, ToolChoice
from edge_agent.models.adapter import Call
from edge_agent.models.asking import headers, schema_in_words
from edge_agent.models.endpoint import Endpoint, Profile
from edge_agent.models.google.contents import contents
from edge_agent.models.google.thinking import Family, family_of, thinking_config
from edge_agent.models.schemas import for_google

_MODES: dict[ToolChoice, str] = {"none": "NONE", "required": "ANY"}
_Told = tuple[JsonObject, tuple[str, ...]]  # fields, and what could not be told as it was meant


def build(request: ModelRequest, endpoint: Endpoint, model: str) -> Call:
    """Options win over everything, as Adapter says; those of generationConfig do so field by field."""
    family, schema = family_of(model), request.output_schema
    words = schema_in_words(schema) if schema is not None and _takes_no_form(request, endpoint.profile, family) else ""
    form, not_formed = ({}, ()) if schema is None or words else _form(schema)
    thinking, not_thought = thinking_config(request, model)
    tools, not_offered = _tools(request)
    generation: JsonObject = {**form, **({"thinkingConfig": thinking} if thinking else {})}
    if request.max_output_tokens is not None:
        generation["maxOutputTokens"] = request.max_output_tokens
    system = "\n\n".join(part for part in (request.system, words) if part)
    body: JsonObject = {
        **({"systemInstruction": {"parts": [{"text": system}]}} if system else {}),
        **tools,
        "contents": contents(request, endpoint.provider, model, signed=family.signed),
        **({"generationConfig": generation} if generation else {}),
    }
    for options in (endpoint.profile.options, endpoint.options, request.options or {}):
        body = _with(body, options)
    return Call(
        path=f"/models/{quote(model, safe='@')}:streamGenerateContent?alt=sse",
        headers=headers(request, endpoint),
        body=body,
        warnings=(*not_thought, *not_formed, *not_offered),
    )


def _takes_no_form(request: ModelRequest, profile: Profile, family: Family) -> bool:
    return profile.structured_output == "prompt" or (bool(request.tools) and not family.schema_with_tools)


def _form(schema: JsonObject) -> _Told:
    converted = for_google(schema)
    fields: JsonObject = {"responseMimeType": "application/json", "responseJsonSchema": converted.schema}
    return fields, tuple(f"The form of the answer: {warning}." for warning in converted.warnings)


def _tools(request: ModelRequest) -> _Told:
    """Nothing for no tools: an empty list is refused."""
    if not request.tools:
        return {}, ()
    converted = [(spec, for_google(spec.parameters)) for spec in request.tools]
    declared = [
        {"name": spec.name, "description": spec.description, "parametersJsonSchema": one.schema}
        for spec, one in converted
    ]
    fields: JsonObject = {"tools": [{"functionDeclarations": declared}]}
    if mode := _MODES.get(request.tool_choice):
        fields["toolConfig"] = {"functionCallingConfig": {"mode": mode}}
    return fields, tuple(f"The tool {spec.name}: {warning}." for spec, one in converted for warning in one.warnings)


def _with(body: JsonObject, options: JsonObject) -> JsonObject:
    own, wanted = body.get("generationConfig"), options.get("generationConfig")
    if isinstance(own, dict) and isinstance(wanted, dict):
        options = {**options, "generationConfig": cast(dict[str, Any], own) | cast(dict[str, Any], wanted)}
    return body | options
