"""A model server that does as it is told, over real sockets: for tests, kills and measurements.

    python -m tests.servers.model_server --port 8099 [--script FILE.json]

Which answer a request gets is in scenarios.py; on which wire, in a server over this one.
GET /_log: what was received, in order. POST /_reset forgets it, and the first times. GET /v1/models, /health: it is up.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from tests.servers.connection import ClientGone, Connection, Request
from tests.servers.scenarios import WORDS, Json, Script, Seen, scenario_of, scripted_answer, words

SLOW = 0.05  # seconds between the tokens of slow-text


class ScriptedServer:
    """`url` is the base URL for a client. `tool`: what rounds-N calls; the first offered one when empty. `met`: called
    with each request to the model before it is answered. `base`: the path of the base URL.

    What is of one wire is a class over this one: where it is asked, what is seen in a request, and the frames of an
    answer."""

    base = "/v1"

    def __init__(
        self,
        script: Script | None = None,
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
        return f"http://127.0.0.1:{self.port}{self.base}"

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
        method, address, headers, body = request
        path = address.partition("?")[0]
        if (method, path) == ("GET", "/_log"):
            await connection.answer(200, json.dumps(self.log()).encode())
        elif (method, path) == ("POST", "/_reset"):
            self.reset()
            await connection.answer(200, b"{}")
        elif path in ("/health", "/v1/models"):
            await connection.answer(200, b'{"object": "list", "data": []}')
        elif method == "POST" and (told := self.asked(address)) is not None:
            return await self._complete(connection, headers, {**told, **json.loads(body)})
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
        turns = self.conversation(body)
        return Seen(
            scenario=scenario_of(body["model"], [text for who, text in turns if who == "user"], self.script),
            model=body["model"],
            turn=sum(who == "model" for who, _ in turns),
            messages=len(turns),
            tools=tuple(self.parameters(body)),
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
        if status := scripted_answer(seen, self.script).get("status"):
            return status, self.error(status, "It was asked for", "scripted"), {}
        if name == "overflow":
            return 400, self.error(400, "maximum context length is 4096 tokens", "context_length_exceeded"), {}
        return None

    async def _whole(self, connection: Connection, name: str, seen: Seen) -> None:
        if name == "html":
            return await connection.answer(200, b"<!doctype html><title>Welcome</title>", "text/html")
        return await connection.answer(200, json.dumps(self.document(seen)).encode())

    def frames(self, seen: Seen, name: str, numbers: list[int]) -> Iterator[str]:
        """A frame is a word or a piece of a call, as far as the wire allows that."""
        if answer := scripted_answer(seen, self.script):
            yield from self.scripted(seen, answer)
            return
        rounds = numbers[0] if name == "rounds" else 1 if name == "calls" else 0
        if self.turn_of_run(seen.body) < rounds and seen.tools:
            count = numbers[0] if name == "calls" else 1
            yield from self.scripted(seen, {"calls": [self._call(seen, number) for number in range(count)]})
            return
        length = numbers[1] if name == "rounds" and len(numbers) > 1 else 200 if name == "rounds" else len(WORDS)
        length = numbers[0] if name in ("text", "slow-text") and numbers else length
        yield from self._told(seen, name, length)

    def _told(self, seen: Seen, name: str, length: int) -> Iterator[str]:
        if name != "refuse" and (cap := self.cap(seen.body)) is not None and cap < length:
            name, length = "length", cap
        return self.told(seen, name, words(length // 2 if name in ("cut", "error-in-stream") else length))

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

    # -- of the wire
    def asked(self, address: str) -> Json | None:
        """What the address of a request to the model adds to its body; None for another address."""
        raise NotImplementedError

    def conversation(self, body: Json) -> list[tuple[str, str]]:
        """Each message: whose it is, `user`, `model` or another, and its text."""
        raise NotImplementedError

    def turn_of_run(self, body: Json) -> int:
        """Answers with tool calls so far; the turns of an earlier conversation have none."""
        raise NotImplementedError

    def parameters(self, body: Json) -> dict[str, Json]:
        """The schemas of the offered tools, by name."""
        raise NotImplementedError

    def cap(self, body: Json) -> int | None:
        """The most tokens of the answer."""
        raise NotImplementedError

    def error(self, status: int, message: str, code: str) -> bytes:
        raise NotImplementedError

    def document(self, seen: Seen) -> Json:
        """A whole answer."""
        raise NotImplementedError

    def opening(self, seen: Seen) -> str:
        """The first frame."""
        raise NotImplementedError

    def scripted(self, seen: Seen, answer: Json) -> Iterator[str]:
        """The frames of an answer of the script."""
        raise NotImplementedError

    def told(self, seen: Seen, name: str, said: list[str]) -> Iterator[str]:
        """The frames of a text of such words, that ends as the scenario says."""
        raise NotImplementedError


Kind = TypeVar("Kind", bound=ScriptedServer)


@asynccontextmanager
async def serving(server: Kind, port: int = 0) -> AsyncGenerator[Kind]:
    """In this event loop."""
    listening = await server.serve(port)
    try:
        yield server
    finally:
        await server.close(listening)


def run(kind: type[ScriptedServer]) -> None:
    """A process of its own."""
    parser = argparse.ArgumentParser(description="A scripted model server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--tool", default="", help="what rounds-N calls; the first offered tool by default")
    arguments = parser.parse_args()
    script = json.loads(arguments.script.read_text()) if arguments.script else None
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(kind(script, arguments.tool), arguments.port))


async def _serve(server: ScriptedServer, port: int) -> None:
    async with serving(server, port):
        print(f"Listening on {server.url}", flush=True)
        await asyncio.Event().wait()
