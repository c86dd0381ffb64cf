"""`safe_fetch`: a request to the outside by the rules of an Egress, redirects judged one by one, the body capped.

What it does not do: pin the address. The runtime of Workers looks a name up itself when it connects, so a name whose
addresses change between our look-up and that one is judged by the first answer and reached by the second.
"""

import asyncio
import functools
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urljoin

import httpx2

from edge_agent.core.egress import Egress, Fetch, Fetched, Fetcher, Requested
from edge_agent.core.errors import Closed, EgressRefused, OutcomeUnknown, ToolError
from edge_agent.tools.egress_names import Resolved, resolved
from edge_agent.tools.egress_rules import (
    Destination,
    destination,
    judge_addresses,
    judge_request,
    known_addresses,
    shown,
)

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_SAFE = frozenset({"GET", "HEAD"})
_TRAVELS = frozenset({"accept", "accept-language", "user-agent"})  # anything else may be a credential
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te", "upgrade"})
_MOST_DNS = 65_536  # bytes of a resolver's answer
Tell = Callable[[Requested], None]
Transport = Callable[[], httpx2.AsyncBaseTransport]


async def safe_fetch(
    url: str,
    egress: Egress,
    transport: Transport,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    content: bytes = b"",
    client_name: str = "edge-agent",
    tell: Tell = lambda _: None,
) -> Fetched:
    """The answer, whatever its status. `tell` hears of each request once, also of one that was refused.

    transport: makes one that follows no redirects: httpx2.AsyncHTTPTransport, or WorkersTransport in a Worker.
    Raises EgressRefused where a rule forbids the request or a redirect, ToolError where no whole answer came in time,
    OutcomeUnknown in place of either once a request was sent that may have changed something."""
    given = {name.lower(): value for name, value in (headers or {}).items()}
    if refused := _OURS & given.keys():
        raise ToolError(f"the header {min(refused)} is set by the runtime, not by a tool")
    sent = _Sent(method=method, headers={"user-agent": client_name, "accept": "*/*", **given}, content=content)
    try:
        async with asyncio.timeout(egress.timeout), transport() as http:
            return await _Fetch(egress, http, tell).followed(url, sent)
    except TimeoutError:
        error = ToolError(f"no whole answer came within {egress.timeout:g} s")
    except ToolError as raised:
        error = raised
    raise OutcomeUnknown(str(error)) if sent.changes_things else error


def fetcher_over(transport: Transport, egress: Egress, client_name: str) -> Fetcher:
    """How the tools of an agent fetch: `safe_fetch` by its Egress."""

    def told_to(tell: Tell) -> Fetch:
        return functools.partial(safe_fetch, egress=egress, transport=transport, client_name=client_name, tell=tell)

    return told_to


@dataclass(slots=True, kw_only=True)
class _Sent:
    """What is sent, as redirects change it. `changes_things`: a method other than GET and HEAD went out."""

    method: str
    headers: dict[str, str]
    content: bytes = field(repr=False)
    changes_things: bool = False

    def redirected(self, by: "_Redirect", to: Destination) -> None:
        """As browsers do: 303 asks again by GET, and so do 301 and 302 after a POST. Raises EgressRefused."""
        if (by.source.scheme, to.scheme) == ("https", "http"):
            raise EgressRefused("the answer redirects from https to http")
        if (by.status == 303 and self.method != "HEAD") or (by.status in (301, 302) and self.method == "POST"):  # noqa: PLR2004
            self.method, self.content = "GET", b""
            self.headers.pop("content-type", None)
        if by.source.origin != to.origin:
            if self.content:
                raise EgressRefused("the answer redirects what was sent to another origin")
            self.headers = {name: value for name, value in self.headers.items() if name in _TRAVELS}


@dataclass(frozen=True, slots=True)
class _Redirect:
    """By the answer of `source`."""

    source: Destination
    status: int


