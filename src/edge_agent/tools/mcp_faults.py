"""What a failed request to an MCP server means for the call, and why it failed, in sentences that say what to do."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Literal, cast

import httpx2
from httpx2 import codes
from pydantic import ValidationError

from edge_agent.core.errors import ToolError
from edge_agent.tools.mcp_http import Exchange, TooLarge
from edge_agent.tools.mcp_import import NO_ANSWER, MCPError, types
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

# Errors a server answers with that speak of the request, not of its session.
_ABOUT_REQUEST = (types.INVALID_PARAMS, types.METHOD_NOT_FOUND, types.PARSE_ERROR)
_CUT_OFF = (types.CONNECTION_CLOSED, types.PARSE_ERROR, types.REQUEST_TIMEOUT)
# Cloudflare's own answers for an origin it could not reach: down, unreachable, two kinds of TLS fault, no such name.
_NOT_PASSED_ON = (521, 523, 525, 526, 530)

Kind = Literal["answered", "rejected", "unsent", "lost"]


class Unreachable(ToolError):
    """Nothing was sent, or it was turned away unread."""


def judged(error: MCPError | ValidationError, exchange: Exchange) -> Kind:
    """What a failed request means for the call: whether it can have run decides over everything that follows."""
    lost: Kind = "lost" if exchange.began else "unsent"
    if exchange.error is not None:
        return "unsent" if exchange.never_sent else lost
    if isinstance(error, ValidationError):
        return lost  # it answered, but with something that is no answer
    status = exchange.status
    forgotten = status == HTTPStatus.NOT_FOUND or (
        status == HTTPStatus.BAD_REQUEST and error.code not in _ABOUT_REQUEST
    )
    if (exchange.in_session and forgotten) or status == HTTPStatus.UNAUTHORIZED:
        return "rejected"
    if status in _NOT_PASSED_ON and error.message == NO_ANSWER:
        return "unsent"
    if error.code in _CUT_OFF or (status >= HTTPStatus.INTERNAL_SERVER_ERROR and error.message == NO_ANSWER):
        return lost
    return "answered"


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
