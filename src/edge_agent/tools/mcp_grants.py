"""The SDK's OAuth flows, driven from outside: it makes a flow's requests for us and waits for nobody.

The SDK's own way holds a request open, and a verifier in memory, until a person comes back from the login. Here a flow
ends where a person is needed, with all that the callback has to know.
"""

import base64
import json
import secrets
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import httpx2

from edge_agent.core.errors import ToolError
from edge_agent.tools.mcp_auth_import import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthClientProvider,
    OAuthFlowError,
    OAuthToken,
    PKCEParameters,
    is_valid_client_metadata_url,
)
from edge_agent.tools.mcp_credentials import Credentials, Login, Vault
from edge_agent.tools.mcp_server import IdentityProvider, McpServer, OAuth

_JWT_SECONDS = 300
_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_LOOPBACK_HOSTS = "127.0.0.1", "localhost", "::1"
Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
Secret = Callable[[str | None], str]


class Redirect(Exception):
    """The flow goes on in a browser at `url`."""

    def __init__(self, url: str, verifier: str) -> None:
        super().__init__("a person has to sign in")
        self.url, self.verifier = url, verifier


class Held:
    """The `TokenStorage` of one flow, in memory. `keep` is awaited with each new token, before anything uses it."""

    def __init__(self, credentials: Credentials, keep: Callable[[Credentials], Awaitable[None]]) -> None:
        self.credentials, self._keep = credentials, keep

    async def get_tokens(self) -> OAuthToken | None:
        return self.credentials.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        now = time.time()
        held = self.credentials
        held.tokens, held.issued_at = tokens, now
        held.expires_at = None if tokens.expires_in is None else now + tokens.expires_in
        await self._keep(held)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.credentials.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.credentials.client = client_info
        await self._keep(self.credentials)


class SignInFlow(OAuthClientProvider):
    """The flow of a person, in two halves: it ends with Redirect, and `finish` goes on from what was kept."""

    def __init__(self, server: McpServer, held: Held, *, redirect_uri: str, client_name: str, state: str) -> None:
        local = urlsplit(redirect_uri).hostname in _LOOPBACK_HOSTS
        document = client_document_url(redirect_uri)
        metadata = OAuthClientMetadata.model_validate(
            {
                "redirect_uris": [redirect_uri],
                "client_name": client_name,
                "scope": held.credentials.scope,
                "application_type": "native" if local else "web",
            }
        )
        url = document if is_valid_client_metadata_url(document) else None
        super().__init__(server.url, metadata, held, client_metadata_url=url)
        self._held, self._state, self._redirect_uri = held, state, redirect_uri

    async def _initialize(self) -> None:
        """What the SDK itself would not remember: without it an expired token means a new login, and a refresh goes to
        the wrong endpoint."""
        await super()._initialize()
        held, context = self._held.credentials, self.context
        context.token_expiry_time = held.expires_at
        context.oauth_metadata, context.protected_resource_metadata = held.metadata, held.resource
        context.auth_server_url = held.issuer

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        context = self.context
        self.remember()
        if context.client_info is None:
            raise OAuthFlowError("the client is not registered")
        pkce = PKCEParameters.generate()
        asked = {
            "response_type": "code",
            "client_id": context.client_info.client_id,
            "redirect_uri": self._redirect_uri,
            "state": self._state,
            "code_challenge": pkce.code_challenge,
            "code_challenge_method": "S256",
        }
        if context.should_include_resource_param(context.protocol_version):
            asked["resource"] = context.get_resource_url()
        if scope := context.client_metadata.scope:
            asked["scope"] = scope
            if "offline_access" in scope.split():
                asked["prompt"] = "consent"
        if context.oauth_metadata is not None:
            endpoint = str(context.oauth_metadata.authorization_endpoint)
        else:
            endpoint = f"{context.get_authorization_base_url(context.server_url)}/authorize"
        mark = "&" if urlsplit(endpoint).query else "?"
        raise Redirect(f"{endpoint}{mark}{urlencode(asked)}", pkce.code_verifier)

    def remember(self) -> None:
        held, context = self._held.credentials, self.context
        held.metadata, held.resource = context.oauth_metadata, context.protected_resource_metadata
        held.issuer, held.scope = context.auth_server_url, context.client_metadata.scope

    async def refreshed(self, send: Send) -> int:
        """The status the token endpoint answered with; the new token is kept where it is 200."""
        await self._initialize()
        response = await send(await self._refresh_token())
        if response.is_success and not await self._handle_refresh_response(response):
            return HTTPStatus.BAD_GATEWAY
        return response.status_code

    async def finish(self, login: Login, code: str, send: Send) -> None:
        """The second half. Raises OAuthFlowError."""
        await self._initialize()
        self.context.protocol_version = login.protocol_version
        request = await self._exchange_token_authorization_code(code, login.verifier)
        await self._handle_token_response(await send(request))


