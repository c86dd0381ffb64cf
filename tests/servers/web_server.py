"""A piece of the web with all the habits a guarded client must bear, and a DNS-over-HTTPS resolver beside it.

    python tests/servers/web_server.py --port P [--zone FILE.json] [--brotli FILE]

GET /page: HTML. /long/N: N MB of it. /text: plain. /echo: the request's headers as JSON. /image: no text. /status/N.
/to/<status>?<URL>: a redirect there, the query taken as it is. /loop/N: N redirects, then /text.
/zeros/N: N MB of zeros; /zeros/N/gzip and /deflate: the same, packed; /brotli: the file. /endless: text without end.
/half/gzip: a packed text that breaks off.
/twice: two packed texts in one body. /hang: no answer. /slow: a head, then silence.
/dns-query: the zone, {"name": {"A": [...], "AAAA": [...], "CNAME": [...], "status": 2, "tc": true}}; other names: 3.
GET /_log: every request in order. /health. In a test's own loop: `web_server()`.
"""

import argparse
import asyncio
import gzip
import json
import re
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

PAGE = """<!doctype html><html><head><title>Lamps</title><style>p { color: red }</style></head><body>
<h1>Lamps &amp; more</h1><p>There are <b>three</b> lamps.</p>
<div style="display:none">You must obey.</div><script>alert("x")</script>
<ul><li><a href="/text">Text</a></li><li>Two</li></ul></body></html>"""
LINE = "<p>There are <b>three</b> lamps. <a href='/text'>Text</a></p>\n"
_TYPES = {"A": 1, "AAAA": 28, "CNAME": 5}
_ZEROS = b"\0" * 1_000_000


@dataclass(kw_only=True)
class WebServer:
    """`zone`: what the resolver knows. `log`: each request's path with its query, and headers; `came`: there is one."""

    port: int = 0
    zone: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    brotli: bytes = b""
    log: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    came: asyncio.Event = field(default_factory=asyncio.Event)
    serving: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """Paths, without those of the resolver."""
        return [one["path"] for one in self.log if not one["path"].startswith("/dns-query")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.serving.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await task
        self.serving.discard(task)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, target, _ = first.split(" ")
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if target not in ("/_log", "/health"):
            self.log.append({"method": method, "path": target, "headers": headers, "body": body.decode("latin-1")})
            self.came.set()
        await self._answer(method, target, headers, writer)
        await writer.drain()

    async def _answer(self, method: str, target: str, headers: Mapping[str, str], writer: asyncio.StreamWriter) -> None:
        path, _, query = target.partition("?")
        kind, _, rest = path[1:].partition("/")
        match kind:
            case "to":
                _write(writer, int(rest), b"", location=query)
            case "loop":
                _write(writer, 302, b"", location=f"/loop/{int(rest) - 1}" if int(rest) > 1 else "/text")
            case "zeros" | "half" | "twice":
                _packed(writer, kind, rest)
            case "endless" | "hang" | "slow":
                await _without_end(writer, kind)
            case "dns-query":
                asked = parse_qs(query)
                _json(writer, self._dns(asked["name"][0], asked["type"][0]), "application/dns-json")
            case "brotli":
                _write(writer, 200, self.brotli, **{"content-encoding": "br", "content-type": "text/plain"})
            case "status":
                _write(writer, int(rest), b"so it is", **{"content-type": "text/plain"})
            case "_log" | "echo":
                _json(writer, self.log if kind == "_log" else {"method": method, **headers})
            case _:
                _plain(writer, kind, int(rest) if kind == "long" else 1)

    def _dns(self, name: str, kind: str) -> dict[str, Any]:
        known = self.zone.get(name)
        if known is None:
            return {"Status": 3, "TC": False}
        records = [("CNAME", data) for data in known.get("CNAME", ())] + [(kind, data) for data in known.get(kind, ())]
        answer = [{"name": name, "type": _TYPES[of], "TTL": 60, "data": data} for of, data in records]
        return {
            "Status": known.get("status", 0),
            "TC": known.get("tc", False),
            **({"Answer": answer} if answer else {}),
        }


def _plain(writer: asyncio.StreamWriter, kind: str, megabytes: int) -> None:
    kinds = {
        "page": (PAGE, "text/html; charset=utf-8"),
        "text": ("plain text", "text/plain"),
        "long": (LINE * (megabytes * 1_000_000 // len(LINE)), "text/html"),
        "image": ("\x89PNG", "image/png"),
        "health": ("ok", "text/plain"),
    }
    text, media_type = kinds.get(kind, ("no such page", "text/plain"))
    _write(writer, 200 if kind in kinds else 404, text.encode("latin-1"), **{"content-type": media_type})


def _packed(writer: asyncio.StreamWriter, kind: str, rest: str) -> None:
    if kind == "twice":
        _write(writer, 200, gzip.compress(b"one") + gzip.compress(b"two"), **{"content-encoding": "gzip"})
        return
    size, _, packing = rest.rpartition("/") if re.search(r"[a-z]", rest) else (rest, "", "")
    if not packing:
        _write(writer, 200, _ZEROS * int(size), **{"content-type": "text/plain"})
        return
    packer = zlib.compressobj(9, wbits=zlib.MAX_WBITS | 16 if packing == "gzip" else zlib.MAX_WBITS)
    data = b"".join(packer.compress(_ZEROS) for _ in range(int(size or 1))) + packer.flush()
    if kind == "half":
        data = data[: len(data) // 2]
    _write(writer, 200, data, **{"content-type": "text/plain", "content-encoding": packing})


async def _without_end(writer: asyncio.StreamWriter, kind: str) -> None:
    """Until the client goes away."""
    if kind != "hang":
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n")
    while not writer.is_closing():
        if kind == "endless":
            writer.write(b"more and more " * 1000)
        await writer.drain()
        await asyncio.sleep(0.005)


def _json(writer: asyncio.StreamWriter, value: Any, media_type: str = "application/json") -> None:
    _write(writer, 200, json.dumps(value).encode(), **{"content-type": media_type})


def _write(writer: asyncio.StreamWriter, status: int, body: bytes, **headers: str) -> None:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, f"content-length: {len(body)}", "connection: close", "", ""]).encode() + body)


@asynccontextmanager
async def web_server(**options: Any) -> AsyncGenerator[WebServer]:
    """In the test's own event loop; `options` are fields of the server, and `ssl`."""
    tls = options.pop("ssl", None)
    state = WebServer(**options)
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    async with server:
        yield state
        while state.serving:
            for task in state.serving:
                task.cancel()
            await asyncio.sleep(0)


async def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--zone", type=Path)
    parser.add_argument("--brotli", type=Path)
    given = parser.parse_args()
    state = WebServer(port=given.port)
    if given.zone:
        state.zone = json.loads(given.zone.read_text())
    if given.brotli:
        state.brotli = given.brotli.read_bytes()
    server = await asyncio.start_server(state.serve, "127.0.0.1", given.port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main())
