"""What chat completions take, checked strictly: a request that breaks a rule of the API's reference is refused here.

Sources: OpenAI's reference of chat completions and its page on structured outputs; Mistral's and Moonshot's pages where
they are stricter (ids, tool_choice)."""

import json
import re
from typing import Any

from jsonschema import Draft202012Validator

Json = dict[str, Any]
FIELDS = {
    "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "tools", "tool_choice",
    "response_format", "temperature", "reasoning_effort", "prompt_cache_key",
}  # fmt: skip
# Fields that only some servers know, by profile.
OWN_FIELDS = {
    "openrouter": {"reasoning"}, "vercel": {"reasoning"}, "zai": {"thinking"}, "moonshot": {"thinking"},
    "deepseek": {"thinking"}, "vllm": {"chat_template_kwargs"}, "llama-server": {"chat_template_kwargs"},
}  # fmt: skip
ANSWER_FIELDS = {"role", "content", "tool_calls"}
OWN_ANSWER_FIELDS = {
    "openrouter": {"reasoning_details"},
    **{name: {"reasoning_content"} for name in ("deepseek", "moonshot", "zai", "fireworks", "llama-server")},
}  # fmt: skip
IMAGE = re.compile("data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")
NAME = re.compile("[a-zA-Z0-9_-]{1,64}")
ID = re.compile("[a-zA-Z0-9]{9}")  # Mistral's rule; every other server takes such ids as well
EFFORTS = {"none", "minimal", "low", "medium", "high", "xhigh"}
STRICT_WORDS = {
    "type", "title", "description", "enum", "properties", "required", "items", "anyOf", "additionalProperties",
    "pattern", "format", "multipleOf", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum",
}  # fmt: skip


class Refused(AssertionError):
    """The words a server would refuse the request with (HTTP 400)."""


def check(body: Json, profile: str = "default") -> None:
    """Raises Refused."""
    _known(body, FIELDS | OWN_FIELDS.get(profile, set()), "the request")
    _must(not {"max_tokens", "max_completion_tokens"} <= body.keys(), "two caps of the output")
    _must("stream_options" not in body or body.get("stream") is True, "stream_options without a stream")
    _must(body.get("reasoning_effort", "low") in EFFORTS, "reasoning_effort")
    names = _tools(body)
    _choice(body, names, profile)
    if "response_format" in body:
        _format(body["response_format"], profile)
    _messages(body["messages"], OWN_ANSWER_FIELDS.get(profile, set()))


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise Refused(words)


def _known(fields: Json, allowed: set[str], where: str) -> None:
    unknown = sorted(fields.keys() - allowed)
    _must(not unknown, f"unknown fields {unknown} in {where}")


def _tools(body: Json) -> list[str]:
    if "tools" not in body:
        return []
    _must(bool(body["tools"]), "an empty list of tools")
    names: list[str] = []
    for tool in body["tools"]:
        _must(tool.keys() == {"type", "function"} and tool["type"] == "function", "a tool that is no function")
        function: Json = tool["function"]
        _known(function, {"name", "description", "parameters", "strict"}, "a function")
        _must(NAME.fullmatch(function["name"]) is not None, f"the name {function['name']}")
        _root(function["parameters"], strict=function.get("strict", False))
        names.append(function["name"])
    _must(len(names) == len(set(names)), "two tools of one name")
    return names


def _choice(body: Json, names: list[str], profile: str) -> None:
    choice = body.get("tool_choice", "auto")
    _must("tool_choice" not in body or bool(names), "tool_choice without tools")
    _must(choice in ({"auto", "none"} if profile == "moonshot" else {"auto", "none", "required"}), "tool_choice")


