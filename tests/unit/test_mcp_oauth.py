"""Logins and renewals that meet each other, and an authorization server that says too much; without a network."""

import asyncio
import json
import time
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from edge_agent.storage.mcp_connections import SqlConnection
from edge_agent.storage.sql import in_memory
from edge_agent.testing import OpenVault
from edge_agent.tools.mcp_auth_import import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from edge_agent.tools.mcp_credentials import Credentials, CredentialStore
from edge_agent.tools.mcp_oauth import AuthorizationFailed, McpOAuth, Parties
from edge_agent.tools.mcp_server import McpServer

ISSUER = "https://docs.example"
URL = f"{ISSUER}/mcp"
CALLBACK = "https://agent.example/v1/mcp/callback"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "registration_endpoint": f"{ISSUER}/register",
    "response_types_supported": ["code"],
    "code_challenge_methods_supported": ["S256"],
}


class Authorization:
    """A server and its authorization server. A renewal says that it has begun and waits until it is let go."""

    def __init__(self) -> None:
        self.renewing, self.goes_on = asyncio.Event(), asyncio.Event()
        self.clients = 0
        self.refusal: httpx2.Response | None = None
        self.renewed_by: list[str] = []

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        match request.url.path:
            case "/mcp":
                return httpx2.Response(401, headers={"www-authenticate": "Bearer"})
            case "/.well-known/oauth-protected-resource/mcp":
                return httpx2.Response(200, json={"resource": URL, "authorization_servers": [ISSUER]})
            case "/.well-known/oauth-authorization-server":
                return httpx2.Response(200, json=METADATA)
            case "/register":
                self.clients += 1
                return httpx2.Response(201, json={**json.loads(request.content), "client_id": f"new-{self.clients}"})
            case "/token":
                return self.refusal or await self._token(parse_qs(request.content.decode()))
            case _:
                return httpx2.Response(404)

    async def _token(self, asked: dict[str, list[str]]) -> httpx2.Response:
        kind = asked["grant_type"][0]
        if kind == "refresh_token":
            self.renewed_by.append(asked["client_id"][0])
            self.renewing.set()
            await self.goes_on.wait()
        token = {"access_token": f"by-{kind}", "refresh_token": "r", "token_type": "Bearer", "expires_in": 3600}
        return httpx2.Response(200, json=token)


def connection(server: Authorization) -> tuple[McpOAuth, CredentialStore]:
    store = CredentialStore(SqlConnection(in_memory()), OpenVault(), URL)
    parties = Parties(
        server=McpServer(url=URL, auth="oauth"),
        client_name="agent",
        secrets={},
        vault=OpenVault(),
        open_client=lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(server.answer)),
    )
    return McpOAuth(parties, store), store


async def signed_in_before(store: CredentialStore) -> None:
    """From another origin, by a client of its own; the token has ended."""
    client = {"client_id": "old", "redirect_uris": ["https://other.example/cb"], "token_endpoint_auth_method": "none"}
    held = Credentials(
        url=URL,
        client=OAuthClientInformationFull.model_validate({**client, "issuer": ISSUER}),
        tokens=OAuthToken(access_token="ended", refresh_token="r"),
        expires_at=time.time() - 1,
        metadata=OAuthMetadata.model_validate(METADATA),
        issuer=ISSUER,
    )
    await store.keep(held)


async def begun(oauth: McpOAuth) -> str:
    """The client that the browser is sent on for."""
    url = await oauth.begin("state", CALLBACK, "browser")
    return parse_qs(urlsplit(url).query)["client_id"][0]


async def test_a_login_that_is_done_during_a_renewal_is_what_is_kept() -> None:
    server = Authorization()
    oauth, store = connection(server)
    await signed_in_before(store)
    await begun(oauth)
    renewal = asyncio.create_task(oauth.bearer())
    await server.renewing.wait()
    login = asyncio.create_task(oauth.finish("state", "browser", code="c", iss=None))
    await asyncio.wait([login], timeout=0)
    server.goes_on.set()
    await asyncio.gather(renewal, login)
    assert (await store.held()).token == "by-authorization_code"


async def test_a_login_that_is_only_begun_leaves_the_old_tokens_to_the_client_that_can_renew_them() -> None:
    server = Authorization()
    server.goes_on.set()
    oauth, store = connection(server)
    await signed_in_before(store)
    assert await begun(oauth) == "new-1"
    assert (await oauth.bearer(), server.renewed_by) == ("by-refresh_token", ["old"])
    await oauth.finish("state", "browser", code="c", iss=None)
    held = await store.held()
    assert held.client is not None
    assert (held.token, held.client.client_id) == ("by-authorization_code", "new-1")


async def test_a_client_is_registered_once_for_first_logins_that_nobody_finishes() -> None:
    server = Authorization()
    oauth, _ = connection(server)
    assert await begun(oauth) == "new-1"
    url = await oauth.begin("another", CALLBACK, "browser")
    assert (parse_qs(urlsplit(url).query)["client_id"], server.clients) == (["new-1"], 1)


@pytest.mark.parametrize(
    "body, told", [('{"error": "invalid_grant", "error_description": "code c0de"}', True), ("<p>code c0de", False)]
)
async def test_a_fault_tells_the_status_and_the_code_of_the_error_and_nothing_else(body: str, *, told: bool) -> None:
    server = Authorization()
    oauth, _ = connection(server)
    await begun(oauth)
    server.refusal = httpx2.Response(400, text=body)
    with pytest.raises(AuthorizationFailed) as failed:
        await oauth.finish("state", "browser", code="c", iss=None)
    said = str(failed.value)
    assert ("400" in said, "invalid_grant" in said, "c0de" in said) == (True, told, False)
