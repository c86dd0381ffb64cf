"""An OpenAI-compatible model server that does as it is told, over real sockets: for tests, kills and measurements.

    python tests/servers/model_server.py --port 8099 [--script FILE.json]

Which answer a request gets depends on the request alone, so that a killed and resumed run finds the same model again:
the scenario is the model's name, or else the last word of that form in the newest user message that has one; the turn
is the number of assistant messages. Scenarios:

    text, text-N              a streamed text (of N tokens, or its output cap)
    slow-text-N               the same, a token each 50 ms
    rounds-N, rounds-N-M      N rounds of one tool call each, while tools are offered, then a text of M tokens (200)
    calls-N                   one round of N tool calls, then a text
    count-N                   some text and a call with the number after that of the newest call, up to N, then a text:
                              for runs whose earlier rounds are no longer shown
    refuse                    a refusal                              length        a text cut by the token limit
    hang                      headers, then silence                  silent        not even headers
    html                      an HTML page                           json          a JSON document in place of a stream
    cut                       half a text, then the connection closes
    late-cut, late-hang       a whole text, then the connection breaks off or stays open, without [DONE]
    error-in-stream           half a text, then an error object      overflow      400, the context window is exceeded
    429-retry-after-N         429 with Retry-After: N the first time, then a text
    status-N, status-N-times-M  HTTP N, always or the first M times, then a text

A script is JSON {"scenario": [answer, …]}: the answer of turn n is the n-th (the last one again after that), each
{"text", "reasoning", "calls": [{"name", "arguments"}], "finish", "content": raw text in one piece}, or {"status"} for a
refusal. In arguments $call-N stands for the id of the N-th call that was answered in the conversation, from 0. A
scenario may be a list of cases instead, {"when": [texts of the request], "answers": [answer, …]}: the first that fits.
GET /_log: what was received, in order. POST /_reset forgets it, and the first times. GET /v1/models, /health: it is up.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Request = tuple[str, str, dict[str, str], bytes]  # method, path, headers, body
SLOW = 0.05  # seconds between the tokens of slow-text
_SCENARIO = re.compile(
    r"rounds-\d+(?:-\d+)?|calls-\d+|count-\d+|slow-text(?:-\d+)?|text(?:-\d+)?|429-retry-after-\d+"
    r"|status-\d+(?:-times-\d+)?|error-in-stream|overflow|refuse|length|silent|late-hang|late-cut|hang|html|json|cut"
)
_CALL = re.compile(r"\$call-(\d+)")
WORDS = ("The", " answer", " is", " here", ",", " word", " by", " word", ".")


@dataclass(slots=True)
class Seen:
    """A request to the model. `closed_early`: the client closed the connection before the answer's end."""

    scenario: str
    model: str
    turn: int
    messages: int
    tools: tuple[str, ...]
    body: Json = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    status: int = 200
    chunks: int = 0
    done: bool = False
    closed_early: bool = False


class ClientGone(Exception):
    """The client closed its side."""


class Connection:
    """One HTTP/1.1 connection, as much of it as a model needs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> Request | None:
        """Method, path, headers in lower case, body; None when the client is done."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        first, *lines = head.strip().split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, _ = first.split(" ", 2)
        return method, path, headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def answer(self, status: int, body: bytes, kind: str = "application/json", **more: str) -> None:
        self._head(status, {"content-type": kind, "content-length": str(len(body)), **more})
        self.writer.write(body)
        await self._drain()

    def begin(self, **more: str) -> None:
        self._head(200, {"content-type": "text/event-stream; charset=utf-8", "transfer-encoding": "chunked", **more})

    async def send(self, text: str) -> None:
        data = text.encode()
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._drain()

    async def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self._drain()

    async def until_closed(self, seconds: float | None = None) -> None:
        """Waits; raises ClientGone as soon as the client closes. A client that waits for an answer sends nothing."""
        try:
            if await asyncio.wait_for(self.reader.read(1), seconds) == b"":
                raise ClientGone
        except TimeoutError:
            return
        except ConnectionError:
            raise ClientGone from None

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.writer.write(f"HTTP/1.1 {status} Scripted\r\n{lines}\r\n".encode())

    async def _drain(self) -> None:
        if self.reader.at_eof() or self.writer.is_closing():
            raise ClientGone
        try:
            await self.writer.drain()
        except ConnectionError:
            raise ClientGone from None


