"""The HTTP beneath an MCP session, kept from taking the session down with it.

The SDK ends a whole session, with every call in flight, when one request fails on the wire, and says only "Connection
closed". Here a failed request becomes an answer to that request alone, and what happened to each call is kept.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeVar, cast

import httpx2

T = TypeVar("T")

MAX_ANSWER_BYTES = 10_000_000
_NOTICE_SECONDS = 3.0  # for what nobody waits for: notifications hold up the calls behind them, the farewell the close
_FAILED = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the request failed on the wire"}}'
_FAILED_EVENT = b"event: message\ndata: " + _FAILED + b"\n\n"
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


class TooLarge(httpx2.TransportError):
    """An answer beyond MAX_ANSWER_BYTES."""


class Abandoned(Exception):
    """Nobody waits for this call any more."""


@dataclass(slots=True)
class Exchange:
    """What became of one call's requests.

    began: the request itself was made, not only what precedes it. status: of the last answer; 0 before it.
    in_session: the server was told of a session it had opened. turned_away: an answer was 401, perhaps not the last
    one: whoever opens a session may go on to another way. error: what failed on the wire, if anything did."""

    began: bool = False

    status: int = 0
    in_session: bool = False
    turned_away: bool = False
    error: httpx2.TransportError | None = None
    _abandoned: bool = False
    _waiting: "asyncio.Task[object] | None" = None

    def reset(self) -> None:
        """Before the call is made again."""
        self.began, self.status, self.in_session, self.turned_away, self.error = False, 0, False, False, None

    @property
    def never_sent(self) -> bool:
        return isinstance(self.error, _NEVER_SENT)

    def abandon(self) -> None:
        """Lets go of the connection: an older server may stop working on a cancelled call and still never answer it."""
        self._abandoned = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def waited(self, work: Awaitable[T]) -> T:
        """Raises Abandoned as soon as the call is."""
        if self._abandoned:
            raise Abandoned
        task = self._waiting = asyncio.current_task()
        try:
            return await work
        except asyncio.CancelledError:
            if not self._abandoned or task is None:
                raise
            task.uncancel()  # that cancel was ours
            raise Abandoned from None
        finally:
            self._waiting = None


# The SDK runs the request of a call in the context of whoever made the call, which is how a request finds its exchange.
EXCHANGE: ContextVar[Exchange | None] = ContextVar("edge_agent_mcp_exchange", default=None)


class SessionTransport(httpx2.AsyncBaseTransport):
    """Sends by another client, and never raises for the requests of a session."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = EXCHANGE.get()
        if request.method == "DELETE" or (request.method == "POST" and not await _is_request(request)):
            return await self._notified(request)
        if exchange is None or not (request.method == "POST" or "last-event-id" in request.headers):
            return _passed_on(await self._sent(request))
        exchange.in_session = "mcp-session-id" in request.headers
        try:
            response = await exchange.waited(self._sent(request))
        except Abandoned:
            return _failed(request)
        except httpx2.TransportError as error:
            exchange.error = error
            if request.method == "GET":
                raise  # the SDK tries to resume again
            return _failed(request)
        exchange.status = response.status_code
        exchange.turned_away |= response.status_code == HTTPStatus.UNAUTHORIZED
        return _passed_on(response, exchange)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True, follow_redirects=False)

    async def _notified(self, request: httpx2.Request) -> httpx2.Response:
        try:
            async with asyncio.timeout(_NOTICE_SECONDS):
                response = await self._sent(request)
                await response.aclose()
        except (httpx2.TransportError, TimeoutError):
            return httpx2.Response(204)
        return httpx2.Response(response.status_code, headers=_kept(response))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, exchange: Exchange | None) -> None:
        self._response, self._exchange = response, exchange
        self._is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        if self._exchange is None:
            async with aclosing(_raw(self._response)) as chunks:
                async for chunk in chunks:
                    yield chunk
            return
        try:
            async with aclosing(self._watched(self._exchange)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (httpx2.TransportError, Abandoned) as ended:
            if isinstance(ended, httpx2.TransportError):
                self._exchange.error = ended
            # In a stream the SDK would ask the server to resume; this ends the request instead.
            if self._is_stream and isinstance(ended, Abandoned):
                yield _FAILED_EVENT

    async def _watched(self, exchange: Exchange) -> AsyncGenerator[bytes]:
        received = 0
        async with aclosing(_raw(self._response)) as chunks:
            while (chunk := await exchange.waited(anext(chunks, None))) is not None:
                received += len(chunk)
                if received > MAX_ANSWER_BYTES and not self._is_stream:
                    raise TooLarge(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
                yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


def _raw(response: httpx2.Response) -> AsyncGenerator[bytes]:
    return cast("AsyncGenerator[bytes]", aiter(cast("httpx2.AsyncByteStream", response.stream)))


def _passed_on(response: httpx2.Response, exchange: Exchange | None = None) -> httpx2.Response:
    return httpx2.Response(response.status_code, headers=response.headers, stream=_Body(response, exchange))


def _kept(response: httpx2.Response) -> list[tuple[str, str]]:
    """Headers without those that speak of a body that is not there."""
    about_body = ("content-length", "content-encoding", "transfer-encoding")
    return [(name, value) for name, value in response.headers.multi_items() if name not in about_body]


def _failed(request: httpx2.Request) -> httpx2.Response:
    if request.method == "GET":
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_FAILED_EVENT)
    return httpx2.Response(503, headers={"content-type": "application/json"}, content=_FAILED)


async def _is_request(request: httpx2.Request) -> bool:
    """Whether someone waits for an answer; notifications and answers to the server have no id or no method."""
    message = json.loads(await request.aread())  # read: one that follows a redirect has only a stream
    return isinstance(message, dict) and "id" in message and "method" in message
