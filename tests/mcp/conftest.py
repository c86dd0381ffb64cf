"""Servers, a source on them, and calls."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from edge_agent.core.tooling import Tool, ToolContext, ToolOutput
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.mcp_source import McpSource
from tests.servers.mcp_server import McpTestServer, mcp_server


class Desk:
    """Sources on servers, all closed when the test ends."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.heard = asyncio.Event()

    async def server(self, **options: Any) -> McpTestServer:
        return await self._stack.enter_async_context(mcp_server(**options))

    def source(
        self, url: str, *, name: str = "docs", client_name: str = "edge-agent", silence: float = 5.0, **options: Any
    ) -> McpSource:
        source = McpSource(name, McpServer(url=url, **options), client_name=client_name, silence=silence)
        self._stack.push_async_callback(source.close)
        return source

    async def tools(self, server: McpTestServer, **options: Any) -> Callable[[str], Tool]:
        """Finds the tools of a server it has connected to, by the server's own name."""
        source = self.source(server.url, **options)
        assert await source.refresh() == ()
        return lambda name: tool_of(source, name)

    def context(self, key: str = "key-1") -> ToolContext:
        def report(done: float, total: float | None, message: str | None) -> None:
            self.progress.append((done, total, message))
            self.heard.set()

        return ToolContext(run_id="r1", call_id="abc123def", step=1, idempotency_key=key, report=report)

    async def run(self, tool: Tool, **arguments: Any) -> ToolOutput:
        return await tool.run(arguments, self.context())


def tool_of(source: McpSource, name: str) -> Tool:
    return next(tool for tool in source.tools() if tool.spec.name == f"{source.name}__{name}")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        yield Desk(stack)


def our_tasks() -> list[str]:
    """Tasks of ours and of the client half of the SDK; those of a test server in the same loop left out."""
    mine = ("edge_agent", "mcp/client", "mcp/shared")
    code = [getattr(task.get_coro(), "cr_code", None) for task in asyncio.all_tasks()]
    return [one.co_qualname for one in code if one is not None and any(part in one.co_filename for part in mine)]
