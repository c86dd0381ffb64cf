"""An MCP server as it is configured. Importing this brings no part of the MCP client."""

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from edge_agent.core.errors import ConfigError

# No "__" within and no "_" at the end, so that the first "__" of a tool's name always ends its server's.
_NAME = re.compile("[a-zA-Z](?:_?[a-zA-Z0-9-])*")
MAX_NAME = 32
EXAMPLE = 'McpServer(url="https://mcp.example.com/mcp", headers={"Authorization": "Bearer …"})'

Grant = Literal["authorization_code", "client_credentials", "cross_app"]
GetHeaders = Callable[[], Mapping[str, str] | Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """Who vouches for a user towards the server's authorization server (cross-app access). `id_token` and
    `client_secret` are names of secrets."""

    token_endpoint: str
    client_id: str
    id_token: str
    client_secret: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth:
    """How the tokens for a server are had.

    grant: authorization_code: a person signs in. client_credentials: the deployment by itself, with `client_secret` or
    `private_key`. cross_app: the deployment for a user whom `identity_provider` vouches for.
    client_id: the client as it is known to the authorization server; None: it registers itself.
    client_secret, private_key: names of secrets of the deployment; the key is PKCS #8 in PEM.
    algorithm: of the key. scope: asked for; None: what the server names.
    issuer: the authorization server the client belongs to; needed where nobody signs in, so that the MCP server cannot
    choose who is shown the secret. Raises ConfigError when a value is missing.
    """

    grant: Grant = "authorization_code"
    client_id: str | None = None
    client_secret: str | None = None
    private_key: str | None = None
    algorithm: Literal["ES256", "RS256"] = "ES256"
    scope: str | None = None
    issuer: str | None = None
    identity_provider: IdentityProvider | None = None

    def __post_init__(self) -> None:
        if fault := self._fault():
            example = (
                'OAuth(grant="client_credentials", client_id="agent", client_secret="DOCS_SECRET", issuer="https://…")'
            )
            raise ConfigError("McpServer.auth", fault, example)

    def _fault(self) -> str | None:
        if self.grant == "authorization_code":
            return "needs a client_id beside its secret" if self.client_secret and not self.client_id else None
        if not (self.client_id and self.issuer):
            return f"needs a client_id and an issuer for the grant {self.grant}"
        if self.grant == "cross_app":
            complete = self.client_secret and self.identity_provider
            return None if complete else "needs a client_secret and an identity_provider for the grant cross_app"
        one = (self.client_secret is None) != (self.private_key is None)
        return None if one else "needs either a client_secret or a private_key for the grant client_credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """An MCP server reached over Streamable HTTP.

    headers: sent with every request to the server's own origin, and to no other.
    get_headers: asked at each connection and before each round, and laid over `headers`; may be async. Where it gives
    others than before, a new connection is made.
    timeout: seconds for one call. connect_timeout: seconds until the server has said what it offers.
    auth: None: the headers are all there is. "oauth": a person signs in when a run needs the server. Or an `OAuth`.
    allow, deny: globs over the server's own names of its tools; deny wins, an empty allow list allows all.
    Raises ConfigError when a value cannot work.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    get_headers: GetHeaders | None = field(default=None, repr=False)
    auth: OAuth | Literal["oauth"] | None = None
    timeout: float = 30
    connect_timeout: float = 30
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if fault := _url_fault(self.url):
            raise ConfigError("McpServer.url", fault, EXAMPLE)
        if not _is_auth(self.auth):
            raise ConfigError("McpServer.auth", f'is None, "oauth" or an OAuth, got {self.auth!r}', 'auth="oauth"')
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
    def oauth(self) -> OAuth | None:
        return OAuth() if self.auth == "oauth" else self.auth

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the deployment's secrets that its OAuth needs."""
        if self.oauth is None:
            return ()
        provider = self.oauth.identity_provider
        named = (self.oauth.client_secret, self.oauth.private_key)
        of_provider = (provider.id_token, provider.client_secret) if provider else ()
        return tuple(name for name in (*named, *of_provider) if name)

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


def _is_auth(value: object) -> bool:
    return value is None or value == "oauth" or isinstance(value, OAuth)


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
