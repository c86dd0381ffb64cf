"""The directory of runs by its objects: RPC, JSON text both ways."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from pyodide.ffi import JsException
from workers import DurableObject

from edge_agent.cloudflare.sql import ObjectClock, ObjectSql, raw_storage
from edge_agent.core.errors import Refusal
from edge_agent.core.listing import SHARDS
from edge_agent.core.messages import JsonObject
from edge_agent.storage.directory import SqlDirectory


class DirectoryObject(DurableObject):
    """One shard. What fails in it reaches the other side as an exception: a run sends again, a client gets a 503."""

    def __init__(self, ctx: Any, env: Any) -> None:
        """Touches no storage and must not raise: a broken instance would be kept."""
        super().__init__(ctx, env)
        self._directory = SqlDirectory(ObjectSql(raw_storage(ctx)))

    async def ask(self, text: str) -> str:
        """{"method", "payload"} -> the answer"""
        request = json.loads(text)
        now = ObjectClock().now()
        return json.dumps(self._directory.answer(request["method"], request["payload"], now))


class ObjectDirectory:
    """Over the namespace binding of the shards."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def ask(self, method: str, payload: JsonObject) -> Sequence[JsonObject]:
        """The answer of each shard. Raises Refusal 503 where one does not answer: a part would look like the whole."""
        try:
            return await asyncio.gather(*(self.ask_shard(shard, method, payload) for shard in range(SHARDS)))
        except JsException as error:
            message = "A part of the directory of runs did not answer. Nothing is lost: try again."
            raise Refusal(503, "directory_unavailable", message, retry_after=1) from error

    async def ask_shard(self, shard: int, method: str, payload: JsonObject) -> JsonObject:
        """Raises JsException."""
        stub = self._namespace.getByName(f"shard-{shard}")
        return json.loads(await stub.ask(json.dumps({"method": method, "payload": payload})))
