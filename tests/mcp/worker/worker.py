"""A Worker that only tries the fetch transport and the MCP client, each probe in a Durable Object of its own."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
from workers import DurableObject, Response, WorkerEntrypoint

from edge_agent.cloudflare.fetch_transport import WorkersTransport
from edge_agent.core.errors import ToolError
from edge_agent.core.tooling import ToolContext
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.mcp_source import McpSource

Given = dict[str, str]


def client(**timeouts: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=WorkersTransport(), timeout=httpx2.Timeout(10, **timeouts))


async def get(given: Given) -> Any:
    """One request; what came of it, or the exception's name."""
    times = {name: float(given[name]) for name in ("connect", "read") if name in given}
    headers = {"x-secret": "s3cret", "user-agent": "probe/1"}
    async with client(**times) as http:
        try:
            response = await http.request(
                given.get("method", "GET"), given["url"], headers=headers, follow_redirects=False
            )
        except httpx2.TransportError as error:
            return {"raised": type(error).__name__, "message": str(error)}
    return {"status": response.status_code, "headers": response.headers.multi_items(), "text": response.text[:2000]}


async def post(given: Given) -> Any:
    async with client() as http:
        response = await http.post(given["url"], content=b"\x00body" * 1000)
    return {"status": response.status_code, "text": response.text}


async def arrivals(given: Given) -> Any:
    """When each chunk came, in ms, and how many bytes in all."""
    start, size = time.monotonic(), 0
    came: list[int] = []
    async with client() as http, http.stream("GET", given["url"]) as response:
        async for chunk in response.aiter_bytes():
            came.append(round((time.monotonic() - start) * 1000))
            size += len(chunk)
            await asyncio.sleep(float(given.get("pause", 0)))
    return {"came": came, "size": size}


async def cancelled(given: Given) -> Any:
    """A task that is cancelled after its first chunk, or before the headers."""
    came = asyncio.Event()

    async def reads() -> None:
        async with client() as http, http.stream("GET", given["url"]) as response:
            async for _ in response.aiter_bytes():
                came.set()

    task = asyncio.ensure_future(reads())
    if given["when"] == "body":
        await came.wait()
    else:
        await asyncio.sleep(0.3)
    start = time.monotonic()
    task.cancel()
    await asyncio.wait({task})
    return {"cancelled": task.cancelled(), "ms": round((time.monotonic() - start) * 1000)}


async def closed_unread(given: Given) -> Any:
    async with client() as http, http.stream("GET", given["url"]) as response:
        return {"status": response.status_code}


def _context(progress: list[Any]) -> ToolContext:
    return ToolContext(
        run_id="r", call_id="c", step=1, idempotency_key="k", report=lambda done, total, said: progress.append(done)
    )


async def mcp(given: Given) -> Any:
    """A whole session: list, calls, close."""
    source = McpSource("docs", McpServer(url=given["url"], connect_timeout=10), transport=WorkersTransport)
    progress: list[Any] = []
    said: dict[str, Any] = {"refresh": await source.refresh(), "tools": len(source.tools())}
    tools = {tool.spec.name: tool for tool in source.tools()}
    try:
        for name, arguments in (("echo", {"text": "hi"}), ("slow", {"steps": 3}), ("bad_structured", {})):
            output = await tools[f"docs__{name}"].run(arguments, _context(progress))
            said[name] = [output.ok, output.text]
        start = time.monotonic()
        for _ in range(20):
            await tools["docs__echo"].run({"text": "hi"}, _context(progress))
        said["ms"] = round((time.monotonic() - start) * 50, 1)
    finally:
        await source.close()
    return {**said, "progress": progress, "tasks": len(asyncio.all_tasks())}


async def mcp_call(given: Given) -> Any:
    """One call, cancelled after `after` seconds if that is given."""
    source = McpSource("docs", McpServer(url=given["url"], connect_timeout=10), transport=WorkersTransport)
    await source.refresh()
    tool = next(tool for tool in source.tools() if tool.spec.name == f"docs__{given['tool']}")
    try:
        async with asyncio.timeout(float(given["after"]) if "after" in given else None):
            output = await tool.run(json.loads(given.get("arguments", "{}")), _context([]))
    except (ToolError, TimeoutError) as error:
        return {"raised": type(error).__name__, "message": str(error)}
    else:
        return {"text": output.text}
    finally:
        await source.close()


PROBES: dict[str, Callable[[Given], Awaitable[Any]]] = {
    probe.__name__: probe for probe in (get, post, arrivals, cancelled, closed_unread, mcp, mcp_call)
}


class Probe(DurableObject):
    async def fetch(self, request: Any) -> Response:
        parts = urlsplit(str(request.url))
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        return Response(json.dumps(await PROBES[parts.path[1:]](given)))


class Default(WorkerEntrypoint):
    async def fetch(self, request: Any) -> Any:
        if urlsplit(str(request.url)).path == "/ready":
            return Response("ready")
        return await self.env.PROBE.getByName(request.url).fetch(request)
