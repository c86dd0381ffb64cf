"""OAuth 2.1 for one MCP server and one user: a token for each request, and a way to one where there is none."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import httpx2

from edge_agent.core.errors import ConfigError, ToolError
from edge_agent.tools.mcp_auth_import import (
    OAuthClientInformationFull,
    OAuthFlowError,
    validate_authorization_response_iss,
)
from edge_agent.tools.mcp_credentials import Challenge, Credentials, CredentialStore, Login, Vault, digest
from edge_agent.tools.mcp_grants import Held, Redirect, SignInFlow, client_document_url, drive, machine_flow
from edge_agent.tools.mcp_server import McpServer, OAuth

_SAID = 300  # characters of a fault
_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_KEPT = ("www-authenticate", "mcp-protocol-version")
_ERROR = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')  # RFC 6749, 5.2
_REFUSALS = (400, 401, 403)


class AuthorizationFailed(ToolError):
    """There is no token, and it is not a person that is missing: a sentence that says what went wrong."""


class WrongCallback(ToolError):
    """Nobody here has begun this login, or not in this browser, or it was finished before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """Who takes part. `secrets`: of the deployment, by name. `open_client` makes the HTTP client of a flow."""

    server: McpServer
    client_name: str
    secrets: Mapping[str, str]
    vault: Vault
    open_client: Callable[[], httpx2.AsyncClient]


