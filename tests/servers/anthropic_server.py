"""A model server of Anthropic's wire that does as it is told: scenarios.py says what it may be told.

    python -m tests.servers.anthropic_server --port 8099 [--script FILE.json]

Each request has to keep the rules of the Messages API (tests/wire/anthropic_rules.py) and gets the first one it breaks
as a 400. Thoughts are signed, so that one that comes back changed is refused. An answer of a script may hold `json`:
where a form is asked for, it is given in that form; and `search`: a query that runs at the provider, which pauses.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tests.servers.scenarios import WORDS, Json, Seen, pieces
from tests.servers.scripted_server import ScriptedServer, run
from tests.wire.anthropic_rules import faults

PREFIX = 100  # tokens of one turn that a cache can hold
UNCACHED = 10
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}

_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "paused": "pause_turn"}


class AnthropicServer(ScriptedServer):
    def asked(self, address: str) -> Json | None:
        return {} if address == f"{self.base}/messages" else None

    def conversation(self, body: Json) -> list[tuple[str, str]]:
        return [
            (
                "model" if message["role"] == "assistant" else message["role"],
                " ".join(block["text"] for block in message["content"] if block["type"] == "text"),
            )
            for message in body["messages"]
        ]

    def turn_of_run(self, body: Json) -> int:
        return sum(any(block["type"] == "tool_use" for block in message["content"]) for message in body["messages"])

    def parameters(self, body: Json) -> dict[str, Json]:
        return {tool["name"]: tool["input_schema"] for tool in body.get("tools", [])}

    def cap(self, body: Json) -> int | None:
        return body["max_tokens"]

    def failure(self, seen: Seen, name: str, numbers: list[int]) -> tuple[int, bytes, dict[str, str]] | None:
        for fault in faults(seen.body, seen.headers, _is_ours):
            return 400, self.error(400, fault, ""), {}
        return super().failure(seen, name, numbers)

    def error(self, status: int, message: str, code: str) -> bytes:
        told = "prompt is too long: 9 tokens > 8 maximum" if code == "context_length_exceeded" else message
        error = {"type": _TYPES.get(status, "api_error"), "message": told}
        return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()

    def document(self, seen: Seen) -> Json:
        content = [{"type": "text", "text": "".join(WORDS)}]
        return {**_message(seen), "content": content, "stop_reason": "end_turn", "usage": _usage(seen, len(WORDS))}

    def opening(self, seen: Seen) -> str:
        return _frame("message_start", message={**_message(seen), "usage": _usage(seen, 1)})

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        yield self.opening(seen)
        blocks = list(_blocks(seen, answer))
        for index, (start, deltas) in enumerate(blocks):
            yield from _block(index, start, deltas)
        thoughts = len(answer.get("reasoning", "").split()) if _thinks(seen.body) else 0
        calls = any(start["type"] == "tool_use" for start, _ in blocks)
        reason = _REASONS[answer["finish"]] if "finish" in answer else "tool_use" if calls else "end_turn"
        yield from _end(seen, reason, thoughts + max(1, len(answer.get("text", "").split())), thoughts)

    def told(self, seen: Seen, name: str, said: list[str]) -> Iterator[str]:
        yield self.opening(seen)
        if name == "refuse":
            explanation = {"type": "refusal", "category": "cyber", "explanation": "I cannot help with that."}
            yield from _end(seen, "refusal", 6, stop_details=explanation)
            return
        frames = list(_block(0, {"type": "text", "text": ""}, [_text(word) for word in said]))
        yield from frames[:-1] if name == "cut" else frames
        if name == "error-in-stream":
            yield _frame("error", error={"type": "overloaded_error", "message": "Overloaded"})
        elif name != "cut":
            end = list(_end(seen, "max_tokens" if name == "length" else "end_turn", len(said)))
            yield from end[:1] if name.startswith("late") else end


def _blocks(seen: Seen, answer: Json) -> Iterator[tuple[Json, list[Json]]]:
    """Each block's start and deltas."""
    thought = answer.get("reasoning")
    if thought and _thinks(seen.body):
        shown = seen.body.get("thinking", {}).get("display") != "omitted"
        told = pieces(thought) if shown else []
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in told]
        signed = {"type": "signature_delta", "signature": _signature("".join(told))}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if "json" in answer and (tool := _demanded(seen.body)):
        yield _call("toolu_answer", tool, answer["json"])
        return
    formed = "json" in answer and "format" in seen.body.get("output_config", {})
    if text := json.dumps(answer["json"]) if formed else answer.get("text", ""):
        yield {"type": "text", "text": ""}, [_text(piece) for piece in pieces(text)]
    if "search" in answer:
        start, deltas = _call("srvtoolu_0", "web_search", {"query": answer["search"]})
        yield {**start, "type": "server_tool_use"}, deltas
    for number, call in enumerate(answer.get("calls", [])):
        yield _call(f"toolu_{number}", call["name"], call["arguments"])


def _call(id_: str, name: str, arguments: Any) -> tuple[Json, list[Json]]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    middle = len(text) // 2
    parts = ["", text[:middle], text[middle:]]
    start: Json = {"type": "tool_use", "id": id_, "name": name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def _block(index: int, start: Json, deltas: list[Json]) -> Iterator[str]:
    yield _frame("content_block_start", index=index, content_block=start)
    for delta in deltas:
        yield _frame("content_block_delta", index=index, delta=delta)
    yield _frame("content_block_stop", index=index)


def _end(seen: Seen, reason: str, tokens: int, thoughts: int = 0, **more: Any) -> Iterator[str]:
    usage = _usage(seen, tokens) | ({"output_tokens_details": {"thinking_tokens": thoughts}} if thoughts else {})
    yield _frame("message_delta", delta={"stop_reason": reason, "stop_sequence": None, **more}, usage=usage)
    yield _frame("message_stop")


def _message(seen: Seen) -> Json:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": seen.model, "content": [],
            "stop_reason": None, "stop_sequence": None}  # fmt: skip


def _usage(seen: Seen, tokens: int) -> Json:
    """Each turn reads what the one before it wrote, where its request has marks for the cache."""
    marked = "cache_control" in json.dumps(seen.body)
    before, own = PREFIX * seen.turn, PREFIX
    if not marked:
        return {"input_tokens": UNCACHED + before + own, "output_tokens": tokens}
    return {
        "input_tokens": UNCACHED,
        "cache_creation_input_tokens": own,
        "cache_read_input_tokens": before,
        "output_tokens": tokens,
    }


def _demanded(body: Json) -> str | None:
    """The tool that has to be called; the last one where it may be any."""
    choice = body.get("tool_choice", {})
    if choice.get("type") not in ("any", "tool"):
        return None
    return choice.get("name") or body["tools"][-1]["name"]


def _thinks(body: Json) -> bool:
    """Models of others think unasked."""
    return "claude" not in body["model"] or body.get("thinking", {}).get("type") in ("adaptive", "enabled")


def _is_ours(block: Json) -> bool:
    return block["type"] == "thinking" and block["signature"] == _signature(block["thinking"])


def _signature(thought: str) -> str:
    return hashlib.sha256(thought.encode()).hexdigest()


def _text(piece: str) -> Json:
    return {"type": "text_delta", "text": piece}


def _frame(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


if __name__ == "__main__":
    run(AnthropicServer)
