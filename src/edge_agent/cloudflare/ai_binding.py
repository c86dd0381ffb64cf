"""Models by the AI binding of the Worker: those of Workers AI, and of other providers through AI Gateway.

Both need no key of ours: the runtime speaks for the account. Read from workerd's own class `Ai` (2026-08), which the
tests run against a service of their own; not yet compared with the live one.
"""

import json
from collections.abc import Awaitable, Mapping
from typing import Any
from urllib.parse import urlsplit

import js
from pyodide.ffi import JsException

from edge_agent.cloudflare.javascript import js_object
from edge_agent.cloudflare.model_transport import FetchReply
from edge_agent.models.failures import raised_status
from edge_agent.models.transport import TransportError
from edge_agent.models.workers_ai.request import RUN

# The binding makes these itself, or they belong to an HTTP connection that there is not.
_NOT_SENT = frozenset({"content-type", "accept", "accept-encoding", "authorization"})
# What AI Gateway takes as a header over HTTPS and as an option by the binding.
_METADATA, _SKIP_CACHE, _ATTEMPTS = "cf-aig-metadata", "cf-aig-skip-cache", "cf-aig-max-attempts"
_SAID_AS_OPTION = frozenset({_METADATA, _SKIP_CACHE, _ATTEMPTS})
_OF_GATEWAY = "cf-aig-"
_LOST = "Network connection lost"  # the platform's words; all others are those of the binding or its service


class AiBinding:
    """`env.AI.run`: the URL ends in /run/ and the model's name. `gateway`: the AI Gateway that logs the calls.

    A Response is asked for by every call: the binding keeps the options of the last call where all calls in flight look
    (`#options` in workerd), so that one without would get its answer in the form of another."""

    def __init__(self, ai: Any, *, gateway: str | None = None) -> None:
        self._ai, self._gateway = ai, gateway

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> FetchReply:
        abort = js.AbortController.new()
        extra = {name: value for name, value in headers.items() if name not in _NOT_SENT | _SAID_AS_OPTION}
        options: dict[str, Any] = {"returnRawResponse": True, "extraHeaders": extra, "signal": abort.signal}
        if self._gateway is not None:
            options["gateway"] = {"id": self._gateway, **_gateway_options(headers)}
        model = urlsplit(url).path.partition(RUN)[2]
        return await _reply(self._ai.run(model, js.JSON.parse(body.decode()), js_object(options)), abort)


class GatewayBinding:
    """`env.AI.gateway(id).run`: the URL's path begins with the provider's name at the gateway, the rest of it is the
    provider's own."""

    def __init__(self, ai: Any, *, gateway: str) -> None:
        self._ai, self._gateway = ai, gateway

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> FetchReply:
        abort = js.AbortController.new()
        parts = urlsplit(url)
        provider, _, path = parts.path.lstrip("/").partition("/")
        extra = {name: value for name, value in headers.items() if name.startswith(_OF_GATEWAY)}
        entry = {
            "provider": provider,
            "endpoint": f"{path}?{parts.query}" if parts.query else path,
            "headers": {name: value for name, value in headers.items() if name not in extra},
            "query": js.JSON.parse(body.decode()),
        }
        options: dict[str, Any] = {
            "gateway": _gateway_options(headers),
            "extraHeaders": {name: value for name, value in extra.items() if name not in _SAID_AS_OPTION},
            "signal": abort.signal,
        }
        gateway = gateway_of(self._ai, self._gateway)
        return await _reply(gateway.run(js_object(entry), js_object(options)), abort)


def gateway_of(ai: Any, gateway: str) -> Any:
    """The gateway's own object. Not the beta, which goes over RPC: an AbortSignal does not."""
    return ai.gateway(gateway, js_object({"beta": False}))


def _gateway_options(headers: Mapping[str, str]) -> dict[str, Any]:
    """One attempt: the loop retries, and would not know of what a gateway tried."""
    options: dict[str, Any] = {"retries": {"maxAttempts": 1}}
    if metadata := headers.get(_METADATA):
        options["metadata"] = json.loads(metadata)
    if skip := headers.get(_SKIP_CACHE):
        options["skipCache"] = skip == "true"
    return options


async def _reply(asked: Awaitable[Any], abort: Any) -> FetchReply:
    """An exception becomes a refusal like any other, but for a connection that is lost."""
    try:
        return FetchReply(_as_response(await asked), abort)
    except JsException as error:
        if error.message.startswith(_LOST):
            raise TransportError(error.message, sent=True) from error
        refusal = js_object({"name": error.name, "message": error.message})
        return FetchReply(_response(refusal, status=raised_status(error.message)), abort)
    except BaseException:
        abort.abort()
        raise


def _as_response(result: Any) -> Any:
    """A Response; or what it would hold: a stream, or the answer itself."""
    kind = result.constructor.name if hasattr(result, "constructor") else ""
    if kind == "Response":
        return result
    return js.Response.new(result) if kind == "ReadableStream" else _response(result)


def _response(value: Any, *, status: int = 200) -> Any:
    return js.Response.new(
        js.JSON.stringify(value), js_object({"status": status, "headers": {"content-type": "application/json"}})
    )
