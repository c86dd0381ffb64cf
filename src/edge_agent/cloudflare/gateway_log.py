"""What AI Gateway keeps of a call: what it cost, as the gateway reckons it. Read by the AI binding."""

import json
from typing import Any
from urllib.parse import quote

import js
from pyodide.ffi import JsException

from edge_agent.cloudflare.ai_binding import gateway_of
from edge_agent.core.model_calls import LoggedCall
from edge_agent.models.transport import TransportError

_NOT_FOUND = "AiGatewayLogNotFound"


async def logged_call(ai: Any, gateway: str, log_id: str) -> LoggedCall | None:
    """None where the gateway has no such log (yet): it is written a little after the call. Raises TransportError."""
    try:
        log = await gateway_of(ai, gateway).getLog(quote(log_id, safe=""))
    except JsException as error:
        if error.name == _NOT_FOUND:
            return None
        raise TransportError(f"the log of gateway {gateway} cannot be read: {error.message}") from error
    told: dict[str, Any] = json.loads(js.JSON.stringify(log))
    return LoggedCall(
        id=str(told.get("id", log_id)),
        provider=str(told.get("provider", "")),
        model=str(told.get("model", "")),
        status=told.get("status_code"),
        cached=bool(told.get("cached")),
        input_tokens=told.get("tokens_in"),
        output_tokens=told.get("tokens_out"),
        cost=told.get("cost"),
    )
