"""The world that tools act on: counts what really happened, by path and idempotency key.

    python tests/servers/tool_server.py --port P [--delay SECONDS between the effect and its answer]

POST /charge, /lookup, /transfer {"key", "run", "n"} count and answer; POST /hang never answers. GET /_log: every
request in order, with whether the client went away before the answer. GET /health.
"""

import argparse
import asyncio
import json
from contextlib import suppress
from typing import Any

_log: list[dict[str, Any]] = []
_delay = 0.0


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = head.split(" ", 2)
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            await _answer(method, path, body, reader, writer)
    writer.close()


async def _answer(
    method: str, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    if method == "GET":
        _write(writer, json.dumps(_log if path == "/_log" else {"ok": True}))
        return
    seen: dict[str, Any] = {"path": path, **json.loads(body or b"{}"), "gone": False}
    _log.append(seen)
    if path == "/hang":
        seen["gone"] = await reader.read(1) == b""
        return
    await asyncio.sleep(_delay)
    _write(writer, f"{path.strip('/')} {seen.get('n')} done")


def _write(writer: asyncio.StreamWriter, text: str) -> None:
    data = text.encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data))


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--delay", type=float, default=0.0)
    arguments = parser.parse_args()
    global _delay  # noqa: PLW0603 - the one setting of this program
    _delay = arguments.delay
    server = await asyncio.start_server(_serve, "127.0.0.1", arguments.port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
