"""What Anthropic's Messages API refuses, as far as its documentation, its SDK and the errors its users report say.

Written from those alone, without a look at what builds the requests: tests pass every request through it, and the test
server answers with the first fault as the real one would.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = dict[str, Any]
FIELDS = {
    "model", "max_tokens", "messages", "stream", "system", "tools", "tool_choice", "thinking", "output_config",
    "metadata", "temperature", "top_p", "top_k", "stop_sequences", "service_tier",
}  # fmt: skip
EFFORTS = {"low", "medium", "high", "xhigh", "max"}
NO_DISABLED = re.compile("claude-(fable-5|mythos|opus-5-5|sonnet-5-5)")
NO_BUDGET = re.compile("claude-(fable-5|mythos|(opus|sonnet|haiku)-5|opus-4-[78])")
ADAPTIVE = re.compile("claude-(fable-5|mythos|(opus|sonnet|haiku)-5|(opus|sonnet)-4-[678])")
BY_DEFAULT = re.compile("claude-(fable-5|mythos|(opus|sonnet|haiku)-5-5|opus-5)")
NO_FORCED = re.compile("claude-(fable-5|mythos|opus-5-5|sonnet-5-5)")
NO_SCHEMA = re.compile("claude-(3|opus-4-2|opus-4-0|sonnet-4-2|sonnet-4-0)")
MOST_OUTPUT = {"claude-3-haiku": 4_096, "claude-3-5": 8_192, "claude-opus-4-1": 32_000, "claude-sonnet-4-5": 64_000}
BLOCKS = {
    "user": {"text", "tool_result", "image", "document"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result"},
}
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
THOUGHTS = {"thinking", "redacted_thinking"}
BINDING = "thinking-binding-controls-2026-08-01"


def faults(body: Json, headers: Mapping[str, str], is_ours: Callable[[Json], bool] | None = None) -> list[str]:
    """Everything wrong with a request. `is_ours`: whether a thought is one this server gave, unchanged."""
    return list(_faults(body, headers, is_ours or (lambda block: True)))


def _faults(body: Json, headers: Mapping[str, str], is_ours: Callable[[Json], bool]) -> Iterator[str]:
    yield from _of_headers(headers)
    yield from (f"{name}: Extra inputs are not permitted" for name in body.keys() - FIELDS)
    if missing := {"model", "max_tokens", "messages"} - body.keys():
        yield f"{', '.join(sorted(missing))}: Field required"
        return
    most = next((most for name, most in MOST_OUTPUT.items() if body["model"].startswith(name)), 128_000)
    if not isinstance(body["max_tokens"], int) or not 1 <= body["max_tokens"] <= most:
        yield f"max_tokens: {body['max_tokens']} is not from 1 to {most}"
    yield from _of_tools(body)
    yield from _of_thinking(body, headers)
    yield from _of_output_config(body)
    yield from _of_cache_marks(body)
    yield from _of_messages(body, is_ours)


def _of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    if not headers.get("x-api-key") and not headers.get("authorization"):
        yield "x-api-key header is required"
    if headers.get("anthropic-version") != "2023-06-01":
        yield "anthropic-version: header is required"
    if headers.get("content-type") != "application/json":
        yield "content-type: must be application/json"


def _of_tools(body: Json) -> Iterator[str]:
    tools: list[Json] | None = body.get("tools")
    if tools == []:
        yield "tools: must not be empty"
    names = [tool.get("name", "") for tool in tools or []]
    if len(set(names)) != len(names):
        yield "tools: Tool names must be unique"
    for number, tool in enumerate(tools or []):
        schema = tool.get("input_schema", {})
        if not re.fullmatch("[a-zA-Z0-9_-]{1,128}", names[number]):
            yield f"tools.{number}.name: does not match the pattern"
        if tool.get("description") == "":
            yield f"tools.{number}.description: must not be empty"
        if schema.get("type") != "object" or {"anyOf", "oneOf", "allOf"} & schema.keys():
            yield f"tools.{number}.input_schema: must be an object without anyOf, oneOf and allOf at its root"
    if (choice := body.get("tool_choice")) is not None:
        yield from _of_tool_choice(body, choice, names)


def _of_tool_choice(body: Json, choice: Json, names: list[str]) -> Iterator[str]:
    kind = choice.get("type")
    if kind not in ("auto", "any", "tool", "none") or not names:
        yield "tool_choice: wrong type, or no tools"
    if kind == "tool" and choice.get("name") not in names:
        yield "tool_choice.name: no such tool"
    if kind in ("any", "tool") and NO_FORCED.match(body["model"]):
        yield "tool_choice: this model does not support forcing a tool"
    if kind in ("any", "tool") and body.get("thinking", {}).get("type") == "enabled":
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _of_thinking(body: Json, headers: Mapping[str, str]) -> Iterator[str]:
    config, model = body.get("thinking"), body["model"]
    if config is None:
        return
    kind, keys = config.get("type"), config.keys()
    may = {
        "enabled": not NO_BUDGET.match(model) and keys <= {"type", "budget_tokens", "display"},
        "adaptive": ADAPTIVE.match(model) and keys <= {"type", "display", "block_binding"},
        "disabled": not NO_DISABLED.match(model) and keys == {"type"},
        "between_tools": model.startswith("claude-sonnet-5-5") and keys <= {"type", "display", "block_binding"},
    }
    if not may.get(kind):
        yield f'"thinking.type.{kind}" is not supported for this model, or not with {sorted(keys)}.'
    budget = config.get("budget_tokens", 0)
    if kind == "enabled" and not (isinstance(budget, int) and 1_024 <= budget < body["max_tokens"]):
        yield "thinking.enabled.budget_tokens: must be 1024 or more and less than max_tokens"
    if config.get("display") not in (None, "summarized", "omitted"):
        yield "thinking.display: unexpected value"
    if "block_binding" in config and BINDING not in headers.get("anthropic-beta", ""):
        yield "thinking.block_binding: Extra inputs are not permitted"


def _of_output_config(body: Json) -> Iterator[str]:
    config, model = body.get("output_config", {}), body["model"]
    effort, wanted = config.get("effort"), config.get("format")
    if effort is not None and (effort not in EFFORTS or not ADAPTIVE.match(model)):
        yield f"This model does not support effort level '{effort}'."
    if effort in ("xhigh", "max") and body.get("thinking", {}).get("type") == "disabled":
        yield "output_config.effort: at most high while thinking is disabled"
    if wanted is not None and NO_SCHEMA.match(model):
        yield "output_config.format: not supported by this model"
    if wanted is not None and (wanted.get("type") != "json_schema" or not isinstance(wanted.get("schema"), dict)):
        yield "output_config.format: must be json_schema with a schema"


def _of_cache_marks(body: Json) -> Iterator[str]:
    tools: list[Json] = body.get("tools", [])
    told = [block for message in body["messages"] for block in _blocks(message)]
    marked = [block for block in [*tools, *_system(body), *told] if "cache_control" in block]
    if len(marked) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    ttls = [block["cache_control"].get("ttl", "5m") for block in marked]
    if ttls != sorted(ttls):  # 1h before 5m
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    for block in marked:
        mark = block["cache_control"]
        if (
            mark.get("type") != "ephemeral"
            or mark.keys() - {"type", "ttl"}
            or mark.get("ttl", "5m") not in ("5m", "1h")
        ):
            yield "cache_control: malformed"
        if block.get("type") in THOUGHTS:
            yield "cache_control cannot be set on thinking blocks"


def _of_messages(body: Json, is_ours: Callable[[Json], bool]) -> Iterator[str]:
    messages: list[Json] = body["messages"]
    for block in _system(body):
        if block.get("type") != "text" or not block.get("text", "").strip():
            yield "system: text content blocks must be non-empty"
    if not messages or messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
        return
    for number, message in enumerate(messages):
        if number and message["role"] == messages[number - 1]["role"]:
            yield f"messages.{number}: roles must alternate"
        yield from _of_blocks(number, message, is_ours)
    yield from _of_pairs(messages)
    uses = [block for message in messages for block in _blocks(message) if block["type"] == "tool_use"]
    if uses and not body.get("tools"):
        yield "Requests which include tool_use or tool_result blocks must define tools"
    ids = [use["id"] for use in uses]
    if len(set(ids)) != len(ids):
        yield "messages: tool_use ids must be unique"
    if messages[-1]["role"] == "assistant" and _blocks(messages[-1])[-1]["type"] in ("text", "tool_use"):
        yield "This model does not support assistant message prefill."
    yield from _of_thoughts(body)


def _of_blocks(number: int, message: Json, is_ours: Callable[[Json], bool]) -> Iterator[str]:
    blocks = _blocks(message)
    if not blocks:
        yield f"messages.{number}: content must be non-empty"
        return
    for place, block in enumerate(blocks):
        at, kind = f"messages.{number}.content.{place}", block["type"]
        if kind not in BLOCKS[message["role"]]:
            yield f"{at}: {kind} has no place in the {message['role']}'s turn"
        elif not _well_formed(block):
            yield f"{at}: {kind} is malformed"
        if kind == "tool_result" and any(other["type"] != "tool_result" for other in blocks[:place]):
            yield f"{at}: tool_result blocks must come before other content"
        if kind in THOUGHTS and not is_ours(block):
            yield f"{at}: Invalid `signature` in `thinking` block"
    if message["role"] == "assistant" and blocks[-1]["type"] in THOUGHTS:
        yield f"messages.{number}: The final block in an assistant message cannot be `thinking`."


def _well_formed(block: Json) -> bool:
    match block["type"]:
        case "text":
            return bool(block["text"].strip())
        case "tool_use":
            return bool(re.fullmatch("[a-zA-Z0-9_-]+", block["id"]) and block["name"]) and type(block["input"]) is dict
        case "thinking":
            return isinstance(block["thinking"], str) and bool(block["signature"])
        case "redacted_thinking":
            return bool(block["data"])
        case "image" | "document":
            return _sourced(block)
        case _:
            return True


def _sourced(block: Json) -> bool:
    more = {"cache_control", "title"} if block["type"] == "document" else {"cache_control"}
    types = ("application/pdf",) if block["type"] == "document" else IMAGES
    source = block["source"]
    fits = source.keys() == {"type", "media_type", "data"} and source["type"] == "base64"
    return (
        fits
        and source["media_type"] in types
        and bool(b64decode(source["data"], validate=True))
        and not (block.keys() - more - {"type", "source"})
    )


def _of_pairs(messages: list[Json]) -> Iterator[str]:
    for number, message in enumerate(messages):
        uses = [block["id"] for block in _blocks(message) if block["type"] == "tool_use"]
        behind = _blocks(messages[number + 1]) if number + 1 < len(messages) else []
        results = [block["tool_use_id"] for block in behind if block["type"] == "tool_result"]
        if message["role"] == "assistant" and sorted(uses) != sorted(results):
            yield f"messages.{number}: `tool_use` ids {uses} and the `tool_result` blocks behind it {results} differ"
    if any(block["type"] == "tool_result" for block in _blocks(messages[0])):
        yield "messages.0: unexpected `tool_use_id` found in `tool_result` blocks"


def _of_thoughts(body: Json) -> Iterator[str]:
    """What of thoughts may stand where, and has to, by whether the model thinks now."""
    messages: list[Json] = body["messages"]
    kind = body.get("thinking", {}).get("type")
    thinks = kind not in (None, "disabled") or (kind is None and bool(BY_DEFAULT.match(body["model"])))
    answers = [message for message in messages if message["role"] == "assistant"]
    if answers and not thinks and any(block["type"] in THOUGHTS for block in _blocks(answers[-1])):
        yield "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."
    opening: Json | None = None
    for message in messages:
        if message["role"] == "assistant":
            opening = opening or message
        elif not any(block["type"] == "tool_result" for block in _blocks(message)):
            opening = None
    if kind == "enabled" and opening is not None and _blocks(opening)[0]["type"] not in THOUGHTS:
        yield "When `thinking` is enabled, a final `assistant` message must start with a thinking block."


def _system(body: Json) -> list[Json]:
    system = body.get("system", [])
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
