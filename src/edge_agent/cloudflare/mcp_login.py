"""The connection to one MCP server for one user: requests of runs pass through it and get their token here.

No token leaves the object but towards the server. What a login needs between the redirect and the callback, and who
waits for it, is in its SQLite; an instance holds nothing that the next one would miss.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import js
from pyodide.ffi import to_js

from edge_agent.cloudflare.sql import ObjectClock
from edge_agent.core.errors import Refusal, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.forking import Objects
from edge_agent.http.mcp_links import ConnectionId, link_to, state_for
from edge_agent.storage.mcp_connections import SqlConnection, Waiter
from edge_agent.tools.mcp_credentials import Challenge, CredentialStore
from edge_agent.tools.mcp_oauth import McpOAuth, Parties, WrongCallback, kept_headers, new_nonce

_FAULT = "fault"
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NOT_PASSED = frozenset({"authorization", "host", "content-length", "connection"})
_LONGEST_PAUSE_MS = 60_000
_DOUBLINGS = 6
_OVER = (404, 409, 410)  # a run that does not ask any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Connecting:
    """What a connection works with. `key`: that of run tokens. `runs`: who waits for a login."""

    parties: Parties
    key: Callable[[], Awaitable[bytes]]
    runs: Objects


@dataclass(frozen=True, slots=True)
class LiveConnection:
    whose: ConnectionId
    shelf: SqlConnection
    store: CredentialStore
    oauth: McpOAuth
    wiring: Connecting
    storage: Any

    @classmethod
    def open(cls, whose: ConnectionId, shelf: SqlConnection, wiring: Connecting, storage: Any) -> "LiveConnection":
        store = CredentialStore(shelf, wiring.parties.vault, wiring.parties.server.url)
        return cls(whose, shelf, store, McpOAuth(wiring.parties, store), wiring, storage)

    # -- commands
    async def answer(self, method: str, payload: JsonObject) -> JsonObject:
        """Status  {} -> {"state": connected | sign-in | failed, "by_person", "link"?, "fault"?}
        begin   {"redirect_uri", "browser"} -> {"url"}: where the browser goes
        finish  {"state", "browser", "code"?, "iss"?} -> status
        wait    {"run_id", "question_id"} -> {}: the question is answered when a login is done
        renew   {} -> status

        `browser`: the digest of a cookie. Raises Refusal."""
        match method:
            case "begin":
                return {"url": await self._begin(payload)}
            case "finish":
                await self._finish(payload)
            case "wait":
                await self._wait(str(payload["run_id"]), str(payload["question_id"]))
            case "renew":
                await self._told(self.oauth.renew())
            case _:
                pass
        return await self.status()

    async def status(self) -> JsonObject:
        by_person = self.oauth.needs_person
        held = await self.store.held()
        fault = self.shelf.get(_FAULT)
        if fault is None and held.token and held.challenge is None:
            return {"state": "connected", "by_person": by_person}
        status: JsonObject = {"state": "sign-in" if fault is None else "failed", "by_person": by_person}
        if fault is not None:
            status["fault"] = fault
        if by_person:
            status["link"] = link_to(await self.wiring.key(), self.whose, ObjectClock().now())
        return status

    async def _begin(self, payload: JsonObject) -> str:
        state = state_for(await self.wiring.key(), self.whose, new_nonce())
        self._remember_name()
        return await self._told(self.oauth.begin(state, str(payload["redirect_uri"]), str(payload["browser"])))

    async def _finish(self, payload: JsonObject) -> None:
        code, iss = payload.get("code"), payload.get("iss")
        await self._told(self.oauth.finish(str(payload["state"]), str(payload["browser"]), code=code, iss=iss))
        now = ObjectClock().now()
        self.shelf.release(now)
        self.storage.setAlarm(now)

    async def _told(self, work: Awaitable[Any]) -> Any:
        """A fault of the login stays on show until one succeeds. Raises Refusal."""
        try:
            done = await work
        except WrongCallback as error:
            raise Refusal(403, "wrong_login", f"Nothing was changed: {error}. Open the link again.") from error
        except ToolError as error:
            self._remember_name()
            self.shelf.put(_FAULT, str(error))
            message = f"The login to {self.whose.server} failed: {error}."
            raise Refusal(502, "login_failed", message) from error
        self.shelf.put(_FAULT, None)
        return done

    async def _wait(self, run_id: str, question_id: str) -> None:
        """A login that was done meanwhile is told at once."""
        connected = (await self.status())["state"] == "connected"
        now = ObjectClock().now()
        self._remember_name()
        self.shelf.wait(run_id, question_id, now if connected else 0)
        if connected:
            self.storage.setAlarm(now)

    def _remember_name(self) -> None:
        self.shelf.put("name", self.whose.name)

    # -- whoever waits
    async def tell(self) -> None:
        """Answers the questions of runs that waited, each until the run has taken it or asks no more."""
        for waiter in self.shelf.due(ObjectClock().now()):
            if await self._answered(waiter):
                self.shelf.told(waiter)
            else:
                pause = min(_LONGEST_PAUSE_MS, 1_000 * 2 ** min(waiter.tries, _DOUBLINGS))
                self.shelf.postpone(waiter, ObjectClock().now() + pause)
        if (due := self.shelf.next_due()) is not None:
            self.storage.setAlarm(due)

    async def _answered(self, waiter: Waiter) -> bool:
        try:
            await self.wiring.runs.call(
                waiter.run_id, "answer", {"question_id": waiter.question_id, "answer": "signed in"}
            )
        except Refusal as no:
            return no.status in _OVER
        return True

    # -- requests of runs
    async def passed_on(self, request: Any) -> Any:
        """The server's answer; 401 where there is no token for it. Only for the server itself."""
        if _origin(str(request.url)) != _origin(self.wiring.parties.server.url):
            return js.Response.new("another origin", status=421)
        body = await request.arrayBuffer() if request.body else None
        try:
            token = await self.oauth.bearer()
            response = await _sent(request, body, token)
            for refresh in (True, False):
                if not _is_challenge(response):
                    break
                challenge = Challenge(status=response.status, headers=_headers(response))
                if response.body:
                    await response.body.cancel()
                token = await self.oauth.after_refusal(token, challenge, refresh=refresh)
                if token is None:
                    return _turned_away()
                response = await _sent(request, body, token)
        except ToolError as error:
            self._remember_name()
            self.shelf.put(_FAULT, str(error))
            return _turned_away()
        if _is_challenge(response):
            return _turned_away()
        if self.shelf.get(_FAULT):
            self.shelf.put(_FAULT, None)
        return response


def _turned_away() -> Any:
    return js.Response.new(None, status=_UNAUTHORIZED)


async def _sent(request: Any, body: Any, token: str | None) -> Any:
    """Its answer streams to the run as it comes; a run that lets go aborts it."""
    headers = [[str(name), str(value)] for name, value in request.headers if str(name).lower() not in _NOT_PASSED]
    if token is not None:
        headers.append(["authorization", f"Bearer {token}"])
    init = {"method": request.method, "headers": headers, "redirect": "manual", "signal": request.signal}
    if body is not None:
        init["body"] = body
    return await js.fetch(request.url, to_js(init, dict_converter=js.Object.fromEntries))


def _is_challenge(response: Any) -> bool:
    said = str(response.headers.get("www-authenticate") or "")
    return response.status == _UNAUTHORIZED or (response.status == _FORBIDDEN and "insufficient_scope" in said)


def _headers(response: Any) -> dict[str, str]:
    return kept_headers({str(name): str(value) for name, value in response.headers})


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
