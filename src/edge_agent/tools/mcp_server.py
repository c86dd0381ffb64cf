"""An MCP server as it is configured. Importing this brings no part of the MCP client."""

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from edge_agent.core.errors import ConfigError

# No "__" within and no "_" at the end, so that the first "__" of a tool's name always ends its server's.
_NAME = re.compile("[a-zA-Z](?:_?[a-zA-Z0-9-])*")
MAX_NAME = 32
EXAMPLE = 'McpServer(url="https://mcp.example.com/mcp", headers={"Authorization": "Bearer …"})'

GetHeaders = Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server reached over Streamable HTTP.

    headers: sent with every request to the server's own origin, and to no other.
    get_headers: asked at each connection and laid over `headers`; may be async.
    timeout: seconds for one call. connect_timeout: seconds until the server has said what it offers.
    allow, deny: globs over the server's own names of its tools; deny wins, an empty allow list allows all.
    Raises ConfigError when a value cannot work.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    get_headers: GetHeaders | None = field(default=None, repr=False)
    timeout: float = 30
    connect_timeout: float = 30
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if fault := _url_fault(self.url):
            raise ConfigError("McpServer.url", fault, EXAMPLE)
        for name in ("timeout", "connect_timeout"):
            seconds = getattr(self, name)
            if not (isinstance(seconds, int | float) and math.isfinite(seconds) and seconds > 0):
                raise ConfigError(f"McpServer.{name}", f"must be seconds above 0, got {seconds!r}", f"{name}=60")
        for name in ("allow", "deny"):
            globs = getattr(self, name)
            if isinstance(globs, str) or not all(isinstance(glob, str) for glob in globs):
                fault = f"must be a list of globs, got {globs!r}"
                raise ConfigError(f"McpServer.{name}", fault, f'{name}=("search_*",)')
            object.__setattr__(self, name, tuple(globs))

    @property
    def origin(self) -> str:
        """Scheme and host of the url: what may be shown, since paths and queries can hold keys."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")

    async def current_headers(self) -> dict[str, str]:
        """The headers of a new connection. Raises what get_headers raises."""
        if self.get_headers is None:
            return dict(self.headers)
        fresh = self.get_headers()
        if inspect.isawaitable(fresh):
            fresh = await fresh
        return {**self.headers, **fresh}


def require_server_name(name: str) -> None:
    """Raises ConfigError for a name under which tools could not be told apart."""
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        fault = (
            f"a server's name begins with a letter and has at most {MAX_NAME} letters, digits, - and single _ within"
        )
        raise ConfigError(f"mcp_servers[{name!r}]", fault, '{"docs": McpServer(url="https://…")}')


def _url_fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"is not a URL ({error})"
    if parts.scheme not in ("http", "https"):
        given = f"{parts.scheme}://" if parts.scheme else "no scheme"
        return (
            f"must begin with https:// (or http:// on a private network), got {given}; "
            "a Worker can start no process, so stdio servers need an HTTP endpoint in front of them"
        )
    if not parts.hostname:
        return "names no host"
    if parts.username or parts.password:
        return "holds a user or password; put credentials into headers, which are never shown"
    if parts.path.rstrip("/").endswith("/sse"):
        return "looks like a legacy HTTP+SSE endpoint, which is not spoken; give the Streamable HTTP one, often …/mcp"
    return None
