"""Why a server could not be reached, in sentences that say what to do."""

from collections.abc import Iterator
from typing import cast

import httpx2
from httpx2 import codes
from pydantic import ValidationError

from edge_agent.core.errors import ToolError
from edge_agent.tools.mcp_http import Exchange, TooLarge
from edge_agent.tools.mcp_import import MCPError, types
from edge_agent.tools.mcp_server import McpServer

_BY_STATUS = {
    401: ("refused our credentials (HTTP 401)", "Check the server's headers or get_headers."),
    403: ("refused our credentials (HTTP 403)", "Check what the credentials may do."),
    404: ("has nothing at this path (HTTP 404)", "Check the path of its url, often /mcp."),
    405: ("speaks no MCP at this path (HTTP 405)", "Check the path of its url, often /mcp."),
    429: ("turned us away for asking too often (HTTP 429)", "Ask less often."),
}
_MAX_SAID = 300
_RUNNING = "Check that it runs and that its url is right."


class Unreachable(ToolError):
    """Nothing was sent, or it was turned away unread."""


def why_unreachable(name: str, server: McpServer, error: Exception, exchange: Exchange) -> str:
    """The whole sentence: server, origin, cause, way out. It names no path, no query and no header."""
    if isinstance(error, TimeoutError):
        cause, way_out = f"did not answer within {server.connect_timeout:g} s", "Look at it, or raise connect_timeout."
    else:
        cause, way_out = cause_of(error, exchange, server)
    return f"The MCP server {name} ({server.origin}) {cause}. {way_out}"


def cause_of(error: Exception, exchange: Exchange, server: McpServer) -> tuple[str, str]:
    """(cause, way out), for a sentence whose subject is the server."""
    if exchange.error is not None:
        return _on_the_wire(exchange.error, server)
    if exchange.status in _BY_STATUS:
        return _BY_STATUS[exchange.status]
    if codes.is_error(exchange.status):
        return f"failed (HTTP {exchange.status})", "Look at its log."
    inner = tuple(_all(error))
    on_the_wire = next((one for one in inner if isinstance(one, httpx2.TransportError)), None)
    return _said(inner[0]) if on_the_wire is None else _on_the_wire(on_the_wire, server)


def _said(first: BaseException) -> tuple[str, str]:
    if isinstance(first, ValidationError):
        fault = first.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in fault["loc"])
        return f"answered with something that is not MCP ({where}: {fault['msg']})", "Look at the server."
    if isinstance(first, MCPError) and first.code == types.PARSE_ERROR:
        return "answered with something that is not MCP", "Look at the server."
    said = (str(first) or type(first).__name__).splitlines()[0]
    return f"could not be talked to: {said[:_MAX_SAID]}", _RUNNING


def _on_the_wire(error: httpx2.TransportError, server: McpServer) -> tuple[str, str]:
    if isinstance(error, TooLarge):
        return f"sent too much: {error}", "Ask it for less."
    if isinstance(error, httpx2.ConnectTimeout):
        return f"took no connection within {server.connect_timeout:g} s", _RUNNING
    if isinstance(error, httpx2.TimeoutException):
        return f"was silent for {server.timeout:g} s", "Look at it, or raise its timeout."
    if isinstance(error, httpx2.ConnectError):
        return f"took no connection ({error or type(error).__name__})", _RUNNING
    return f"was not reached, or dropped the connection ({error or type(error).__name__})", _RUNNING


def _all(error: BaseException) -> Iterator[BaseException]:
    """The exceptions within groups, however deep."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _all(inner)
    else:
        yield error