@dataclass(frozen=True, slots=True)
class _Fetch:
    egress: Egress
    http: httpx2.AsyncBaseTransport
    tell: Tell

    async def followed(self, url: str, sent: _Sent) -> Fetched:
        by: _Redirect | None = None
        for _ in range(self.egress.max_redirects + 1):
            to = await self._judged(url, sent, by)
            async with self._answer(to, sent) as response:
                location = response.headers.get("location") if response.status_code in _REDIRECTS else None
                if location is None:
                    return await self._read(to, response)
            by, url = _Redirect(to, response.status_code), _joined(to.url, location)
        raise self._refused(url, sent, f"it comes after {self.egress.max_redirects} redirects")

    async def _judged(self, url: str, sent: _Sent, by: _Redirect | None) -> Destination:
        """Raises EgressRefused, and tells of it."""
        try:
            to = destination(url)
            if by is not None:
                sent.redirected(by, to)
            judge_request(to, sent.method, self.egress)
            known = known_addresses(to)
            found = Resolved(known, ()) if known else await resolved(to.host, self.egress.resolver, self._ask)
            judge_addresses(to, found.addresses, found.aliases, self.egress)
        except EgressRefused as error:
            raise self._refused(url, sent, str(error)) from None
        except asyncio.CancelledError:
            with suppress(Closed):  # a run that was ended meanwhile takes no record
                self._refused(url, sent, "it was given up before its addresses were known")
            raise
        return to

    def _refused(self, url: str, sent: _Sent, reason: str) -> EgressRefused:
        self.tell(Requested(method=sent.method, url=shown(url), allowed=False, reason=reason))
        return EgressRefused(f"{shown(url)} was not fetched: {reason}.")

    @asynccontextmanager
    async def _answer(self, to: Destination, sent: _Sent) -> AsyncGenerator[httpx2.Response]:
        """The answer's head. Told of when it has come, and when it does not."""
        said = Requested(method=sent.method, url=to.shown, allowed=True)
        sent.changes_things |= sent.method not in _SAFE
        try:
            response = await self._send(sent.method, to.url, sent.headers, sent.content)
        except httpx2.HTTPError as error:
            self.tell(_with(said, reason=f"no answer came ({type(error).__name__})"))
            raise ToolError(f"{to.shown} did not answer ({type(error).__name__}).") from None
        except asyncio.CancelledError:
            with suppress(Closed):
                self.tell(_with(said, reason="it was given up before an answer came"))
            raise
        self.tell(_with(said, status=response.status_code))
        try:
            yield response
        finally:
            await response.aclose()

    async def _read(self, to: Destination, response: httpx2.Response) -> Fetched:
        most = self.egress.max_bytes
        try:
            content = await _body(response, most)
        except (httpx2.HTTPError, zlib.error, EOFError) as error:
            raise ToolError(f"the answer of {to.shown} broke off ({type(error).__name__}).") from None
        if content is None:
            raise ToolError(f"the answer of {to.shown} has more than the {most} bytes that are allowed.")
        return Fetched(url=to.shown, status=response.status_code, headers=dict(response.headers), content=content)

    async def _ask(self, url: str) -> bytes | None:
        """A question to the resolver, whose own address is the deployment's word and not judged."""
        try:
            response = await self._send("GET", url, {"accept": "application/dns-json"}, b"")
            try:
                return await _body(response, _MOST_DNS) if response.status_code == _OK else None
            finally:
                await response.aclose()
        except (httpx2.HTTPError, zlib.error, EOFError):
            return None

    async def _send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> httpx2.Response:
        waits = dict.fromkeys(("connect", "read", "write", "pool"), self.egress.timeout)
        asked = {**headers, "accept-encoding": "gzip"}
        request = httpx2.Request(method, url, headers=asked, content=content or None, extensions={"timeout": waits})
        return await self.http.handle_async_request(request)


def _joined(url: str, location: str) -> str:
    """What is no URL at all is refused as such by whoever looks at it next."""
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def _with(said: Requested, *, status: int | None = None, reason: str | None = None) -> Requested:
    return Requested(method=said.method, url=said.url, allowed=said.allowed, status=status, reason=reason)


# -- bodies
async def _body(response: httpx2.Response, most: int) -> bytes | None:
    """Unpacked piece by piece, so that no more than `most` bytes ever come of it; None where there are more.

    Raises EOFError for a packed body that has no end, and ToolError for a packing nobody asked for."""
    unpack = _Unpacked(response.headers.get("content-encoding", "").strip().lower())
    content = bytearray()
    async for piece in response.aiter_raw():
        content += unpack.more(piece, most + 1 - len(content))
        if len(content) > most:
            return None
    unpack.end()
    return bytes(content)


class _Unpacked:
    """gzip and deflate; in a Worker the runtime has undone gzip and brotli already, and their header is gone."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolError("the answer is packed in a way that nobody asked for.")
        self._packed, self._began = encoding not in ("", "identity"), False
        self._zip = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its first bytes say

    def more(self, piece: bytes, most: int) -> bytes:
        if not self._packed:
            return piece
        self._began = True
        data = self._zip.decompress(piece, most)
        if self._zip.unused_data:
            raise EOFError("something comes after the end")
        return data

    def end(self) -> None:
        """An answer to HEAD says how its body would be packed, and has none."""
        if self._began and not self._zip.eof:
            raise EOFError("the end is missing")
