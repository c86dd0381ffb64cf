"""httpx2 over the runtime's own fetch.

Instead of httpx2's transport for this platform (httpx2-jsfetch 1.0), which follows redirects whatever it is told, to
other origins with the caller's headers; does not abort a request whose task is cancelled; fails on answers without a
body; keeps one Set-Cookie of several; and takes a server that works longer than the connect timeout for one that is
not there. Chunks arrive by a callback: awaiting a promise each costs 72 µs even when it is already resolved.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any

import httpx2
import js
from pyodide.ffi import JsException, create_once_callable, create_proxy, to_js

from edge_agent.cloudflare.javascript import js_object

# The runtime sets these itself, or understands them for us: it decodes gzip and brotli, and nothing else.
_NOT_SENT = frozenset({"host", "content-length", "connection", "transfer-encoding", "accept-encoding"})
_NOT_TAKEN = frozenset({"set-cookie", "content-length", "transfer-encoding"})
_UNPACKED = frozenset({"gzip", "br"})  # by the runtime
_ENOUGH = 1_000_000  # bytes waiting to be read before the sender is held back


class WorkersTransport(httpx2.AsyncBaseTransport):
    """A cancelled request is aborted, and so is one whose answer is closed unread: the server sees the end of it.

    Never follows a redirect. Timeouts: `connect` and `read` together until the headers have come, `read` for each
    silence after that; `write` and `pool` have no counterpart. Raises ReadTimeout and ReadError only, never a
    ConnectError, which would promise that the request was not sent: of a refused connection and of one that was lost
    after the request had arrived the runtime says the same "Network connection lost." (measured).
    `fetch`: another than the global one, such as a service binding's.
    """

    def __init__(self, fetch: Any = None) -> None:
        self._fetch = js.fetch if fetch is None else fetch

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = b"".join([chunk async for chunk in _stream(request)])
        timeout: Mapping[str, float | None] = request.extensions.get("timeout") or {}
        connect, read = timeout.get("connect"), timeout.get("read")
        abort = js.AbortController.new()
        init: dict[str, Any] = {
            "method": request.method,
            "headers": [[name, value] for name, value in request.headers.multi_items() if name not in _NOT_SENT],
            "redirect": "manual",
            "signal": abort.signal,
        }
        if body:
            init["body"] = to_js(body)
        patience = None if connect is None or read is None else connect + read
        try:
            response = await _patiently(self._fetch(str(request.url), js_object(init)), patience)
        except (TimeoutError, JsException) as error:
            abort.abort()
            raise _as_httpx(error, patience) from error
        except asyncio.CancelledError:
            abort.abort()
            raise
        headers = _headers(response)
        if response.body:
            return httpx2.Response(response.status, headers=headers, stream=_Body(response.body, abort, read))
        return httpx2.Response(response.status, headers=headers, content=b"")


class _Body(httpx2.AsyncByteStream):
    """The Python end of a body: a stream that calls `_take` for each chunk, and `_end` once."""

    def __init__(self, body: Any, abort: Any, silence: float | None) -> None:
        self._abort, self._silence = abort, silence
        self._chunks: list[bytes] = []
        self._waiting = 0
        self._more = asyncio.Event()
        self._ended = self._closed = False
        self._error: str | None = None
        self._held: Any = None
        self._write = create_proxy(self._take)
        sink = js.WritableStream.new(js_object({"write": self._write}))
        # String makes of the reason it fails for a text, and so handles the failure.
        body.pipeTo(sink).catch(js.String).then(create_once_callable(self._end))

    def _take(self, chunk: Any, _controller: Any) -> Any:
        """The promise it may return holds the sender back until what has come is read."""
        if self._closed:
            return None
        data = chunk.to_bytes()
        self._chunks.append(data)
        self._waiting += len(data)
        self._more.set()
        if self._waiting < _ENOUGH:
            return None
        self._held = js.Promise.withResolvers()
        return self._held.promise

    def _end(self, error: str | None = None) -> None:
        self._ended, self._error = True, error
        self._more.set()
        self._write.destroy()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            while not self._closed:
                await _patiently(self._more.wait(), self._silence)
                self._more.clear()
                if self._chunks:
                    yield self._taken()
                elif self._error is not None:
                    raise httpx2.ReadError(f"the connection broke: {self._error}")
                elif self._ended:
                    return
                if self._ended:
                    self._more.set()
        except TimeoutError as error:
            raise _as_httpx(error, self._silence) from error
        finally:
            await self.aclose()

    def _taken(self) -> bytes:
        """What has come since the last look, as one piece."""
        data, self._chunks, self._waiting = b"".join(self._chunks), [], 0
        self._let_go()
        return data

    def _let_go(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.resolve()

    async def aclose(self) -> None:
        self._closed = True
        self._chunks.clear()
        self._let_go()  # an abort waits for what is being written
        if not self._ended:
            self._abort.abort()


async def _stream(request: httpx2.Request) -> AsyncGenerator[bytes]:
    if not isinstance(request.stream, httpx2.AsyncByteStream):
        raise httpx2.LocalProtocolError("an async client needs an async request body")
    async for chunk in request.stream:
        yield chunk


async def _patiently(work: Awaitable[Any], seconds: float | None) -> Any:
    async with asyncio.timeout(seconds):
        return await work


def _as_httpx(error: TimeoutError | JsException, seconds: float | None) -> httpx2.TransportError:
    if isinstance(error, TimeoutError):
        return httpx2.ReadTimeout(f"nothing came within {seconds} s")
    return httpx2.ReadError(error.message)


def _headers(response: Any) -> list[tuple[str, str]]:
    """All of them by one call, but for Set-Cookie, of which there may be several."""
    named: dict[str, str] = json.loads(js.JSON.stringify(js.Object.fromEntries(response.headers)))
    if named.get("content-encoding") in _UNPACKED:
        del named["content-encoding"]
    kept = [(name, value) for name, value in named.items() if name not in _NOT_TAKEN]
    if "set-cookie" in named:
        kept += [("set-cookie", str(cookie)) for cookie in response.headers.getSetCookie()]
    return kept
