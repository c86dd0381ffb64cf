"""The connections to MCP servers by RPC to their objects, and by requests that pass through them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edge_agent.cloudflare import rpc
from edge_agent.core.errors import Refusal, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import LOCAL
from edge_agent.http.mcp_links import ConnectionId

_SILENT = "connection_unavailable", "The connection's object did not answer."


@dataclass(frozen=True, slots=True)
class ObjectConnection:
    """One of them, as the runs of its user see it."""

    _stub: Any
    _raw: Any  # without the SDK's wrapper, which would read the bodies

    def fetch(self, url: str, init: Any) -> Any:
        """A request to the server; the object adds the token."""
        return self._raw.fetch(url, init)

    async def login(self) -> str:
        """The path where a person signs in. Raises ToolError where that is not what is missing."""
        status = await self.command("status", {})
        if "link" in status:
            return str(status["link"])
        raise ToolError(str(status.get("fault", "there is no token for it yet")))

    async def command(self, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal: the object's own, or 503 when it did not answer."""
        return await rpc.ask(self._stub.command, method, payload, silent=_SILENT)


class ObjectConnections:
    """Over the namespace binding."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    def of(self, whose: ConnectionId) -> ObjectConnection:
        raw = self._namespace._binding.getByName(whose.name)  # noqa: SLF001
        return ObjectConnection(self._namespace.getByName(whose.name), raw)

    async def call(self, whose: ConnectionId, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal."""
        return await self.of(whose).command(method, payload)

    async def told(self, method: str, arguments: Mapping[str, Any]) -> None:
        """What a run sends. A server that is configured no more has nobody to hear it."""
        whose = ConnectionId(server=str(arguments["server"]), user=str(arguments["user"] or LOCAL))
        payload = {name: value for name, value in arguments.items() if name not in ("server", "user")}
        try:
            await self.call(whose, method, payload)
        except Refusal as no:
            if no.code != "unknown_server":
                raise
