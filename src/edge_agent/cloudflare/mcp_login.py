"""The connection to one MCP server for one user: requests of runs pass through it and get their token here.

No token leaves the object but towards the server. What a login needs between the redirect and the callback, and who
waits for it, is in its SQLite; an instance holds nothing that the next one would miss.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import js

from edge_agent.cloudflare.javascript import js_object
from edge_agent.cloudflare.sql import ObjectClock
from edge_agent.core.errors import Refusal, ToolError
from edge_agent.core.messages import JsonObject
from edge_agent.forking import Objects
from edge_agent.http.mcp_links import LIFETIME, ConnectionId, link_to, state_for
from edge_agent.login_waiters import Waiters
from edge_agent.storage.mcp_connections import SqlConnection
from edge_agent.tools.mcp_credentials import Challenge, CredentialStore
from edge_agent.tools.mcp_oauth import McpOAuth, Parties, WrongCallback, kept_headers, new_nonce

_FAULT = "fault"  # of a login: another may do better
_AWAY = "away"  # why a request got no token, where it is not a person that is missing
_UNAUTHORIZED, _FORBIDDEN = 401, 403
_NOT_PASSED = frozenset({"authorization", "host", "content-length", "connection"})


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
    waiters: Waiters
    storage: Any

    @classmethod
    def open(cls, whose: ConnectionId, shelf: SqlConnection, wiring: Connecting, storage: Any) -> "LiveConnection":
        store = CredentialStore(shelf, wiring.parties.vault, wiring.parties.server.url)
        waiters = Waiters(shelf, wiring.runs, ObjectClock())
        return cls(whose, shelf, store, McpOAuth(wiring.parties, store), wiring, waiters, storage)

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
                await self._told(self.oauth.renew(), fault=_AWAY)
            case _:
                pass
        return await self.status()

    async def status(self) -> JsonObject:
        by_person = self.oauth.needs_person
        held = await self.store.held()
        away = self.shelf.get(_AWAY)
        fault = away or self.shelf.get(_FAULT)
        if fault is None and held.token and held.challenge is None:
            return {"state": "connected", "by_person": by_person}
        status: JsonObject = {"state": "sign-in" if fault is None else "failed", "by_person": by_person}
        if fault is not None:
            status["fault"] = fault
        if by_person and away is None:
            status["link"] = link_to(await self.wiring.key(), self.whose, ObjectClock().now())
        return status

    async def _begin(self, payload: JsonObject) -> str:
        state = state_for(await self.wiring.key(), self.whose, new_nonce())
        self._remember_name()
        return await self._told(self.oauth.begin(state, str(payload["redirect_uri"]), str(payload["browser"])))

    async def _finish(self, payload: JsonObject) -> None:
        code, iss = payload.get("code"), payload.get("iss")
        await self._told(self.oauth.finish(str(payload["state"]), str(payload["browser"]), code=code, iss=iss))
        self.storage.setAlarm(self.waiters.release())

    async def _told(self, work: Awaitable[Any], *, fault: str = _FAULT) -> Any:
        """What went wrong stays on show until something succeeds. Raises Refusal."""
        try:
            done = await work
        except WrongCallback as error:
            raise Refusal(403, "wrong_login", f"Nothing was changed: {error}. Open the link again.") from error
        except ToolError as error:
            self._remember_name()
            self.shelf.put(fault, str(error))
            message = f"The login to {self.whose.server} failed: {error}."
            raise Refusal(502, "login_failed", message) from error
        self._forget_faults()
        return done

    def _forget_faults(self) -> None:
        for name in (_FAULT, _AWAY):
            if self.shelf.get(name):
                self.shelf.put(name, None)

    async def _wait(self, run_id: str, question_id: str) -> None:
        """A login that was done meanwhile is told at once."""
        self._remember_name()
        if (due := await self.waiters.wait(run_id, question_id, LIFETIME, self._is_connected)) is not None:
            self.storage.setAlarm(due)

    async def _is_connected(self) -> bool:
        return (await self.status())["state"] == "connected"

    def _remember_name(self) -> None:
        self.shelf.put("name", self.whose.name)

    # -- whoever waits
    async def tell(self) -> None:
        if (due := await self.waiters.tell()) is not None:
            self.storage.setAlarm(due)

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
                    self.shelf.put(_AWAY, None)
                    return _turned_away()
                response = await _sent(request, body, token)
        except ToolError as error:
            self._remember_name()
            self.shelf.put(_AWAY, str(error))
            return _turned_away()
        if _is_challenge(response):
            return _turned_away()
        self._forget_faults()
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
    return await js.fetch(request.url, js_object(init))


def _is_challenge(response: Any) -> bool:
    said = str(response.headers.get("www-authenticate") or "")
    return response.status == _UNAUTHORIZED or (response.status == _FORBIDDEN and "insufficient_scope" in said)


def _headers(response: Any) -> dict[str, str]:
    return kept_headers({str(name): str(value) for name, value in response.headers})


def _origin(url: str) -> str:
    """As the runtime writes it, which has normalised the url of a request."""
    return str(js.URL.new(url).origin)
