"""The runs of a deployment by RPC to their objects."""

from functools import partial
from typing import Any

from edge_agent.cloudflare import rpc
from edge_agent.core import keys
from edge_agent.core.messages import JsonObject

_SILENT = "run_unavailable", "The run's object did not answer, perhaps because it is being restarted."


class ObjectRuns:
    """Over the namespace binding of the runs' objects."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal: the object's own, or 503 when it did not answer."""
        stub = self._namespace.getByName(keys.object_of(run_id))
        return await rpc.ask(partial(stub.command, run_id), method, payload, silent=_SILENT)
