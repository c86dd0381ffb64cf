"""The MCP server of the tests behind OAuth, with an authorization server of its own at the same origin.

    python tests/servers/oauth_server.py --port 8099 [--json] [--legacy] [--ttl 5]

Anybody may register as a client; whoever opens the login page and presses the button is let in. Tokens live `ttl`
seconds and are refreshed with rotation. GET /_log tells of it all: ["registered"], ["issued"], ["refreshed"].
POST /_revoke makes every token that was issued worthless, POST /_revoke?refresh=1 the refresh tokens too.
POST /_break makes every renewal a fault of the server, until POST /_break?mend=1.
"""

import argparse
import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.servers.mcp_server import McpTestServer, served

SCOPE = "use"


@dataclass(kw_only=True)
class OAuthTestServer(McpTestServer, OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Its authorization server is itself."""

    ttl: int = 3_600
    broken: bool = False
    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict[str, OAuthClientInformationFull])
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    pages: dict[str, str] = field(default_factory=dict[str, str])
    access: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])
    renewals: dict[str, RefreshToken] = field(default_factory=dict[str, RefreshToken])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def protection(self) -> dict[str, Any]:
        settings = AuthSettings.model_validate(
            {
                "issuer_url": self.origin,
                "resource_server_url": self.url,
                "client_registration_options": ClientRegistrationOptions(
                    enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
                ),
                "required_scopes": [SCOPE],
                "validate_token_resource": True,
            }
        )
        return {"auth": settings, "auth_server_provider": self, "token_verifier": ProviderTokenVerifier(self)}

    def own_routes(self) -> list[Route]:
        return [
            Route("/login/{page}", self._login, methods=["GET", "POST"]),
            Route("/_revoke", self._revoke, methods=["POST"]),
            Route("/_break", self._break, methods=["POST"]),
        ]

    # -- the login page
    async def _login(self, request: Request) -> Response:
        target = self.pages[request.path_params["page"]]
        if request.method == "POST":
            return RedirectResponse(target, 303)
        return HTMLResponse("<h1>Let the agent in?</h1><form method=post><button>Allow</button></form>")

    async def _revoke(self, request: Request) -> Response:
        self.access.clear()
        if request.query_params.get("refresh"):
            self.renewals.clear()
        return Response()

    async def _break(self, request: Request) -> Response:
        self.broken = not request.query_params.get("mend")
        return Response()

    # -- what the SDK asks of an authorization server
    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info
        await self.note("registered")

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code, page = secrets.token_urlsafe(24), secrets.token_urlsafe(8)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + 300,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.pages[page] = construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)
        return f"{self.origin}/login/{page}"

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        await self.note("issued")
        return self._tokens(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.renewals.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.broken:
            raise RuntimeError("broken, as a test has asked")
        del self.renewals[refresh_token.token]
        await self.note("refreshed")
        return self._tokens(client, scopes or refresh_token.scopes, refresh_token.resource)

    def _tokens(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        token, renewal = f"access-{secrets.token_urlsafe(16)}", f"refresh-{secrets.token_urlsafe(16)}"
        ends = int(time.time()) + self.ttl
        self.access[token] = AccessToken(
            token=token, client_id=client.client_id, scopes=scopes, expires_at=ends, resource=resource
        )
        self.renewals[renewal] = RefreshToken(
            token=renewal, client_id=client.client_id, scopes=scopes, resource=resource
        )
        return OAuthToken(access_token=token, expires_in=self.ttl, scope=" ".join(scopes), refresh_token=renewal)

    async def load_access_token(self, token: str) -> AccessToken | None:
        held = self.access.get(token)
        return held if held and (held.expires_at or 0) > time.time() else None

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)
        self.renewals.pop(token.token, None)


async def _main() -> None:
    parser = argparse.ArgumentParser(description="A real MCP server with OAuth for tests.")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--json", action="store_true", help="answer with JSON instead of event streams")
    parser.add_argument("--legacy", action="store_true", help="speak 2025-11-25, with sessions")
    parser.add_argument("--ttl", type=int, default=3_600, help="seconds a token lives")
    given = parser.parse_args()
    state = OAuthTestServer(port=given.port, json_response=given.json, legacy=given.legacy, ttl=given.ttl)
    async with served(state):
        print(state.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main())
