"""A model server of Gemini's wire that does as it is told: scenarios.py says what it may be told.

    python -m tests.servers.google_server --port 8099 [--script FILE.json]

Each request has to keep the rules of the API (tests/wire/google_rules.py), or is refused with the words of the first it
breaks. Calls and the ends of texts are signed, so that a signature in another part than its own is refused. An answer
of a script may hold `json`: where a form is asked for, that is given. A 429 says in its body how long to wait.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from tests.servers.scenarios import WORDS, Json, Seen, pieces
from tests.servers.scripted_server import ScriptedServer, run
from tests.wire.google_rules import UNSIGNED, Refused, check

KEY_HEADER = "x-goog-api-key"
PER_TURN = 10  # tokens of one turn of the prompt
_STATUSES = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
_TOLD: dict[str | int, str] = {
    "context_length_exceeded": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    503: "The model is overloaded. Please try again later.",
}
_REASONS = {"stop": "STOP", "length": "MAX_TOKENS"}  # as scripts call them; others go out as they are


class GoogleServer(ScriptedServer):
    base = "/v1beta"

    def asked(self, address: str) -> Json | None:
        asked = re.fullmatch(rf"{self.base}/models/([^/:]+):streamGenerateContent\?alt=sse", address)
        return {"model": asked[1]} if asked else None

    def conversation(self, body: Json) -> list[tuple[str, str]]:
        return [(content["role"], " ".join(_texts(content))) for content in body["contents"]]

    def turn_of_run(self, body: Json) -> int:
        return sum(any("functionCall" in part for part in content["parts"]) for content in body["contents"])

    def parameters(self, body: Json) -> dict[str, Json]:
        declared = [function for tool in body.get("tools", []) for function in tool["functionDeclarations"]]
        return {function["name"]: function["parametersJsonSchema"] for function in declared}

    def cap(self, body: Json) -> int | None:
        return body.get("generationConfig", {}).get("maxOutputTokens")

    def failure(self, seen: Seen, name: str, numbers: list[int]) -> tuple[int, bytes, dict[str, str]] | None:
        if KEY_HEADER not in seen.headers:
            return 403, self.error(403, "Method doesn't allow unregistered callers", ""), {}
        try:
            check(seen.model, {name: value for name, value in seen.body.items() if name != "model"})
            _check_signatures(seen.body["contents"])
        except Refused as fault:
            return 400, self.error(400, str(fault), ""), {}
        refused = super().failure(seen, name, numbers)
        if refused and "retry_after" in refused[2]:
            return 429, self.error(429, "Quota exceeded", "", retry_after=refused[2]["retry_after"]), {}
        return refused

    def error(self, status: int, message: str, code: str, *, retry_after: str | None = None) -> bytes:
        told = _TOLD.get(code) or _TOLD.get(status, message)
        error: Json = {"code": status, "message": told, "status": _STATUSES.get(status, "INTERNAL")}
        if retry_after is not None:
            error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after}s"}]
        return json.dumps({"error": error}).encode()

    def document(self, seen: Seen) -> Json:
        return _chunk(seen, {"text": "".join(WORDS)}, tokens=len(WORDS), finish="STOP")

    def opening(self, seen: Seen) -> str:
        return _frame(_chunk(seen))

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        return _scripted(seen, answer)

    def told(self, seen: Seen, name: str, said: list[str]) -> Iterator[str]:
        if name == "refuse":
            yield _frame(_chunk(seen, {"text": "I cannot help with that."}, tokens=6, finish="SAFETY"))
            return
        for number, word in enumerate(said, start=1):
            yield _frame(_chunk(seen, {"text": word}, tokens=number))
        if name == "error-in-stream":
            yield _frame({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}})
        elif name != "cut":
            finish = "MAX_TOKENS" if name == "length" else "STOP"
            yield _frame(_chunk(seen, {"text": ""}, tokens=len(said), finish=finish))


def _scripted(seen: Seen, answer: Json) -> Iterator[str]:
    config: Json = seen.body.get("generationConfig", {})
    thoughts = pieces(answer.get("reasoning", ""))
    if config.get("thinkingConfig", {}).get("includeThoughts"):
        for number, thought in enumerate(thoughts, start=1):
            yield _frame(_chunk(seen, {"text": thought, "thought": True}, thoughts=number))
    formed = "json" in answer and "responseJsonSchema" in config
    said = pieces(json.dumps(answer["json"]) if formed else answer.get("text", ""))
    spent: Json = {"thoughts": len(thoughts)}
    for number, piece in enumerate(said, start=1):
        yield _frame(_chunk(seen, {"text": piece}, tokens=number, **spent))
    spent["tokens"] = max(1, len(said))
    calls = [_call(call["name"], call["arguments"]) for call in answer.get("calls", [])]
    for number, call in enumerate(calls):
        signed = {"thoughtSignature": _signature(call)} if number == 0 else {}
        yield _frame(_chunk(seen, {"functionCall": call, **signed}, **spent))
    last = {"text": ""} if calls else {"text": "", "thoughtSignature": _signature("".join(said))}
    reason = answer.get("finish", "stop")
    yield _frame(_chunk(seen, last, finish=_REASONS.get(reason, reason), **spent))


def _chunk(seen: Seen, *parts: Json, tokens: int = 0, thoughts: int = 0, finish: str | None = None) -> Json:
    """The counts are those of the whole call so far; a turn's own prompt is read from the cache later."""
    prompt = PER_TURN * seen.messages
    usage = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": PER_TURN * 2 * seen.turn,
        "candidatesTokenCount": tokens,
        "thoughtsTokenCount": thoughts,
        "totalTokenCount": prompt + tokens + thoughts,
    }
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": seen.model, "responseId": "r1"}


def _call(name: str, arguments: Any) -> Json:
    """Scripts may hold broken text, which this wire has no form for."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {}
    return {"name": name, "args": arguments}


def _signature(signed: Any) -> str:
    return base64.b64encode(hashlib.sha256(json.dumps(signed, sort_keys=True).encode()).digest()).decode()


def _check_signatures(contents: list[Json]) -> None:
    """Raises Refused for a signature that stands in another part than the one it was given for."""
    for content in contents:
        text = "".join(_texts(content))
        for part in content["parts"]:
            call: Json = part.get("functionCall", {})
            own = {name: value for name, value in call.items() if name != "id"} or text
            if part.get("thoughtSignature", UNSIGNED) not in (UNSIGNED, _signature(own)):
                raise Refused("Corrupted thought signature.")


def _texts(content: Json) -> list[str]:
    return [part["text"] for part in content["parts"] if "text" in part]


def _frame(payload: Json) -> str:
    return f"data: {json.dumps(payload)}\r\n\r\n"


if __name__ == "__main__":
    run(GoogleServer)
