"""The credentials of one MCP server for one user, sealed wherever they rest.

Names are not sealed: that there are credentials, and the digest of the state of a login under way, with its end."""

import hashlib
from collections.abc import Mapping
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from edge_agent.tools.mcp_auth_import import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)

LOGIN_SECONDS = 600  # from the redirect to the callback
_AHEAD_SECONDS = 30.0  # a token is renewed so long before its end, or after four fifths of a shorter life
_AHEAD_SHARE = 0.2
_HELD = "credentials"


class Vault(Protocol):
    """Encryption and signatures of the platform."""

    async def seal(self, name: str, text: str) -> str:
        """For whoever has the deployment's key, and only as `name`."""
        ...

    async def open(self, name: str, sealed: str) -> str:
        """Raises ValueError for what was sealed by another key or as another name, and for what was changed."""
        ...

    async def sign(self, private_key: str, algorithm: str, data: bytes) -> bytes:
        """`private_key`: PKCS #8 in PEM. algorithm: ES256 or RS256. Raises ValueError for a key that is none."""
        ...


class Shelf(Protocol):
    """Where sealed texts rest; see storage.mcp_connections."""

    def get(self, name: str) -> str | None: ...
    def put(self, name: str, value: str | None) -> None: ...
    def begin(self, state: str, value: str, expires: int, now: int) -> None: ...
    def login(self, state: str, now: int) -> str | None: ...
    def spend(self, state: str) -> None: ...


class Challenge(BaseModel):
    """What a server turned a request away with."""

    model_config = ConfigDict(frozen=True)
    status: int = 401
    headers: Mapping[str, str] = Field(default_factory=dict[str, str])


class Credentials(BaseModel):
    """All that is known of a server's authorization server, of us there, and of the token. Times in seconds since the
    epoch."""

    url: str
    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = Field(default=None, repr=False)
    issued_at: float = 0
    expires_at: float | None = None
    metadata: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None
    issuer: str | None = None
    scope: str | None = None
    challenge: Challenge | None = None

    @property
    def token(self) -> str | None:
        return self.tokens.access_token if self.tokens else None

    def is_stale(self, now: float) -> bool:
        """Whether the token has ended or is about to."""
        if self.tokens is None or self.expires_at is None:
            return False
        return now >= self.expires_at - min(_AHEAD_SECONDS, (self.expires_at - self.issued_at) * _AHEAD_SHARE)


class Login(BaseModel):
    """A login that was begun in a browser. `browser`: the digest of its cookie."""

    verifier: str = Field(repr=False)
    redirect_uri: str
    browser: str
    protocol_version: str | None = None
    known: Credentials


class CredentialStore:
    """Nothing of it is in memory between two calls."""

    def __init__(self, shelf: Shelf, vault: Vault, url: str) -> None:
        self._shelf, self._vault, self._url = shelf, vault, url

    async def held(self) -> Credentials:
        """Empty ones where there are none, where they were sealed by another key, and where the server has another url
        since."""
        sealed = self._shelf.get(_HELD)
        if sealed is not None:
            try:
                held = Credentials.model_validate_json(await self._vault.open(_HELD, sealed))
            except ValueError:
                return Credentials(url=self._url)
            if held.url == self._url:
                return held
        return Credentials(url=self._url)

    async def keep(self, credentials: Credentials) -> None:
        self._shelf.put(_HELD, await self._vault.seal(_HELD, credentials.model_dump_json()))

    async def begin(self, state: str, login: Login, now: float) -> None:
        name = digest(state)
        sealed = await self._vault.seal(name, login.model_dump_json())
        self._shelf.begin(name, sealed, int((now + LOGIN_SECONDS) * 1000), int(now * 1000))

    async def spent(self, state: str, browser: str, now: float) -> Login | None:
        """The login that was begun with this state in this browser, for the only time."""
        name = digest(state)
        sealed = self._shelf.login(name, int(now * 1000))
        if sealed is None:
            return None
        try:
            login = Login.model_validate_json(await self._vault.open(name, sealed))
        except ValueError:
            return None
        if login.browser != digest(browser) or self._shelf.login(name, int(now * 1000)) is None:
            return None  # another browser's, or another callback has come in between
        self._shelf.spend(name)
        return login


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
