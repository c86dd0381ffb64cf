"""The way of what a run sends: to its part of the directory, to other runs, and to connections."""

from http import HTTPStatus

from edge_agent.cloudflare.connections import ObjectConnections
from edge_agent.cloudflare.directory import ObjectDirectory
from edge_agent.cloudflare.runs import ObjectRuns
from edge_agent.core.errors import Refusal
from edge_agent.core.listing import DIRECTORY, shard_of
from edge_agent.core.ports import Send
from edge_agent.loop.kin import TO_RUN, turned_away
from edge_agent.loop.sign_in import CONNECTIONS


class ObjectPost:
    """A `Post` to the objects of this deployment."""

    def __init__(self, directory: ObjectDirectory, runs: ObjectRuns, connections: ObjectConnections) -> None:
        self._directory, self._runs, self._connections = directory, runs, connections

    async def send(self, send: Send) -> None:
        if send.destination == DIRECTORY:
            await self._directory.ask_shard(shard_of(send.arguments["run_id"]), send.method, send.arguments)
        elif send.destination == CONNECTIONS:
            await self._connections.told(send.method, send.arguments)
        elif send.destination.startswith(TO_RUN):
            await self._to_run(send.destination.removeprefix(TO_RUN), send)
        else:
            raise ValueError(f"nobody is at {send.destination}")

    async def _to_run(self, run_id: str, send: Send) -> None:
        """A refusal has been heard there, so it is not sent again, and a parent hears of it; who did not answer may not
        have heard."""
        try:
            await self._runs.call(run_id, send.method, send.arguments)
        except Refusal as no:
            if no.status == HTTPStatus.SERVICE_UNAVAILABLE:
                raise
            if told := turned_away(send, no.message):
                await self.send(told)
