"""JSON tool mode, the asking half: for models without dependable tool calls of their own.

The tools are described in the system prompt, and `response_format` lets the model write nothing but {"tool",
"arguments"} of an offered tool or {"answer"}. What tools said is told as prose in the user's turns: a small model that
sees tool JSON in its own turns writes tool JSON as its answer (reference/local-model.md).
"""

import json
from collections.abc import Sequence
from typing import cast

from edge_agent.core.messages import AssistantMessage, JsonObject, Message, ToolMessage, ToolSpec
from edge_agent.core.model import ModelRequest
from edge_agent.models.openai_chat.grammar import grammar_schema


def offers(request: ModelRequest) -> bool:
    """Whether a tool may be called; otherwise the model writes plain text."""
    return bool(request.tools) and request.tool_choice != "none"


def told(request: ModelRequest, *, required: bool) -> tuple[str, list[JsonObject]]:
    """The system prompt and the messages. `required`: a tool must be called although the request leaves it open."""
    tools = _described(request, required=required) if offers(request) else ""
    return "\n\n".join(part for part in (request.system, tools) if part), _history(request.messages)


def response_format(request: ModelRequest, *, required: bool) -> JsonObject:
    forms = [_call_form(spec) for spec in request.tools]
    if _may_answer(request, required=required):
        forms.append(_object({"answer": {"type": "string"}}))
    schema = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {"type": "json_schema", "json_schema": {"name": "next_step", "strict": True, "schema": schema}}


def _may_answer(request: ModelRequest, *, required: bool) -> bool:
    return request.tool_choice != "required" and not required


def _call_form(spec: ToolSpec) -> JsonObject:
    return _object({"tool": {"type": "string", "enum": [spec.name]}, "arguments": grammar_schema(spec.parameters)})


def _object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _described(request: ModelRequest, *, required: bool) -> str:
    """Each form as it is to be written. Measured with Qwen2.5-Coder-0.5B: the right tool 18 times of 20, against 16 for
    a list of names with their arguments; placeholders without quotes are not copied."""
    forms = [f"{_written_form(spec)}\n  {spec.description}" for spec in request.tools]
    if _may_answer(request, required=required):
        forms.append('{"answer": <string>}\n  Answers in words, where no tool is needed.')
        return "\n".join(["Reply with one JSON object: the call of the tool that fits, or an answer:", "", *forms])
    return "\n".join(["Reply with one JSON object that calls the tool that fits the question:", "", *forms])


def _written_form(spec: ToolSpec) -> str:
    properties = cast(JsonObject, spec.parameters.get("properties") or {})
    required = cast(list[str], spec.parameters.get("required") or [])
    arguments = [_argument(name, schema, optional=name not in required) for name, schema in properties.items()]
    return f'{{"tool": "{spec.name}", "arguments": {{{", ".join(arguments)}}}}}'


def _argument(name: str, schema: object, *, optional: bool) -> str:
    """Name, type and meaning: shorter than the schema, and easier to read for a small model."""
    fields = cast(JsonObject, schema) if isinstance(schema, dict) else {}
    choices = cast(list[object], fields.get("enum") or [])
    kind = " | ".join(json.dumps(choice) for choice in choices) or fields.get("type", "any")
    meaning = f": {fields['description']}" if isinstance(fields.get("description"), str) else ""
    return f'"{name}": <{kind}{", optional" if optional else ""}{meaning}>'


def _history(messages: Sequence[Message]) -> list[JsonObject]:
    """User and assistant turns that alternate; tool rounds become a part of the user's turn before them."""
    turns: list[JsonObject] = []
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    arguments = {call.id: call.arguments for answer in answers for call in answer.calls}
    after_tools = False
    for message in messages:
        if isinstance(message, ToolMessage):
            _say(turns, "user", _told_result(message, arguments.get(message.call_id, {})))
        elif isinstance(message, AssistantMessage):
            if message.text and not message.calls:
                _say(turns, "assistant", message.text)
        else:
            _say(turns, "user", message.text)
        after_tools = isinstance(message, ToolMessage)
    if after_tools:
        _say(turns, "user", "Answer the question with these results, in plain words.")
    return turns


def _say(turns: list[JsonObject], role: str, text: str) -> None:
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += f"\n\n{text}"
    else:
        turns.append({"role": role, "content": text})


def _told_result(message: ToolMessage, arguments: JsonObject) -> str:
    with_ = ", ".join(f"{name} = {_plain(value)}" for name, value in arguments.items())
    said = "gave" if message.ok else "failed"
    return f"The tool {message.name}{f' with {with_}' if with_ else ''} {said}: {message.text}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
