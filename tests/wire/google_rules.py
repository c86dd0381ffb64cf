"""What the Gemini API takes, checked strictly: a request that breaks a rule of its documentation is refused here.

Sources: the API's reference of generateContent, its pages on function calling, thinking, structured output and thought
signatures, and the types of python-genai.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
FIELDS = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent"}
GENERATION = {
    "maxOutputTokens", "temperature", "topP", "topK", "seed", "stopSequences", "candidateCount", "presencePenalty",
    "frequencyPenalty", "responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig",
}  # fmt: skip
MEDIA = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf")
DATA = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult")
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
ID = re.compile(r"[a-zA-Z0-9]{9}")
SIGNATURE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
UNSIGNED = "skip_thought_signature_validator"  # documented for calls that did not come from this model
MODES = {"AUTO", "ANY", "NONE", "VALIDATED"}
LEVELS = {"gemini-3-pro": {"LOW", "HIGH"}, "gemini-3.1-pro": {"LOW", "MEDIUM", "HIGH"}}
ALL_LEVELS = {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
BUDGETS = {"gemini-2.5-pro": (128, 32_768), "gemini-2.5-flash-lite": (512, 24_576), "gemini-2.5-flash": (0, 24_576)}


class Refused(AssertionError):
    """The words the API would refuse the request with (HTTP 400)."""


def check(model: str, body: Json) -> None:
    """Raises Refused."""
    _known(body, FIELDS, "the request")
    _contents(body)
    if "systemInstruction" in body:
        _known(body["systemInstruction"], {"parts"}, "systemInstruction")
        _must(all(part.keys() == {"text"} and part["text"] for part in body["systemInstruction"]["parts"]), "system")
    declared = set(_declared(body)) if "tools" in body else set[str]()
    _mode(body, declared)
    _generation(model, body.get("generationConfig", {}), with_tools=bool(declared))
    _calls(body["contents"])
    if not model.startswith(("gemini-1", "gemini-2")):
        _signed(body["contents"])


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise Refused(words)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)


def _known(fields: Any, allowed: set[str], where: str) -> None:
    _must(_is(fields, dict), f"{where} is no object")
    unknown = sorted(set(fields) - allowed)
    _must(not unknown, f'Invalid JSON payload received. Unknown name "{unknown and unknown[0]}" at {where}')


# -- turns
def _contents(body: Json) -> None:
    contents = body.get("contents")
    _must(_is(contents, list) and bool(contents), "contents is not specified")
    before = "model"
    for content in body["contents"]:
        _known(content, {"role", "parts"}, "a content")
        _must(content["role"] in ("user", "model"), "Please use a valid role: user, model.")
        _must(content["role"] != before, "multiturn requests alternate between user and model, user first")
        before = content["role"]
        _must(bool(content["parts"]), "contents.parts must not be empty")
        for part in content["parts"]:
            _part(part, content["role"])
    _must(before == "user", "multiturn requests end with a user role or a function response")


def _part(part: Json, role: str) -> None:
    _known(part, {*DATA, "thought", "thoughtSignature"}, "a part")
    data = [name for name in DATA if name in part]
    _must(len(data) == 1 or (not data and "thoughtSignature" in part), "a part holds exactly one kind of data")
    if "thoughtSignature" in part:
        _must(role == "model", "only a model's part is signed")
        _must(bool(SIGNATURE.fullmatch(part["thoughtSignature"])), "thoughtSignature: Base64 decoding failed")
    if "text" in part:
        _must(_is(part["text"], str), "text is a string")
        _must(bool(part["text"]) or "thoughtSignature" in part, "Unable to submit request: a text is empty")
    if "inlineData" in part:
        _must(role == "user", "data stands in a user's turn")
        _known(part["inlineData"], {"mimeType", "data"}, "inline data")
        _must(part["inlineData"]["mimeType"] in MEDIA, f"Unsupported MIME type: {part['inlineData']['mimeType']}")
        _must(bool(b64decode(part["inlineData"]["data"], validate=True)), "inlineData.data: Base64 decoding failed")
    if "functionCall" in part:
        _must(role == "model", "a function call stands in a model's turn")
        _named(part["functionCall"], "args")
    if "functionResponse" in part:
        _must(role == "user", "a function response stands in a user's turn")
        _named(part["functionResponse"], "response")


def _named(call: Json, payload: str) -> None:
    _known(call, {"id", "name", payload}, "a function call or response")
    _must(bool(NAME.fullmatch(call["name"])), f"[FIELD_INVALID] Invalid function name {call['name']!r}")
    _must(bool(ID.fullmatch(call["id"])), f"the id {call['id']!r} is none of ours")
    _must(_is(call[payload], dict), f"{payload} is no Struct")


def _calls(contents: list[Json]) -> None:
    """Every call is answered in the next turn, in order and by id, before anything else is said."""
    seen: list[str] = []
    for number, content in enumerate(contents):
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        before: list[Json] = contents[number - 1]["parts"] if number else []
        calls = [part["functionCall"] for part in before if "functionCall" in part]
        if content["role"] == "user":
            words = (
                "function response parts is not equal to the number of function call parts of the function call turn"
            )
            _must([_who(one) for one in answers] == [_who(one) for one in calls], words)
            leading = content["parts"][: len(answers)]
            _must(all("functionResponse" in part for part in leading), "function responses come first")
        seen += [part["functionCall"]["id"] for part in content["parts"] if "functionCall" in part]
    _must(len(seen) == len(set(seen)), "an id stands for two calls")


def _who(call: Json) -> tuple[str, str]:
    return call["id"], call["name"]


def _signed(contents: list[Json]) -> None:
    """In the current turn, which begins with what the user said last."""
    for content in reversed(contents):
        if any("text" in part for part in content["parts"]) and content["role"] == "user":
            return
        first = next((part for part in content["parts"] if "functionCall" in part), None)
        words = "Function call is missing a thought_signature in functionCall parts"
        _must(first is None or "thoughtSignature" in first, words)


# -- tools
def _declared(body: Json) -> Iterator[str]:
    _must(_is(body["tools"], list) and bool(body["tools"]), "tools is empty")
    names: list[str] = []
    for tool in body["tools"]:
        _known(tool, {"functionDeclarations"}, "a tool")
        _must(bool(tool["functionDeclarations"]), "tools[0].function_declarations: should not be empty")
        for function in tool["functionDeclarations"]:
            _known(function, {"name", "description", "parameters", "parametersJsonSchema"}, "a function declaration")
            _must(bool(NAME.fullmatch(function["name"])), f"Invalid function name {function['name']!r}")
            _must(not {"parameters", "parametersJsonSchema"} <= function.keys(), "two kinds of parameters")
            _must(function.get("parametersJsonSchema", {"type": "object"}).get("type") == "object", "no object")
            _schema(function.get("parametersJsonSchema", {}))
            names.append(function["name"])
    _must(len(names) == len(set(names)), f"Duplicate function declaration found: {names}")
    yield from names


def _mode(body: Json, declared: set[str]) -> None:
    if "toolConfig" not in body:
        return
    _must(bool(declared), "Function calling config is set without function_declarations")
    _known(body["toolConfig"], {"functionCallingConfig"}, "toolConfig")
    config = body["toolConfig"]["functionCallingConfig"]
    _known(config, {"mode", "allowedFunctionNames"}, "functionCallingConfig")
    _must(config["mode"] in MODES, f"Invalid value at mode: {config['mode']}")
    allowed = set(config.get("allowedFunctionNames", ()))
    _must(not allowed or config["mode"] in ("ANY", "VALIDATED"), "allowed_function_names: only when mode is ANY")
    _must(allowed <= declared, "allowed_function_names: no such function")


def _schema(schema: Any) -> None:
    """References stay inside the document."""
    if _is(schema, dict):
        _must(str(schema.get("$ref", "#")).startswith("#"), "a reference leaves the schema")
        for value in schema.values():
            _schema(value)
    elif _is(schema, list):
        for value in schema:
            _schema(value)


# -- generationConfig
def _generation(model: str, config: Json, *, with_tools: bool) -> None:
    _known(config, GENERATION, "generationConfig")
    _must(config.get("maxOutputTokens", 1) >= 1, "max_output_tokens must be positive")
    schemas = {"responseSchema", "responseJsonSchema"} & config.keys()
    _must(len(schemas) < 2, "only one kind of response schema may be set")
    mime = config.get("responseMimeType", "text/plain")
    _must(not schemas or mime == "application/json", "response_schema needs response_mime_type application/json")
    refused = with_tools and mime == "application/json" and model.startswith(("gemini-1", "gemini-2"))
    _must(not refused, "Function calling with a response mime type: 'application/json' is unsupported")
    _schema(config.get("responseJsonSchema", {}))
    if "thinkingConfig" in config:
        _thinking(model, config["thinkingConfig"])


def _thinking(model: str, config: Json) -> None:
    _known(config, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "thinkingConfig")
    _must(bool(config), "thinkingConfig is empty")
    _must(
        not {"thinkingBudget", "thinkingLevel"} <= config.keys(),
        "You can only set only one of thinking budget and level",
    )
    _must(not model.startswith(("gemini-1", "gemini-2.0")), "Thinking is not enabled for this model")
    budget, level = config.get("thinkingBudget"), config.get("thinkingLevel")
    if model.startswith("gemini-2.5"):
        _must(level is None, "Thinking level is not supported for this model.")
        low, high = next(bounds for name, bounds in BUDGETS.items() if model.startswith(name))
        can_stop = low != BUDGETS["gemini-2.5-pro"][0]
        _must(
            budget is None or low <= budget <= high or (budget == 0 and can_stop),
            f"The thinking budget {budget} is invalid",
        )
        rests = budget == 0 or (budget is None and model.startswith("gemini-2.5-flash-lite"))
        _must(
            not rests or not config.get("includeThoughts"),
            "include_thoughts is only enabled when thinking is enabled",
        )
    else:
        _must(budget is None, "a thinking budget is no way to ask this model")
        allowed = next((levels for name, levels in LEVELS.items() if model.startswith(name)), ALL_LEVELS)
        _must(level is None or level in allowed, f"Thinking level {level} is not supported for this model.")
