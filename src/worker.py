"""The Worker: streams of a run go to the run's object as they are, everything else to the API. No logic."""

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import js
from pyodide.ffi import JsException
from workers import WorkerEntrypoint, asgi

from durable_objects.directory import Directory
from durable_objects.key_store import KeyStore
from durable_objects.mcp_connection import McpConnection
from durable_objects.run import Run
from durable_objects.skills import Skills
from durable_objects.wiring import Served, console_of, served
from edge_agent.core import keys
from edge_agent.core.errors import Refusal
from edge_agent.http.door import answered, let_in, page_headers, problem_of, told
from edge_agent.http.problems import Answer
from edge_agent.http.routing import StreamRoute, most_body, stream_route

# The runtime looks for the classes of the objects in this module.
__all__ = ["Default", "Directory", "KeyStore", "McpConnection", "Run", "Skills"]

_MOST_THROWN_AWAY = 8_388_608  # bytes of a body over its cap


class Default(WorkerEntrypoint):
    """One instance per request."""

    async def fetch(self, request: Any) -> Any:
        """Never raises: what fails becomes a problem, and its cause goes to the console only."""
        try:
            deployment = served(self.env)
        except Exception as error:  # noqa: BLE001 - a client never sees a traceback
            return _response(problem_of(error, console_of(self.env), int(js.Date.now())))
        incoming, began = Incoming(request.js_object, deployment), deployment.deps.clock.now()
        try:
            answer = await self._answer(incoming, deployment)
        except Exception as error:  # noqa: BLE001 - a client never sees a traceback
            answer = _response(told(deployment.deps, error, incoming.by_name.get("origin")))
        answered(deployment.deps, incoming.method, urlsplit(incoming.url).path, answer.status, began)
        return answer

    async def _answer(self, incoming: "Incoming", deployment: Served) -> Any:
        url = urlsplit(incoming.url)
        if route := stream_route(incoming.method, url.path):
            await let_in(deployment.deps, url.scheme, incoming.method, url.path, incoming.by_name)
            response = await self._from_object(route, incoming)
            return _readable(response, page_headers(deployment.deps, incoming.by_name.get("origin")))
        if url.path == "/docs":
            return await self.env.ASSETS._binding.fetch(incoming.js_request)  # noqa: SLF001 - the raw binding
        return await asgi.fetch(deployment.app, incoming, self.env, self.ctx)

    async def _from_object(self, route: StreamRoute, incoming: "Incoming") -> Any:
        # The raw stub, request and response: the wrappers drop the socket of an upgrade.
        stub = self.env.RUN._binding.getByName(keys.object_of(route.run_id))  # noqa: SLF001
        try:
            return await stub.fetch(incoming.js_request)
        except JsException as error:
            detail = "The run's object did not answer, perhaps because it restarts. Try again with the cursor."
            raise Refusal(503, "run_unavailable", detail, retry_after=1) from error


class Incoming:
    """A request as the bridge reads it: its body ends soon after the cap, so that a huge one is never held whole. What
    comes after is read and thrown away, for a while: a client that still writes would meet a reset, not the answer."""

    def __init__(self, js_request: Any, deployment: Served) -> None:
        self.js_request, self._deployment = js_request, deployment
        self.url, self.method = str(js_request.url), str(js_request.method)
        self.headers = [(str(name).lower(), str(value)) for name, value in js_request.headers]
        self.by_name = dict(self.headers)

    @property
    def body(self) -> AsyncIterator[Any] | None:
        return self._chunks(self.js_request.body) if self.js_request.body else None

    async def _chunks(self, stream: Any) -> AsyncIterator[Any]:
        most = most_body(urlsplit(self.url).path, self._deployment.deps.settings.max_body)
        reader, left = stream.getReader(), most
        while left >= -_MOST_THROWN_AWAY and not (read := await reader.read()).done:
            if left >= 0:
                yield read.value
            left -= read.value.byteLength
        if left < -_MOST_THROWN_AWAY:
            await reader.cancel()


def _response(answer: Answer) -> Any:
    headers = js.Headers.new(list(answer.headers.items()))
    return js.Response.new(answer.body.decode(), status=answer.status, headers=headers)


def _readable(response: Any, headers: Mapping[str, str]) -> Any:
    """With the headers a page of another origin needs; an upgrade is left as it is."""
    if response.status == HTTPStatus.SWITCHING_PROTOCOLS or not headers:
        return response
    answer = js.Response.new(response.body, response)
    for name, value in headers.items():
        answer.headers.set(name, value)
    return answer
