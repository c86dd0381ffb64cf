"""The directory of runs by RPC to its objects."""

import asyncio
from collections.abc import Sequence
from typing import Any

from workers import DurableObject

from edge_agent.cloudflare import rpc
from edge_agent.cloudflare.sql import ObjectClock, ObjectSql, raw_storage
from edge_agent.core.listing import SHARDS
from edge_agent.core.messages import JsonObject
from edge_agent.storage.directory import SqlDirectory

_SILENT = "directory_unavailable", "A part of the directory of runs did not answer."


class DirectoryObject(DurableObject):
    """One shard. What fails in it reaches the other side as an exception: a run sends again, a client gets a 503."""

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._directory = SqlDirectory(ObjectSql(raw_storage(ctx)))

    async def ask(self, text: str) -> str:
        return await rpc.answered(text, self._answer)

    async def _answer(self, method: str, payload: JsonObject) -> JsonObject:
        return self._directory.answer(method, payload, ObjectClock().now())


class ObjectDirectory:
    """Over the namespace binding of the shards."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def ask(self, method: str, payload: JsonObject) -> Sequence[JsonObject]:
        """The answer of each shard. Raises Refusal 503 where one does not answer: a part would look like the whole."""
        return await asyncio.gather(*(self.ask_shard(shard, method, payload) for shard in range(SHARDS)))

    async def ask_shard(self, shard: int, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal 503 where it does not answer."""
        return await rpc.ask(self._namespace.getByName(f"shard-{shard}").ask, method, payload, silent=_SILENT)