class ModelServer:
    """`url` is the base URL for a client. `tool`: what rounds-N calls; the first offered one when empty. `met`: called
    with each request to the model before it is answered.

    What is of one wire is a class of its own over this one (anthropic_server.py): where it is asked, what is seen in a
    request, and the frames of an answer."""

    path = "/v1/chat/completions"

    def __init__(
        self,
        script: Mapping[str, list[Json]] | None = None,
        tool: str = "",
        met: Callable[[Seen], None] = lambda _: None,
    ) -> None:
        self.script, self.tool, self.met = dict(script or {}), tool, met
        self.seen: list[Seen] = []
        self.port = 0
        self._times: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def log(self) -> list[Json]:
        return [asdict(seen) for seen in self.seen]

    def reset(self) -> None:
        self.seen.clear()
        self._times.clear()

    async def until(self, condition: Callable[[list[Seen]], bool], seconds: float = 10) -> None:
        """Returns when what was received meets the condition. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition(self.seen):
                self._changed.clear()
                await self._changed.wait()

    async def serve(self, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def close(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(ClientGone, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                connection = Connection(reader, writer)
                while (request := await connection.request()) and await self._handle(connection, request):
                    pass
        finally:
            self._open.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _handle(self, connection: Connection, request: Request) -> bool:
        """Whether the connection goes on."""
        method, path, headers, body = request
        path = path.partition("?")[0]
        if (method, path) == ("GET", "/_log"):
            await connection.answer(200, json.dumps(self.log()).encode())
        elif (method, path) == ("POST", "/_reset"):
            self.reset()
            await connection.answer(200, b"{}")
        elif path in ("/health", "/v1/models"):
            await connection.answer(200, b'{"object": "list", "data": []}')
        elif (method, path) == ("POST", self.path):
            return await self._complete(connection, headers, json.loads(body))
        else:
            await connection.answer(404, b"<html><body>Not here</body></html>", "text/html")
        return True

    async def _complete(self, connection: Connection, headers: dict[str, str], body: Json) -> bool:
        seen = self.see(body, headers)
        self.met(seen)
        self.seen.append(seen)
        self._changed.set()
        try:
            return await self._play(connection, seen)
        except (ClientGone, ConnectionError):
            seen.closed_early = not seen.done
            return False
        finally:
            self._changed.set()

    def see(self, body: Json, headers: dict[str, str]) -> Seen:
        messages: list[Json] = body["messages"]
        texts = [str(message["content"]) for message in messages if message["role"] == "user"]
        return Seen(
            scenario=scenario_of(body["model"], texts, self.script),
            model=body["model"],
            turn=sum(message["role"] == "assistant" for message in messages),
            messages=len(messages),
            tools=tuple(tool["function"]["name"] for tool in body.get("tools", [])),
            body=body,
            headers=headers,
        )

    async def _play(self, connection: Connection, seen: Seen) -> bool:
        name, *numbers = re.split(r"-(?=\d)", seen.scenario.replace("-times", ""))
        if failure := self.failure(seen, name, [int(number) for number in numbers]):
            seen.status, body, more = failure
            seen.done = True
            await connection.answer(seen.status, body, **more)
            return True
        if name == "silent":
            await connection.until_closed()
        if name in ("html", "json"):
            seen.done = True
            await self._whole(connection, name, seen)
            return True
        connection.begin()
        if name == "hang":
            await connection.send(self.opening(seen))
            await connection.until_closed()
        for frame in self.frames(seen, name, [int(number) for number in numbers]):
            if name == "slow-text":
                await connection.until_closed(SLOW)
            await connection.send(frame)
            seen.chunks += 1
            self._changed.set()
        seen.done = True  # a client may close at [DONE], before the last bytes
        if name == "late-hang":
            await connection.until_closed()
        if name in ("cut", "late-cut"):
            return False
        await connection.end()
        return True

    def failure(self, seen: Seen, name: str, numbers: list[int]) -> tuple[int, bytes, dict[str, str]] | None:
        """Status, body and headers of a refusal; None where there is none."""
        self._times[seen.scenario] += 1
        first = self._times[seen.scenario] == 1
        if seen.scenario.startswith("429-retry-after") and first:
            return 429, self.error(429, "Too many requests", "rate_limit_exceeded"), {"retry_after": str(numbers[-1])}
        if name == "status" and self._times[seen.scenario] <= (numbers[1] if len(numbers) > 1 else sys.maxsize):
            return numbers[0], self.error(numbers[0], "It was asked for", "scripted"), {}
        if status := self._answer(seen).get("status"):
            return status, self.error(status, "It was asked for", "scripted"), {}
        if name == "overflow":
            return 400, self.error(400, "maximum context length is 4096 tokens", "context_length_exceeded"), {}
        return None

    def error(self, status: int, message: str, code: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "scripted", "code": code}}).encode()

    async def _whole(self, connection: Connection, name: str, seen: Seen) -> None:
        if name == "html":
            return await connection.answer(200, b"<!doctype html><title>Welcome</title>", "text/html")
        return await connection.answer(200, json.dumps(self.document(seen)).encode())

    def frames(self, seen: Seen, name: str, numbers: list[int]) -> Iterator[str]:
        """A frame is a word or a piece of a call, as far as the wire allows that."""
        if answer := self._answer(seen):
            yield from self.scripted(seen, answer)
            return
        if name == "count" and seen.tools and (at := newest_number(seen.body) + 1) <= numbers[0]:
            said = "".join(WORDS) * 8
            yield from self.scripted(
                seen, {"text": said, "calls": [{"name": seen.tools[0], "arguments": {"number": at}}]}
            )
            return
        rounds = numbers[0] if name == "rounds" else 1 if name == "calls" else 0
        if self.turn_of_run(seen.body) < rounds and seen.tools:
            count = numbers[0] if name == "calls" else 1
            yield from self.scripted(seen, {"calls": [self._call(seen, number) for number in range(count)]})
            return
        length = numbers[1] if name == "rounds" and len(numbers) > 1 else 200 if name == "rounds" else len(WORDS)
        length = numbers[0] if name in ("text", "slow-text") and numbers else length
        yield from self.told(seen, name, length)

    def _answer(self, seen: Seen) -> Json:
        """The script's, of this turn; empty where the scenario is in none."""
        if seen.scenario not in self.script:
            return {}
        answers = _case(seen, self.script[seen.scenario])
        return answers[min(seen.turn, len(answers) - 1)]

    # -- of the wire
    def document(self, seen: Seen) -> Json:
        choice = {"index": 0, "message": {"content": "".join(WORDS), "tool_calls": None}, "finish_reason": "stop"}
        return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": self.usage(seen, len(WORDS))}

    def opening(self, seen: Seen) -> str:
        return _frame(_chunk(seen, {"role": "assistant", "content": ""}))

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        thoughts = len(answer.get("reasoning", "").split())
        return _scripted(seen, answer, lambda tokens: self.usage(seen, tokens, thoughts))

    def told(self, seen: Seen, name: str, length: int) -> Iterator[str]:
        return _told(seen, name, length, lambda tokens: self.usage(seen, tokens))

    def usage(self, seen: Seen, tokens: int, thoughts: int = 0) -> Json:
        prompt = 10 * seen.messages
        return {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens}

    def turn_of_run(self, body: Json) -> int:
        """Answers with tool calls so far; the turns of an earlier conversation have none."""
        return sum(bool(message.get("tool_calls")) for message in body["messages"])

    def parameters(self, body: Json) -> dict[str, Json]:
        """The schemas of the offered tools, by name."""
        return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body.get("tools", [])}

    def _call(self, seen: Seen, number: int) -> Json:
        """Arguments that fit the schema and differ from call to call: the same ones thrice would trip a repeat
        guard."""
        tools = self.parameters(seen.body)
        name = self.tool or next(iter(tools), "missing")
        properties: Json = tools.get(name, {}).get("properties", {})
        value = seen.turn * 100 + number + 1
        samples: Json = {"integer": value, "number": value, "boolean": True, "array": [], "object": {}}
        arguments: Json = {key: samples.get(of.get("type"), f"value {value}") for key, of in properties.items()}
        return {"name": name, "arguments": arguments}


