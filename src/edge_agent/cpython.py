"""The concrete adapters of a run outside of Workers: models and MCP servers over plain httpx2."""

import functools
import ssl

import httpx2

from edge_agent.core.egress import Egress, Fetcher
from edge_agent.core.errors import ConfigError
from edge_agent.core.model import Model
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.httpx_transport import HttpxTransport
from edge_agent.models.naming import model_for
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.safe_fetch import fetcher_over
from edge_agent.tools.toolbox import ToolSource
from edge_agent.wire.settings import Settings


def model(name: str, settings: Settings) -> Model:
    return model_for(name, settings, transport_for=_transport)


def _transport(_endpoint: Endpoint) -> HttpxTransport:
    return HttpxTransport(lambda: httpx2.AsyncClient(verify=_certificates()))


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read once: a client of its own for each model call would read them for 60 ms each time."""
    return httpx2.create_ssl_context()


def source(name: str, server: McpServer, settings: Settings, _user: str) -> ToolSource:
    """Raises ConfigError for a server that asks for a login: its tokens are kept by an object of the deployment."""
    if server.oauth is not None:
        fault = f"of {name} needs the Worker, where tokens are kept; give headers or get_headers here"
        raise ConfigError("McpServer.auth", fault, 'McpServer(url="https://…", get_headers=token)')
    from edge_agent.tools.mcp_source import McpSource  # noqa: PLC0415  (the client is for those who have a server)

    return McpSource(name, server, transport=None, client_name=settings.name)


def fetcher(egress: Egress, settings: Settings) -> Fetcher:
    return fetcher_over(httpx2.AsyncHTTPTransport, egress, settings.name)
