"""The pure half of asking: a neutral request in, the inputs of a model of Workers AI out."""

from typing import cast

from edge_agent.core.messages import JsonObject, Message, ToolMessage, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.models.adapter import Call
from edge_agent.models.asking import headers
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.openai_chat.request import told_message
from edge_agent.models.schemas import for_openai, for_workers_ai
from edge_agent.models.workers_ai.dialects import Dialect
from edge_agent.models.workers_ai.thinking import thinking_fields

RUN = "/run/"  # the model's name follows
SESSION = "x-session-affinity"  # requests of one session meet the same cache of prefixes
DEFAULT_OUTPUT = 4096  # tokens; what many models take without a word is 256


def call(request: ModelRequest, endpoint: Endpoint, model: str, dialect: Dialect) -> Call:
    """`model` by its whole name."""
    tools, warnings = _tools(request)
    thinking, told = thinking_fields(request.thinking, dialect)
    system: list[JsonObject] = [{"role": "system", "content": request.system}] if request.system else []
    streamed = request.output_schema is None  # JSON mode and a stream exclude each other (error 5023)
    body: JsonObject = {
        "messages": [*system, *_messages(request, endpoint.provider, model)],
        "stream": streamed,
        dialect.max_tokens_field: request.max_output_tokens or DEFAULT_OUTPUT,
    }
    if streamed and dialect.include_usage:
        body["stream_options"] = {"include_usage": True}
    structured, loosened = _structured(request.output_schema, dialect)
    body |= tools | structured | thinking
    sent = headers(request, endpoint)
    if request.cache is not None:
        sent.setdefault(SESSION, request.cache.key)
    options = endpoint.profile.options | endpoint.options | (request.options or {})
    return Call(path=RUN + model, headers=sent, body=body | options, warnings=(*warnings, *loosened, *told))


def forced(request: ModelRequest) -> bool:
    """Whether the answer has to be a call."""
    return bool(request.tools) and request.tool_choice == "required"


def _messages(request: ModelRequest, provider: str, model: str) -> list[JsonObject]:
    """Those of OpenAI's form; the legacy form knows a result by the tool's name."""
    told = ((message, told_message(message, provider, model, request.files)) for message in request.messages)
    return [_plain_images(fields) | _named(message) for message, fields in told if fields is not None]


def _plain_images(message: JsonObject) -> JsonObject:
    """The details of an image are a field of OpenAI's alone."""
    if not isinstance(message["content"], list):
        return message
    parts = cast(list[JsonObject], message["content"])
    return message | {
        "content": [
            {**part, "image_url": {"url": part["image_url"]["url"]}} if "image_url" in part else part for part in parts
        ]
    }


def _named(message: Message) -> JsonObject:
    return {"name": message.name} if isinstance(message, ToolMessage) else {}


def _tools(request: ModelRequest) -> tuple[JsonObject, tuple[str, ...]]:
    """Nothing for no tools. "required" is advice to many models, a named tool is not."""
    if not request.tools:
        return {}, ()
    told = [_tool(spec) for spec in request.tools]
    fields: JsonObject = {"tools": [tool for tool, _ in told]}
    if forced(request) and len(request.tools) == 1:
        fields["tool_choice"] = {"type": "function", "function": {"name": request.tools[0].name}}
    elif request.tool_choice != "auto":
        fields["tool_choice"] = request.tool_choice
    return fields, tuple(warning for _, warnings in told for warning in warnings)


def _tool(spec: ToolSpec) -> tuple[JsonObject, tuple[str, ...]]:
    """Of the two forms the one that every model takes. A tool without a description, or a parameter without a type and
    one, is refused by many."""
    converted = for_workers_ai(spec.parameters)
    parameters: JsonObject = {"type": "object", "properties": {}, **converted.schema}
    function: JsonObject = {"name": spec.name, "description": spec.description or spec.name, "parameters": parameters}
    warnings = tuple(f"The tool {spec.name}: {warning}." for warning in converted.warnings)
    return {"type": "function", "function": function}, warnings


def _structured(schema: JsonObject | None, dialect: Dialect) -> tuple[JsonObject, tuple[str, ...]]:
    """References stand inlined: nothing says that these models follow them."""
    if schema is None:
        return {}, ()
    converted = for_openai(schema)
    warnings = tuple(f"The schema of the answer: {warning}." for warning in converted.warnings)
    if dialect.schema == "guided":
        return {"guided_json": converted.schema}, warnings
    told = {"name": "answer", "schema": converted.schema} if dialect.schema == "named" else converted.schema
    return {"response_format": {"type": "json_schema", "json_schema": told}}, warnings