class McpOAuth:
    """Holds nothing in memory but a lock: whoever comes after a restart goes on with what is stored."""

    def __init__(self, parties: Parties, store: CredentialStore) -> None:
        self._parties, self._store = parties, store
        self._server, self._renewing = parties.server, asyncio.Lock()
        self._oauth = parties.server.oauth or OAuth()

    @property
    def needs_person(self) -> bool:
        return self._oauth.grant == "authorization_code"

    # -- a token for a request
    async def bearer(self) -> str | None:
        """The token to send, renewed ahead of its end. None: there is none, ask without one.

        Raises AuthorizationFailed where the authorization server is not there just now."""
        held = await self._store.held()
        if not held.is_stale(time.time()):
            return held.token
        async with self._renewing:
            held = await self._store.held()
            if held.is_stale(time.time()):
                held = await self._refreshed(held)
            return held.token

    async def after_refusal(self, refused: str | None, challenge: Challenge, *, refresh: bool) -> str | None:
        """Another token than the one that was refused; None where a person has to sign in.

        refresh: whether that may be had by the refresh token. Raises AuthorizationFailed."""
        async with self._renewing:
            held = await self._store.held()
            if held.token not in (None, refused) and not held.is_stale(time.time()):
                return held.token  # somebody else was faster
            if refresh and held.token and challenge.status == HTTPStatus.UNAUTHORIZED:
                held = await self._refreshed(held)
                if held.token not in (None, refused):
                    return held.token
            if self.needs_person:
                held.challenge = challenge
                await self._store.keep(held)
                return None
            return await self._by_itself(held, challenge)

    async def _refreshed(self, held: Credentials) -> Credentials:
        """With a new token, or without any: what a server that is away cannot give is asked for again later."""
        if held.tokens is None or held.tokens.refresh_token is None or held.client is None:
            held.tokens = None
            return held
        flow = self._flow(Held(held, self._store.keep), redirect_uri="http://127.0.0.1/unused", state="")
        try:
            status = await flow.refreshed(self._send)
        except OAuthFlowError as error:
            raise AuthorizationFailed(_said(error)) from error
        if status in _REFUSALS:
            held.tokens = None
            await self._store.keep(held)
        elif status != HTTPStatus.OK:
            raise AuthorizationFailed(f"the authorization server could not renew the token (HTTP {status})")
        return await self._store.held()

    async def _by_itself(self, held: Credentials, challenge: Challenge) -> str:
        held.tokens = held.tokens if challenge.status == HTTPStatus.FORBIDDEN else None
        try:
            flow = machine_flow(
                self._server,
                self._oauth,
                Held(held, self._store.keep),
                secret=self._secret,
                vault=self._parties.vault,
                send=self._send,
            )
            await drive(flow, self._server.url, _response(challenge), self._send)
        except (OAuthFlowError, ConfigError, ValueError) as error:
            raise AuthorizationFailed(_said(error)) from error
        token = (await self._store.held()).token
        if token is None:
            raise AuthorizationFailed("the authorization server gave no token")
        return token

    # -- a person signs in
    async def begin(self, state: str, redirect_uri: str, browser: str) -> str:
        """Where the browser goes. The login is kept under `state`, for this browser. Raises AuthorizationFailed."""
        async with self._renewing:
            held = await self._store.held()
            challenge = held.challenge or await self._challenged()
            step_up = challenge.status == HTTPStatus.FORBIDDEN
            if step_up:
                held.expires_at = None  # it is good for what it was granted for, which is asked for again
            else:
                held.tokens = None
            held.client = self._client(held, redirect_uri)
            held.scope = self._oauth.scope or held.scope
            flow = self._flow(Held(held, _nothing), redirect_uri=redirect_uri, state=state)
            try:
                await drive(flow, self._server.url, _response(challenge), self._send)
            except Redirect as redirect:
                version = flow.context.protocol_version
                login = Login(
                    verifier=redirect.verifier,
                    redirect_uri=redirect_uri,
                    browser=digest(browser),
                    protocol_version=version,
                    known=held,
                )
                await self._store.begin(state, login, time.time())
                await self._registered(held.client)
                return redirect.url
            except (OAuthFlowError, ValueError) as error:
                raise AuthorizationFailed(_said(error)) from error
        raise AuthorizationFailed("the server wants nobody to sign in")

    async def _registered(self, client: OAuthClientInformationFull | None) -> None:
        """The next login finds the client that this one has registered, unless there are tokens: they are another
        client's, who alone can renew them."""
        held = await self._store.held()
        if held.tokens is None:
            held.client = client
            await self._store.keep(held)

    async def finish(self, state: str, browser: str, *, code: str | None, iss: str | None) -> None:
        """The token is kept when this returns. Raises WrongCallback, and AuthorizationFailed for what the authorization
        server did not grant; the login is spent in any case."""
        login = await self._store.spent(state, browser, time.time())
        if login is None:
            raise WrongCallback("this login was not begun in this browser, was finished before, or took too long")
        if code is None:
            raise AuthorizationFailed("the authorization server was not allowed to let the agent in")
        known = login.known
        flow = self._flow(Held(known, self._store.keep), redirect_uri=login.redirect_uri, state=state)
        known.tokens, known.challenge = None, None
        try:
            validate_authorization_response_iss(iss, known.metadata)
            async with self._renewing:  # or a renewal under way would put the old tokens over the new ones
                await flow.finish(login, code, self._send)
        except (OAuthFlowError, ValueError) as error:
            raise AuthorizationFailed(_said(error)) from error

    async def renew(self) -> None:
        """A new token by the refresh token, whether or not the old one has ended; none where there is no other way to
        one than a login. Raises AuthorizationFailed."""
        async with self._renewing:
            held = await self._store.held()
            if held.tokens and (held.tokens.refresh_token or not self.needs_person):
                await self._store.keep(await self._refreshed(held))

    async def _challenged(self) -> Challenge:
        """What the server asks for, where no run has met it yet."""
        headers = {"accept": "application/json, text/event-stream"}
        response = await self._send(httpx2.Request("POST", self._server.url, json=_PROBE, headers=headers))
        if response.is_success:
            raise AuthorizationFailed("the server wants nobody to sign in")
        return Challenge(status=HTTPStatus.UNAUTHORIZED, headers=kept_headers(response.headers))

    def _client(self, held: Credentials, redirect_uri: str) -> OAuthClientInformationFull | None:
        """Who we are to the authorization server: as configured, or as registered with this very redirect."""
        if self._oauth.client_id is not None:
            return OAuthClientInformationFull.model_validate(
                {
                    "client_id": self._oauth.client_id,
                    "client_secret": self._secret(self._oauth.client_secret) if self._oauth.client_secret else None,
                    "token_endpoint_auth_method": "client_secret_basic" if self._oauth.client_secret else "none",
                    "redirect_uris": [redirect_uri],
                    "issuer": self._oauth.issuer,
                }
            )
        if held.client is None or held.client.client_id == client_document_url(redirect_uri):
            return held.client
        known = [str(uri) for uri in held.client.redirect_uris or ()]
        return held.client if redirect_uri in known else None

    def _flow(self, held: Held, *, redirect_uri: str, state: str) -> SignInFlow:
        return SignInFlow(
            self._server, held, redirect_uri=redirect_uri, client_name=self._parties.client_name, state=state
        )

    # -- beneath
    def _secret(self, name: str | None) -> str:
        value = self._parties.secrets.get(name or "")
        if not value:
            raise ConfigError("McpServer.auth", f"names the secret {name}, which is not set", f"{name}=…")
        return value

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """To an authorization server; with nothing but what the flow gives it. Raises AuthorizationFailed."""
        if self._server.url.startswith("https:") and request.url.scheme != "https":
            raise AuthorizationFailed(f"the login would leave https, at {request.url.host}")
        try:
            async with self._parties.open_client() as client:
                response = await client.send(request, follow_redirects=False)
        except httpx2.TransportError as error:
            raise AuthorizationFailed(f"{request.url.host} did not answer ({type(error).__name__})") from error
        return response if response.is_success else _refusal(response)


async def _nothing(_credentials: Credentials) -> None:
    """A login that is begun changes nothing that is stored, until it is finished."""


def new_nonce() -> str:
    """256 bits that nobody can guess, in characters a URL takes."""
    return secrets.token_urlsafe(32)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _KEPT if name in headers}


def _response(challenge: Challenge) -> httpx2.Response:
    return httpx2.Response(challenge.status, headers=dict(challenge.headers), content=b"")


def _refusal(response: httpx2.Response) -> httpx2.Response:
    """With no more of its body than the code of the error: the SDK's exceptions quote it, and it may quote secrets."""
    found = _ERROR.search(response.text)
    headers = {name: response.headers[name] for name in (*_KEPT, "location") if name in response.headers}
    body = {"error": found[1]} if found else None
    return httpx2.Response(response.status_code, headers=headers, json=body, request=response.request)


def _said(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:_SAID]