def _format(form: Json, profile: str) -> None:
    _must(form.keys() == {"type", "json_schema"} and form["type"] == "json_schema", "response_format")
    _known(form["json_schema"], {"name", "schema", "strict"}, "json_schema")
    _must(NAME.fullmatch(form["json_schema"]["name"]) is not None, "the name of a schema")
    if profile == "small":  # a grammar of llama.cpp, which takes a choice at the root
        Draft202012Validator.check_schema(form["json_schema"]["schema"])
    elif form["json_schema"].get("strict"):
        _root(form["json_schema"]["schema"], strict=True)


def _root(schema: Json, *, strict: bool) -> None:
    Draft202012Validator.check_schema(schema)
    _must(schema.get("type") == "object" and "properties" in schema, "parameters are no object with properties")
    _must(not {"anyOf", "oneOf", "allOf", "enum", "not"} & schema.keys(), "a choice at the root")
    if strict:
        _strict(schema)


def _strict(schema: Json) -> None:
    _known(schema, STRICT_WORDS, "a strict schema")
    _must("type" in schema or "anyOf" in schema, "a strict schema without a type")
    if "object" in schema.get("type", ()):
        _must(schema.get("additionalProperties") is False, "an open object")
        _must(set(schema["required"]) == set(schema["properties"]), "an optional property")
    for inner in (
        *schema.get("properties", {}).values(),
        *schema.get("anyOf", []),
        *([schema["items"]] if "items" in schema else []),
    ):
        _strict(inner)


def _content(parts: list[Json]) -> None:
    _must(bool(parts), "content without parts")
    for part in parts:
        match part["type"]:
            case "text":
                _must(part.keys() == {"type", "text"} and bool(part["text"]), "a text")
            case "image_url":
                _must(part.keys() == {"type", "image_url"}, "an image")
                _known(part["image_url"], {"url", "detail"}, "an image's address")
                _must(part["image_url"].get("detail", "auto") in {"auto", "low", "high"}, "detail")
                _must(bool(IMAGE.match(part["image_url"]["url"])), "an image that is no data: address")
            case "file":
                _must(part.keys() == {"type", "file"} and part["file"].keys() == {"filename", "file_data"}, "a file")
                _must(part["file"]["file_data"].startswith("data:application/pdf;base64,"), "a file that is no PDF")
            case other:
                raise Refused(f"a part of type {other}")


def _messages(messages: list[Json], own: set[str]) -> None:
    waiting: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        role = message.get("role")
        _must(role in {"system", "user", "assistant", "tool"}, f"the role {role}")
        _must(role != "system" or at == 0, "a system prompt further in")
        content: Any = message.get("content")
        if role == "user" and not isinstance(content, str):
            _content(content)
        else:
            _must(isinstance(content, str), "content that is no text")
        if role == "tool":
            _must(message.keys() == {"role", "tool_call_id", "content"}, "fields of a result")
            _must(message["tool_call_id"] in waiting, "a result without its call")
            waiting.remove(message["tool_call_id"])
            continue
        _must(not waiting, f"calls without results: {waiting}")
        _known(message, (ANSWER_FIELDS | own) if role == "assistant" else {"role", "content"}, f"a message of {role}")
        waiting = [_call(call) for call in message.get("tool_calls", [])]
        _must("tool_calls" not in message or bool(waiting), "an empty list of calls")
        _must(len(waiting) == len(set(waiting)) and not seen & set(waiting), "an id used twice")
        _must(role != "assistant" or bool(message["content"] or waiting), "an empty answer")
        seen |= set(waiting)
    _must(not waiting, f"calls without results: {waiting}")


def _call(call: Json) -> str:
    _known(call, {"id", "type", "function", "extra_content"}, "a call")
    _must(call.get("type") == "function", "the type of a call")
    _must(ID.fullmatch(call.get("id", "")) is not None, f"the id {call.get('id')}")
    _must(call["function"].keys() == {"name", "arguments"}, "the function of a call")
    _must(NAME.fullmatch(call["function"]["name"]) is not None, "the name of a call")
    _must(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments that are no object")
    return call["id"]
