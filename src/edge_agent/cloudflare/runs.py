"""The runs of a deployment by RPC to their objects: JSON text both ways, refusals as data."""

import json
from typing import Any

from pyodide.ffi import JsException

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject


class ObjectRuns:
    """Over the namespace binding of the runs' objects."""

    def __init__(self, namespace: Any) -> None:
        self._namespace = namespace

    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        """Raises Refusal: the object's own, or 503 when it did not answer."""
        text = json.dumps({"method": method, "payload": payload})
        try:
            answer = json.loads(await self._namespace.getByName(run_id).command(text))
        except JsException as error:
            message = (
                "The run's object did not answer, perhaps because it is being restarted. Nothing is lost: try again."
            )
            raise Refusal(503, "run_unavailable", message, retry_after=1) from error
        if no := answer.get("refusal"):
            raise Refusal(no.pop("status"), no.pop("code"), no.pop("message"), **no)
        return answer["ok"]
