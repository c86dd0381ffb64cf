"""The one place where concrete classes are named: which agents, models, tools and doors this deployment is made of."""

import base64
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import js
from fastapi import FastAPI

from agents import agents
from edge_agent.cloudflare.ai_binding import AiBinding, GatewayBinding
from edge_agent.cloudflare.connections import ObjectConnections
from edge_agent.cloudflare.console import write
from edge_agent.cloudflare.directory import ObjectDirectory
from edge_agent.cloudflare.environment import ai_binding, variables
from edge_agent.cloudflare.gateway_log import logged_call
from edge_agent.cloudflare.model_transport import FetchTransport
from edge_agent.cloudflare.post import ObjectPost
from edge_agent.cloudflare.runs import ObjectRuns
from edge_agent.cloudflare.skills import ObjectSkills
from edge_agent.cloudflare.sql import ObjectClock
from edge_agent.core.egress import Egress, Fetcher
from edge_agent.core.errors import ConfigError
from edge_agent.core.model import Model
from edge_agent.core.model_calls import LoggedCall
from edge_agent.core.skill_library import SkillLibrary
from edge_agent.deployment import Deployment
from edge_agent.equipment import SourceMaker
from edge_agent.http.app import create_app
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.http.ports import Deps
from edge_agent.http.run_tokens import derived_key
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.naming import model_for
from edge_agent.models.transport import Transport
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.toolbox import ToolSource
from edge_agent.wire.console import DEFAULT_LEVEL, Console
from edge_agent.wire.settings import Settings

if TYPE_CHECKING:
    from edge_agent.cloudflare.mcp_login import Connecting


def _model(ai: Any, name: str, settings: Settings) -> Model:
    return model_for(name, settings, transport_for=partial(_transport, ai))


def _transport(ai: Any, endpoint: Endpoint) -> Transport:
    if endpoint.route == "binding":
        return AiBinding(ai, gateway=endpoint.gateway)
    if endpoint.route == "gateway" and endpoint.gateway is not None:
        return GatewayBinding(ai, gateway=endpoint.gateway)
    return FetchTransport()


def _source_of(env: Any) -> SourceMaker:
    def source(name: str, server: McpServer, settings: Settings, user: str) -> ToolSource:
        # Only a deployment that configures a server pays for importing the client (two seconds).
        from edge_agent.cloudflare.fetch_transport import WorkersTransport  # noqa: PLC0415
        from edge_agent.tools.mcp_source import McpSource  # noqa: PLC0415

        if server.oauth is None:
            return McpSource(name, server, transport=WorkersTransport, client_name=settings.name)
        connection = ObjectConnections(env.MCP_CONNECTION).of(ConnectionId(server=name, user=user))
        return McpSource(
            name,
            server,
            transport=lambda: WorkersTransport(connection.fetch),
            client_name=settings.name,
            login=connection.login,
        )

    return source


def connecting(env: Any, whose: ConnectionId) -> "Connecting":
    """What the connection of a user to a server works with. Raises ConfigError where there is no such server."""
    # Only an object that has a connection pays for importing the client (two seconds).
    import httpx2  # noqa: PLC0415

    from edge_agent.cloudflare.fetch_transport import WorkersTransport  # noqa: PLC0415
    from edge_agent.cloudflare.mcp_login import Connecting  # noqa: PLC0415
    from edge_agent.cloudflare.vault import WebCryptoVault  # noqa: PLC0415
    from edge_agent.tools.mcp_oauth import Parties  # noqa: PLC0415

    deployment = deployment_of(env)
    server, key = deployment.offer.mcp_server(whose.server), _key_of(env, deployment.settings)

    def open_client() -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=WorkersTransport(), timeout=server.connect_timeout)

    parties = Parties(
        server=server,
        client_name=deployment.settings.name,
        secrets=deployment.settings.secrets,
        vault=WebCryptoVault(key),
        open_client=open_client,
    )
    return Connecting(parties=parties, key=key, runs=ObjectRuns(env.RUN))


def _key_of(env: Any, settings: Settings) -> Callable[[], Awaitable[bytes]]:
    async def key() -> bytes:
        return derived_key(settings) or base64.b64decode(await env.KEY_STORE.getByName("key").key())

    return key


def _fetcher(egress: Egress, settings: Settings) -> Fetcher:
    # Likewise: the client, for runs of agents that may reach the outside.
    from edge_agent.cloudflare.fetch_transport import WorkersTransport  # noqa: PLC0415
    from edge_agent.tools.safe_fetch import fetcher_over  # noqa: PLC0415

    return fetcher_over(WorkersTransport, egress, settings.name)


@dataclass(frozen=True, slots=True)
class Served:
    """What the Worker answers with."""

    deps: Deps
    app: FastAPI


_served: Served | None = None


def served(env: Any) -> Served:
    """Made by the first request of the isolate, then kept: the variables of an isolate do not change."""
    global _served  # noqa: PLW0603
    if _served is None:
        deployment = deployment_of(env)
        deps = Deps(
            settings=deployment.settings,
            runs=ObjectRuns(env.RUN),
            directory=ObjectDirectory(env.DIRECTORY),
            offer=deployment.offer,
            deployment=deployment,
            library=library_of(env),
            clock=ObjectClock(),
            console=console_of(env),
            connections=ObjectConnections(env.MCP_CONNECTION),
            run_token_key=_key_of(env, deployment.settings),
            gateway_log=_gateway_log(ai_binding(env), deployment.settings),
            runtime=f"workerd, {js.navigator.userAgent}",
        )
        _served = Served(deps, create_app(deps))
    return _served


def _gateway_log(ai: Any, settings: Settings) -> Callable[[str], Awaitable[LoggedCall | None]] | None:
    with suppress(ConfigError):
        if ai is not None and settings.gateway is not None:
            return partial(logged_call, ai, settings.gateway.id)
    return None


def console_of(env: Any) -> Console:
    settings, level = Settings.from_env(variables(env)), DEFAULT_LEVEL
    with suppress(ConfigError):  # GET /healthz says what is wrong with it
        level = settings.log_level
    return Console(level, write, settings.mask)


def post_of(env: Any) -> ObjectPost:
    """How a run tells others of itself, gives work to its subagents, and says that it waits for a login."""
    return ObjectPost(ObjectDirectory(env.DIRECTORY), runs_of(env), ObjectConnections(env.MCP_CONNECTION))


def runs_of(env: Any) -> ObjectRuns:
    """The other runs: a fork asks the one it comes from."""
    return ObjectRuns(env.RUN)


def deployment_of(env: Any) -> Deployment:
    ai = ai_binding(env)
    settings = Settings.from_env(variables(env), ai_binding=ai is not None)
    return Deployment(agents, settings, partial(_model, ai), _source_of(env), _fetcher, library=library_of(env))


def library_of(env: Any) -> SkillLibrary:
    return SkillLibrary(ask=ObjectSkills(env.SKILLS).ask)
