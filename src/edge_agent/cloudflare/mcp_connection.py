"""The object of the connection to one MCP server for one user: a shell around what is in mcp_login, which is imported
by the first who needs it, since it brings the client of MCP."""

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import js
from workers import DurableObject

from edge_agent.cloudflare import rpc
from edge_agent.cloudflare.sql import ObjectSql, raw_storage
from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.mcp_links import ConnectionId
from edge_agent.storage.mcp_connections import SqlConnection

if TYPE_CHECKING:
    from edge_agent.cloudflare.mcp_login import Connecting, LiveConnection

_AGAIN_MS = 60_000


class McpConnectionObject(DurableObject):
    """Subclass it with `wiring`, a static function of the environment and of the connection's id, which raises
    ConfigError where the server is not configured any more.

    RPC: `command`. `fetch`: a request of a run to the server."""

    wiring: Callable[[Any, ConnectionId], "Connecting"]

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._kept: LiveConnection | None = None

    def _connection(self) -> "LiveConnection":
        if self._kept is None:
            storage = raw_storage(self.ctx)
            shelf = SqlConnection(ObjectSql(storage))
            # An alarm that wakes a cold object may come without the object's name.
            whose = ConnectionId.of(shelf.get("name") or str(self.ctx.id.name))
            from edge_agent.cloudflare.mcp_login import LiveConnection  # noqa: PLC0415

            self._kept = LiveConnection.open(whose, shelf, type(self).wiring(self.env, whose), storage)
        return self._kept

    async def command(self, text: str) -> str:
        return await rpc.answered(text, self._answer)

    async def _answer(self, method: str, payload: JsonObject) -> JsonObject:
        try:
            return await self._connection().answer(method, payload)
        except ConfigError as error:
            raise Refusal(404, "unknown_server", str(error)) from error

    async def fetch(self, request: Any) -> Any:
        return await self._connection().passed_on(request.js_object)

    async def alarm(self) -> None:
        """Must not raise: the platform would give up after six times."""
        try:
            await self._connection().tell()
        except ConfigError:
            pass  # the server is configured no more: nobody waits for it
        except Exception:  # noqa: BLE001 - whoever waits is told at the next alarm
            js.console.error(traceback.format_exc())
            raw_storage(self.ctx).setAlarm(js.Date.now() + _AGAIN_MS)
