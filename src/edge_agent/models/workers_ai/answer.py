"""What models of Workers AI answer, as chunks of a chat completion: one accumulator reads them all.

Whole answers and chunks of streams come in these shapes, whatever was asked for:

    {"response": "…", "tool_calls": [{"name", "arguments": {…}}], "usage": {…}}     the legacy form
    {"response": "", "tool_calls": [{"id", "function": {"name", "arguments"}}]}     the same, of llama-4-scout
    {"choices": […], "usage": {…}}                                                  OpenAI's
    {"object": "response", "output": [{"type": "message" | "reasoning" | "function_call", …}]}    of gpt-oss
    "…"                                                                             a text alone
    {"result": any of these, "success": true, "errors": []}                         over REST

The shapes are those of workerd's types and Cloudflare's documentation (2026-08), not yet compared with the live
service.
"""

import json
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.json_fields import objects_in

WHOLE = ("choices", "response", "tool_calls", "output", "result")  # a document has at least one of them
TEXT = "response"  # the field a text alone stands for
REASONING = "reasoning"  # the field of a message in which a model wants its thoughts back


def as_chat(payload: JsonObject) -> JsonObject:
    """The same in OpenAI's form; errors stay as they came."""
    if "result" in payload and not payload.get("errors"):
        result = payload["result"]
        return as_chat(cast(JsonObject, result) if isinstance(result, dict) else {TEXT: result})
    if "choices" in payload:
        choices: Any = payload["choices"]
        return {**payload, "choices": [_one_reasoning(one) for one in cast(list[Any], choices or [])]}
    if payload.get("object") == "response":
        return _of_output(payload)
    if TEXT in payload or "tool_calls" in payload:
        delta = {"content": _text(payload.get(TEXT)), "tool_calls": payload.get("tool_calls")}
        return _chunk(payload, delta, payload.get("finish_reason"))
    return payload


def _chunk(payload: JsonObject, delta: JsonObject, finish: Any) -> JsonObject:
    """Usage and errors are where they were."""
    return {**payload, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _text(response: Any) -> str:
    """In JSON mode the answer may come as the value it stands for."""
    return response if isinstance(response, str) else "" if response is None else json.dumps(response)


def _one_reasoning(choice: Any) -> Any:
    """Thoughts come as `reasoning_content` or as `reasoning`, and go back as the latter."""
    if not isinstance(choice, dict):
        return choice
    fields = cast(JsonObject, choice)
    part = "delta" if "delta" in fields else "message"
    said: Any = fields.get(part)
    if not isinstance(said, dict) or "reasoning_content" not in said:
        return fields
    told = {**cast(JsonObject, said)}
    thought = told.pop("reasoning_content")
    return {**fields, part: {**told, REASONING: told.get(REASONING) or thought}}


def _of_output(payload: JsonObject) -> JsonObject:
    text, thought, calls = "", "", list[JsonObject]()
    for item in objects_in(payload, "output"):
        parts = objects_in(item, "content") + objects_in(item, "summary")
        said = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if item.get("type") == "function_call":
            calls.append({"id": item.get("call_id"), "name": item.get("name"), "arguments": item.get("arguments")})
        elif item.get("type") == "reasoning":
            thought += said
        else:
            text += said
    cut = payload.get("status") == "incomplete"
    return _chunk(payload, {"content": text, REASONING: thought, "tool_calls": calls}, "length" if cut else "stop")
