"""The transport over httpx2. Apart from transport.py because importing httpx2 costs a third of a second in the
Worker."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

import httpx2

from edge_agent.models.transport import TransportError

SENT = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)
ClientFactory = Callable[[], httpx2.AsyncClient]


class HttpxTransport:
    """Posts with a client of the factory, which is closed with the reply: none outlives its event loop.

    `shared`: the factory gives one client again and again, and its owner closes it."""

    def __init__(self, client_factory: ClientFactory, *, shared: bool = False) -> None:
        self._client_factory, self._shared = client_factory, shared

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> "HttpxReply":
        client = self._client_factory()
        try:
            # Time limits are the caller's: httpx2 would start and stop a timer for each read.
            request = client.build_request("POST", url, headers=dict(headers), content=body, timeout=None)
            response = await client.send(request, stream=True, follow_redirects=False)
        except BaseException as error:
            await self._close(client)
            if isinstance(error, Exception):  # a strange host or port raises all kinds, groups of errors among them
                raise TransportError(_told(error), sent=isinstance(error, SENT)) from error
            raise
        return HttpxReply(response, None if self._shared else client)

    async def _close(self, client: httpx2.AsyncClient) -> None:
        if not self._shared:
            await client.aclose()


class HttpxReply:
    def __init__(self, response: httpx2.Response, client: httpx2.AsyncClient | None) -> None:
        self._response, self._client = response, client
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_bytes():
                yield chunk
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            raise TransportError(_told(error)) from error

    async def close(self) -> None:
        with suppress(httpx2.HTTPError):
            await self._response.aclose()
        if self._client is not None:
            await self._client.aclose()


def _told(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