def scenario_of(model: str, texts: list[str], script: Mapping[str, list[Json]]) -> str:
    """`texts`: what users said, in order."""
    if model in script or _SCENARIO.fullmatch(model):
        return model
    for text in reversed(texts):
        words = [word.strip(".,:;!?\"'") for word in text.split()]
        if found := [word for word in words if word in script or _SCENARIO.fullmatch(word)]:
            return found[-1]
    return "text"


def newest_number(body: Json) -> int:
    """What the newest call was made with; 0 where none was."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return int(json.loads(calls[-1]["function"]["arguments"])["number"]) if calls else 0


def _told(seen: Seen, name: str, length: int, usage: Callable[[int], Json]) -> Iterator[str]:
    if name == "refuse":
        yield _frame(_chunk(seen, {"role": "assistant", "refusal": "I cannot help with that."}))
        yield from _end(seen, "stop", usage(6))
        return
    yield _frame(_chunk(seen, {"role": "assistant", "content": ""}))
    cap = seen.body.get("max_tokens", length)  # each word is a token
    name, length = ("length", cap) if cap < length else (name, length)
    for number in range(length):
        if name in ("cut", "error-in-stream") and number >= length // 2:
            break
        yield _frame(_chunk(seen, {"content": WORDS[number % len(WORDS)]}))
    if name == "error-in-stream":
        yield _frame({"error": {"message": "The server is overloaded", "type": "server_error", "code": 503}})
    elif name.startswith("late"):
        yield _frame(_chunk(seen, {}, "stop"))
    elif name != "cut":
        yield from _end(seen, "length" if name == "length" else "stop", usage(length))


def _case(seen: Seen, script: list[Json]) -> list[Json]:
    """The answers of a scenario; where it has cases, those of the first whose text stands in the request."""
    text = json.dumps(seen.body, ensure_ascii=False)
    cases = [case for case in script if "when" in case]
    return next((case["answers"] for case in cases if all(part in text for part in case["when"])), script)


def _scripted(seen: Seen, answer: Json, usage: Callable[[int], Json]) -> Iterator[str]:
    yield _frame(_chunk(seen, {"role": "assistant", "content": None}))
    if answer.get("reasoning"):
        yield _frame(_chunk(seen, {"reasoning_content": answer["reasoning"]}))
    pieces = [answer["content"]] if "content" in answer else re.findall(r"\S+\s*|\s+", answer.get("text", ""))
    for piece in pieces:
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
    yield from _end(seen, answer.get("finish", reason), usage(max(1, len(pieces))))


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


@asynccontextmanager
async def serve_model(
    script: Mapping[str, list[Json]] | None = None,
    *,
    tool: str = "",
    port: int = 0,
    kind: type[ModelServer] = ModelServer,
) -> AsyncGenerator[ModelServer]:
    """A server in this event loop. kind: of which wire."""
    server = kind(script, tool)
    listening = await server.serve(port)
    try:
        yield server
    finally:
        await server.close(listening)


async def main(kind: type[ModelServer] = ModelServer) -> None:
    parser = argparse.ArgumentParser(description="A scripted model server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--tool", default="", help="what rounds-N calls; the first offered tool by default")
    arguments = parser.parse_args()
    script = json.loads(arguments.script.read_text()) if arguments.script else None
    async with serve_model(script, tool=arguments.tool, port=arguments.port, kind=kind) as server:
        print(f"Listening on {server.url}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
