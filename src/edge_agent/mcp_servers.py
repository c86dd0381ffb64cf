"""The MCP servers of an agent: those of the code, then those of the variable."""

from collections.abc import Container, Mapping
from typing import Literal

from edge_agent.agent import Agent
from edge_agent.core.errors import ConfigError
from edge_agent.tools.mcp_server import IdentityProvider, McpServer, OAuth
from edge_agent.wire.entries import OAuthSettings
from edge_agent.wire.settings import Settings


def servers_of(agent: Agent, settings: Settings) -> Mapping[str, McpServer]:
    """By name; of two with one name the variable's. Raises ConfigError."""
    configured = {
        name: McpServer(
            url=server.url,
            headers=server.headers,
            auth=_oauth(server.auth),
            timeout=server.timeout or 30,
            connect_timeout=server.connect_timeout,
            allow=server.allow,
            deny=server.deny,
        )
        for name, server in settings.mcp_servers.items()
    }
    return {**agent.mcp_servers, **configured}


def require_secrets(servers: Mapping[str, McpServer], secrets: Container[str]) -> None:
    """Raises ConfigError for a server whose OAuth names a secret that is not set."""
    for name, server in servers.items():
        if missing := [secret for secret in server.secrets if secret not in secrets]:
            fault = f"names the secret {missing[0]}, which is not set"
            raise ConfigError(f"mcp_servers[{name!r}].auth", fault, f"{missing[0]}=…")


def _oauth(auth: OAuthSettings | Literal["oauth"] | None) -> OAuth | Literal["oauth"] | None:
    if not isinstance(auth, OAuthSettings):
        return auth
    provider = auth.identity_provider
    return OAuth(
        **auth.model_dump(exclude={"identity_provider"}),
        identity_provider=None if provider is None else IdentityProvider(**provider.model_dump()),
    )
