"""A model server of chat completions that does as it is told: scenarios.py says what it may be told.

    python -m tests.servers.model_server --port 8099 [--script FILE.json]

One more of them: count-N, some text and a call with the number after that of the newest call, up to N, then a text: for
runs whose earlier rounds are no longer shown. An answer of a script may hold `content`: raw text in one piece. In
arguments of calls $call-N stands for the id of the N-th call that was answered in the conversation, from 0.
"""

import json
import re
from collections.abc import Callable, Iterator

from tests.servers.scenarios import WORDS, Json, Seen, pieces
from tests.servers.scripted_server import ScriptedServer, run

_CALL = re.compile(r"\$call-(\d+)")


class ModelServer(ScriptedServer):
    def asked(self, address: str) -> Json | None:
        return {} if address == f"{self.base}/chat/completions" else None

    def conversation(self, body: Json) -> list[tuple[str, str]]:
        told: list[Json] = body["messages"]
        return [("model" if one["role"] == "assistant" else one["role"], str(one["content"])) for one in told]

    def turn_of_run(self, body: Json) -> int:
        return sum(bool(message.get("tool_calls")) for message in body["messages"])

    def parameters(self, body: Json) -> dict[str, Json]:
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", [])}

    def cap(self, body: Json) -> int | None:
        return body.get("max_tokens")

    def error(self, status: int, message: str, code: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "scripted", "code": code}}).encode()

    def document(self, seen: Seen) -> Json:
        choice = {"index": 0, "message": {"content": "".join(WORDS), "tool_calls": None}, "finish_reason": "stop"}
        return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": self.usage(seen, len(WORDS))}

    def frames(self, seen: Seen, name: str, numbers: list[int]) -> Iterator[str]:
        if name == "count" and seen.tools and (at := newest_number(seen.body) + 1) <= numbers[0]:
            call = {"name": seen.tools[0], "arguments": {"number": at}}
            return self.scripted(seen, {"text": "".join(WORDS) * 8, "calls": [call]})
        return super().frames(seen, name, numbers)

    def opening(self, seen: Seen) -> str:
        return _frame(_chunk(seen, {"role": "assistant", "content": ""}))

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        thoughts = len(answer.get("reasoning", "").split())
        return _scripted(seen, answer, lambda tokens: self.usage(seen, tokens, thoughts))

    def told(self, seen: Seen, name: str, said: list[str]) -> Iterator[str]:
        if name == "refuse":
            yield _frame(_chunk(seen, {"role": "assistant", "refusal": "I cannot help with that."}))
            yield from _end(seen, "stop", self.usage(seen, 6))
            return
        yield self.opening(seen)
        for word in said:
            yield _frame(_chunk(seen, {"content": word}))
        if name == "error-in-stream":
            yield _frame({"error": {"message": "The server is overloaded", "type": "server_error", "code": 503}})
        elif name.startswith("late"):
            yield _frame(_chunk(seen, {}, "stop"))
        elif name != "cut":
            yield from _end(seen, "length" if name == "length" else "stop", self.usage(seen, len(said)))

    def usage(self, seen: Seen, tokens: int, thoughts: int = 0) -> Json:
        prompt = 10 * seen.messages
        return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}


def newest_number(body: Json) -> int:
    """What the newest call was made with; 0 where none was."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return int(json.loads(calls[-1]["function"]["arguments"])["number"]) if calls else 0


def _scripted(seen: Seen, answer: Json, usage: Callable[[int], Json]) -> Iterator[str]:
    yield _frame(_chunk(seen, {"role": "assistant", "content": None}))
    if answer.get("reasoning"):
        yield _frame(_chunk(seen, {"reasoning_content": answer["reasoning"]}))
    said = [answer["content"]] if "content" in answer else pieces(answer.get("text", ""))
    for piece in said:
        yield _frame(_chunk(seen, {"content": piece}))
    answered = [message["tool_call_id"] for message in seen.body["messages"] if message["role"] == "tool"]
    for index, call in enumerate(answer.get("calls", [])):
        arguments = call["arguments"] if isinstance(call["arguments"], str) else json.dumps(call["arguments"])
        arguments = _CALL.sub(lambda match: answered[int(match[1])], arguments)
        function = {"name": call["name"], "arguments": ""}
        head = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        yield _frame(_chunk(seen, {"tool_calls": [head]}))
        middle = len(arguments) // 2
        for piece in (arguments[:middle], arguments[middle:]):
            yield _frame(_chunk(seen, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    reason = "tool_calls" if answer.get("calls") else "stop"
    yield from _end(seen, answer.get("finish", reason), usage(max(1, len(said))))


def _end(seen: Seen, reason: str, usage: Json) -> Iterator[str]:
    yield _frame(_chunk(seen, {}, reason))
    if seen.body.get("stream_options", {}).get("include_usage"):
        yield _frame({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _chunk(seen: Seen, delta: Json, reason: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": seen.model, "choices": [choice]}


def _frame(payload: Json) -> str:
    return f"data: {json.dumps(payload)}\n\n"


if __name__ == "__main__":
    run(ModelServer)
