"""Logins to MCP servers: the link, the page behind it, what comes back from it, and who we are as an OAuth client."""

import hashlib
import re
import secrets
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http import login_page
from edge_agent.http.auth import is_same_origin
from edge_agent.http.mcp_links import CALLBACK, DOCUMENT, PATH, ConnectionId, link_to, opened_link, opened_state
from edge_agent.http.openapi import HTML, problems
from edge_agent.http.ports import Deps
from edge_agent.wire.http_answers import ClientDocument, ConnectionAnswer

ServerName = Annotated[str, Path(max_length=32, description="As it is configured, with `auth`.")]
LinkToken = Annotated[str, Path(min_length=1, max_length=600, description="The last part of a `link`.")]
Given = Annotated[str | None, Query(max_length=4_000)]
COOKIE = "edge-agent-login"
_COOKIE_SECONDS = 900
_COOKIE_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")


def mcp_routes(deps: Deps) -> APIRouter:
    router = APIRouter(tags=["mcp"])
    _by_callers(router, deps)
    _by_browsers(router, deps)
    return router


def _by_callers(router: APIRouter, deps: Deps) -> None:
    @router.post(
        "/v1/mcp/{server}/connect", response_model=ConnectionAnswer, responses=problems(400, 404, 413, 415, 422, 503)
    )
    async def connect_server(request: Request, server: ServerName) -> JSONResponse:
        """How the caller's login to a server stands, and the path of a page where a person signs in, anew if need be.
        The page begins the login: open it in the browser that is to come back from it."""
        whose = _known(deps, ConnectionId(server=server, user=request.state.caller.name))
        status = await deps.connections.call(whose, "status", {})
        link = link_to(await deps.run_token_key(), whose, deps.clock.now())
        return JSONResponse({"server": server, **status, **({"link": link} if status["by_person"] else {})})

    @router.post("/v1/mcp/reconnect", responses=problems(400, 413, 415, 422, 503))
    async def reconnect_servers(request: Request) -> tuple[ConnectionAnswer, ...]:
        """New tokens for the caller's logins, without a deploy. Runs under way use them from their next request on, and
        where a server's headers have changed, a new connection from their next round on."""
        found: list[ConnectionAnswer] = []
        for server in deps.offer.logins():
            whose = ConnectionId(server=server, user=request.state.caller.name)
            try:
                status = await deps.connections.call(whose, "renew", {})
            except Refusal as no:
                status = {"state": "failed", "fault": no.message}
            found.append(ConnectionAnswer.model_validate({"server": server, **status}))
        return tuple(found)

    @router.get(DOCUMENT)
    async def client_document(request: Request) -> ClientDocument:
        """This deployment as an OAuth client (a client id metadata document). Needs no token."""
        origin = _origin(request)
        return ClientDocument(
            client_id=f"{origin}{DOCUMENT}",
            client_name=deps.settings.name,
            client_uri=origin,
            redirect_uris=(f"{origin}{CALLBACK}",),
        )


def _by_browsers(router: APIRouter, deps: Deps) -> None:
    path = f"{PATH}/{{link}}"

    @router.get(path, response_class=HTMLResponse, responses=problems(403, 404, 410, 422))
    async def read_login(link: LinkToken) -> Response:
        """The page that says who is to be let in where. It begins nothing."""
        try:
            return login_page.before(_known(deps, await _opened(deps, link)))
        except Refusal as no:
            return login_page.refused(no)

    @router.post(
        path,
        response_class=HTMLResponse,
        responses={303: HTML[200], **problems(400, 403, 404, 410, 413, 415, 422, 502, 503)},
    )
    async def begin_login(request: Request, link: LinkToken) -> Response:
        """Sends the browser to the authorization server. What comes back is taken from this browser alone.

        Only for the button of the page: another site's page could make its visitor sign in for the owner of a link."""
        browser = _browser(request)
        try:
            _require_own_page(request)
            whose = _known(deps, await _opened(deps, link))
            asked = {"redirect_uri": f"{_origin(request)}{CALLBACK}", "browser": _digest(browser)}
            begun = await deps.connections.call(whose, "begin", asked)
        except Refusal as no:
            return login_page.refused(no)
        answer = RedirectResponse(begun["url"], HTTPStatus.SEE_OTHER)
        answer.set_cookie(
            _cookie(request),
            browser,
            max_age=_COOKIE_SECONDS,
            path="/v1/mcp",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    @router.get(CALLBACK, response_class=HTMLResponse, responses=problems(403, 404, 422, 502, 503))
    async def finish_login(request: Request, state: Given = None, code: Given = None, iss: Given = None) -> Response:
        """Where the authorization server sends the browser back to. Each state is good for one call."""
        try:
            whose = _known(deps, opened_state(await deps.run_token_key(), state or ""))
            browser = request.cookies.get(_cookie(request), "")
            came: JsonObject = {"state": state, "browser": _digest(browser), "code": code, "iss": iss}
            await deps.connections.call(whose, "finish", came)
        except Refusal as no:
            return login_page.refused(no)
        return login_page.after(whose)


def _known(deps: Deps, whose: ConnectionId) -> ConnectionId:
    """Raises Refusal 404 before an object is asked."""
    if whose.server not in deps.offer.logins():
        known = ", ".join(deps.offer.logins()) or "none"
        message = f"No server {whose.server[:32]} with a login is configured. Those that are: {known}."
        raise Refusal(404, "unknown_server", message)
    return whose


def _require_own_page(request: Request) -> None:
    """Raises Refusal 403 for what no page of ours has sent."""
    origin = request.headers.get("origin", "")
    by_browser = request.headers.get("sec-fetch-site") in ("same-origin", "none")
    if not by_browser and not is_same_origin(origin, request.url.scheme, request.headers.get("host", "")):
        raise Refusal(403, "wrong_origin", "Nothing was begun. Open the link itself, and press the button of its page.")


async def _opened(deps: Deps, link: str) -> ConnectionId:
    return opened_link(await deps.run_token_key(), link, deps.clock.now())


def _origin(request: Request) -> str:
    return str(request.base_url).rstrip("/")


def _cookie(request: Request) -> str:
    return f"__Secure-{COOKIE}" if request.url.scheme == "https" else COOKIE


def _browser(request: Request) -> str:
    """What the browser is known by, in every login it has begun."""
    held = request.cookies.get(_cookie(request), "")
    return held if _COOKIE_VALUE.fullmatch(held) else secrets.token_urlsafe(32)


def _digest(browser: str) -> str:
    return hashlib.sha256(browser.encode()).hexdigest()
