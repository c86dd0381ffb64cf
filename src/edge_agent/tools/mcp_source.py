"""The tools of one MCP server, as the toolbox mounts them."""

import asyncio
from collections.abc import Callable

import httpx2

from edge_agent.core.errors import NeedsSignIn, ToolError
from edge_agent.core.tooling import SignIn, Tool
from edge_agent.tools.json_schema import schema_fault
from edge_agent.tools.mcp_connection import SILENCE_SECONDS, Login, McpConnection
from edge_agent.tools.mcp_faults import Unreachable
from edge_agent.tools.mcp_import import types
from edge_agent.tools.mcp_names import mounted
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.mcp_tools import mcp_tool
from edge_agent.tools.names import passes, unmatched

CLIENT_NAME = "edge-agent"


class McpSource:
    """A `ToolSource`: connects at the first refresh, and again at the next one after it failed or was closed.

    transport: makes the HTTP transport of each session; None for httpx2's own.
    client_name: our User-Agent, and what the server is told of us.
    silence: seconds beyond a call's timeout after which a server that says nothing is given up.
    login: finds the path where a person signs in; None: nobody can.
    """

    def __init__(
        self,
        name: str,
        server: McpServer,
        *,
        transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
        client_name: str = CLIENT_NAME,
        silence: float = SILENCE_SECONDS,
        login: Login | None = None,
    ) -> None:
        def open_client() -> httpx2.AsyncClient:
            return httpx2.AsyncClient(transport=None if transport is None else transport())

        self.name = name
        self._server = server
        self._connection = McpConnection(name, server, open_client, client_name, silence=silence, login=login)
        self._listed: tuple[types.Tool, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self._said: tuple[str, ...] = ()
        self._sign_in: SignIn | None = None

    def sign_in(self) -> SignIn | None:
        return self._sign_in

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def refresh(self) -> tuple[str, ...]:
        """Asks the server only where the session is new or it has said that its tools have changed."""
        self._sign_in = None
        try:
            async with asyncio.timeout(self._server.connect_timeout):
                await self._connection.take_new_headers()
                listed = await self._connection.listed()
        except TimeoutError:
            late = "list its tools" if self._connection.is_open else "answer"
            within = f"within {self._server.connect_timeout:g} s"
            return self._failed(f"did not {late} {within}. Look at it, or raise connect_timeout.")
        except NeedsSignIn as needs:
            self._sign_in = SignIn(server=needs.server, url=needs.url)
            self._listed = self._tools = ()
            return ()
        except Unreachable as error:
            self._listed = self._tools = ()
            return (f"{error} Its tools are left out.",)
        except ToolError as error:
            return self._failed(f"did not list its tools: {error}. Look at its log.")
        if listed is self._listed:
            return ()
        self._listed, (self._tools, faults) = listed, self._mounted(listed)
        new = tuple(fault for fault in faults if fault not in self._said)
        self._said = faults
        return new

    async def close(self) -> None:
        await self._connection.close()

    def _failed(self, cause: str) -> tuple[str, ...]:
        self._listed = self._tools = ()
        return (f"The MCP server {self.name} ({self._server.origin}) {cause} Its tools are left out.",)

    def _mounted(self, listed: tuple[types.Tool, ...]) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        names = mounted(self.name, [tool.name for tool in listed])
        faults = [
            f"The {kind} rule {glob!r} of the MCP server {self.name} matches none of its tools."
            for kind, globs in (("allow", self._server.allow), ("deny", self._server.deny))
            for glob in unmatched(globs, names)
        ]
        tools: dict[str, Tool] = {}
        for tool in listed:
            if tool.name in tools or not passes(tool.name, self._server.allow, self._server.deny):
                continue
            if fault := schema_fault(tool.input_schema):
                faults.append(f"The tool {tool.name!r} of the MCP server {self.name} is left out: {fault}.")
                continue
            tools[tool.name] = mcp_tool(tool, names[tool.name], self._connection)
        return tuple(tools.values()), tuple(faults)