def client_document_url(redirect_uri: str) -> str:
    """Where this deployment describes itself as an OAuth client; its id where a server takes such documents."""
    return redirect_uri.rpartition("/")[0] + "/client.json"


# -- nobody signs in
def machine_flow(
    server: McpServer, oauth: OAuth, held: Held, *, secret: Secret, vault: Vault, send: Send
) -> httpx2.Auth:
    """The SDK's flow for a grant that needs no person. Raises ConfigError where a secret is not set."""
    # They bring PyJWT, which the grants of people do not need.
    from mcp.client.auth.extensions.client_credentials import (  # noqa: PLC0415
        ClientCredentialsOAuthProvider,
        PrivateKeyJWTOAuthProvider,
    )
    from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider  # noqa: PLC0415

    client, issuer = oauth.client_id or "", oauth.issuer or ""
    if oauth.identity_provider is not None:
        assertion = _grant_of(oauth.identity_provider, secret, send)
        return IdentityAssertionOAuthProvider(
            server.url, held, client, secret(oauth.client_secret), issuer, assertion, scope=oauth.scope,
            token_endpoint_auth_method="client_secret_basic",  # noqa: S106 - a name
        )  # fmt: skip
    if oauth.private_key is None:
        return ClientCredentialsOAuthProvider(
            server.url, held, client, secret(oauth.client_secret), scope=oauth.scope, issuer=issuer
        )
    signed = _signed_by(secret(oauth.private_key), oauth.algorithm, client, vault)
    return PrivateKeyJWTOAuthProvider(server.url, held, client, signed, scope=oauth.scope, issuer=issuer)


def _signed_by(private_key: str, algorithm: str, client: str, vault: Vault) -> Callable[[str], Awaitable[str]]:
    """Assertions of who we are (RFC 7523), for one audience each."""

    async def assertion(audience: str) -> str:
        now = int(time.time())
        claims = {
            "iss": client,
            "sub": client,
            "aud": audience,
            "iat": now,
            "exp": now + _JWT_SECONDS,
            "jti": secrets.token_hex(16),
        }
        said = f"{_part({'alg': algorithm, 'typ': 'JWT'})}.{_part(claims)}"
        return f"{said}.{_base64url(await vault.sign(private_key, algorithm, said.encode()))}"

    return assertion


def _grant_of(provider: IdentityProvider, secret: Secret, send: Send) -> Callable[[str, str], Awaitable[str]]:
    """The identity provider's word for a user, exchanged for a grant at the authorization server (RFC 8693)."""

    async def assertion(audience: str, resource: str) -> str:
        asked = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _JAG,
            "audience": audience,
            "resource": resource,
            "subject_token": secret(provider.id_token),
            "subject_token_type": _ID_TOKEN,
            "client_id": provider.client_id,
        }
        if provider.client_secret is not None:
            asked["client_secret"] = secret(provider.client_secret)
        response = await send(httpx2.Request("POST", provider.token_endpoint, data=asked))
        if not response.is_success:
            raise OAuthFlowError(f"the identity provider refused the exchange (HTTP {response.status_code})")
        return str(response.json()["access_token"])

    return assertion


def _part(value: object) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


# -- driving
async def drive(flow: httpx2.Auth, url: str, challenge: httpx2.Response, send: Send) -> None:
    """Takes the flow from a request that was turned away to a token. Raises Redirect, OAuthFlowError and what `send`
    raises."""
    request = httpx2.Request("POST", url, headers=_version(challenge))
    steps = flow.async_auth_flow(request)
    turned_away = False
    try:
        outgoing = await anext(steps)
        while not (outgoing is request and turned_away):
            if outgoing is request:
                turned_away, response = True, challenge
            else:
                response = await send(outgoing)
            outgoing = await steps.asend(response)
    except StopAsyncIteration:
        raise ToolError("the server asks for no authorization that is known here") from None
    finally:
        await steps.aclose()


def _version(challenge: httpx2.Response) -> dict[str, str]:
    name = "mcp-protocol-version"
    return {name: challenge.headers[name]} if name in challenge.headers else {}
