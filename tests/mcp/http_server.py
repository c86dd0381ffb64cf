"""An HTTP server with the habits a transport must bear, in the test's own event loop; `seen` says what became of it."""

import asyncio
import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Headers = dict[str, str]


@dataclass(kw_only=True)
class HttpServer:
    port: int = 0
    seen: list[str] = field(default_factory=list[str])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def note(self, what: str) -> None:
        self.seen.append(what)
        async with self.changed:
            self.changed.notify_all()

    async def saw(self, what: str) -> None:
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(lambda: what in self.seen)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.split("\r\n")
            method, path, _ = first.split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            kind, _, argument = path[1:].partition("/")
            if kind == "echo":
                shown = "\n".join(f"{name}: {value}" for name, value in headers.items())
                _whole(writer, f"{method} {len(body)}\n{shown}".encode())
            elif kind == "status":
                _head(writer, int(argument), **{"x-method": method})
            elif kind in ("hang", "endless", "silent"):
                await self._without_end(kind, reader, writer)
            else:
                await _answer(kind, argument, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _without_end(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = asyncio.ensure_future(reader.read())
        if kind != "hang":
            _head(writer, 200, **{"content-type": "text/event-stream"})
            writer.write(b"data: first\n\n")
        await self.note(kind)
        while not gone.done():
            if kind == "endless":
                writer.write(b"data: more\n\n")
            await asyncio.wait({gone}, timeout=0.02)
        await self.note(f"{kind} gone")


async def _answer(kind: str, argument: str, writer: asyncio.StreamWriter) -> None:
    if kind == "redirect":
        _head(writer, 307, location=f"http://127.0.0.1:{argument}/elsewhere", **{"content-length": "0"})
    elif kind == "cookies":
        writer.write(b"HTTP/1.1 200 OK\r\nset-cookie: a=1; Path=/\r\nset-cookie: b=2\r\ncontent-length: 2\r\n\r\nok")
    elif kind == "gzip":
        _whole(writer, gzip.compress(b"squeezed" * 100), **{"content-encoding": "gzip"})
    elif kind == "late":
        await asyncio.sleep(float(argument))
        _whole(writer, b"late")
    elif kind == "big":
        _whole(writer, b"x" * (int(argument) * 1_000_000))
        await writer.drain()
    elif kind == "cut":
        _head(writer, 200, **{"content-length": "1000"})
        writer.write(b"half")
        await writer.drain()
    elif kind == "drip":
        _head(writer, 200, **{"content-type": "text/event-stream"})
        for number in range(int(argument)):
            writer.write(f"data: {number}\n\n".encode())
            await writer.drain()
            await asyncio.sleep(0.2)


def _head(writer: asyncio.StreamWriter, status: int, **headers: str) -> None:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items()), "connection: close"]
    writer.write("\r\n".join([*lines, "", ""]).encode())


def _whole(writer: asyncio.StreamWriter, body: bytes, **headers: str) -> None:
    _head(writer, 200, **headers, **{"content-length": str(len(body))})
    writer.write(body)


@asynccontextmanager
async def http_server() -> AsyncGenerator[HttpServer]:
    state = HttpServer()
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0)
    state.port = server.sockets[0].getsockname()[1]
    async with server:
        yield state
