"""What stands in the variables that hold JSON, each entry checked by itself."""

from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from edge_agent.core.egress import Egress
from edge_agent.core.errors import ConfigError
from edge_agent.core.messages import JsonObject

TOOL_GLOB = r"^[a-zA-Z0-9_*?\[\]!-]{1,128}$"  # a tool's name, or a glob over names
LEAST_WINDOW = 1_024  # tokens; no model has a smaller context window


def http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is not an http or https URL")
    if parts.username or parts.password:
        raise ValueError("holds a user name or password; put credentials into headers or a key")
    if parts.fragment:
        raise ValueError("holds a fragment (#…)")
    return value.rstrip("/")


_EGRESS = TypeAdapter(JsonObject)


def egress_of(text: str) -> Egress | None:
    if text in ("on", "off"):
        return Egress() if text == "on" else None
    try:
        values = _EGRESS.validate_json(text)
    except ValidationError:
        raise ValueError("is on, off, or a JSON object") from None
    try:
        return Egress.of(values)
    except ConfigError as error:
        raise ValueError(f"{error.setting.removeprefix('Egress.')} {error.fault}") from None


Url = Annotated[str, AfterValidator(http_url)]
HeaderName = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
HeaderValue = Annotated[str, Field(pattern=r"^[\x20-\x7e]*$")]
Headers = dict[HeaderName, HeaderValue]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]


class Provider(Entry):
    """A further endpoint, used as `name/model`. `key` is the name of the secret that holds its key; `context_window` is
    that of its models, in tokens; `takes` the images and files they take."""

    base_url: Url
    key: str | None = None
    adapter: Literal["openai_chat", "anthropic", "google", "workers_ai"] = "openai_chat"
    profile: str | None = None
    tool_mode: Literal["native", "json"] | None = None
    headers: Headers = Field(default_factory=dict, repr=False)
    options: JsonObject = Field(default_factory=dict)
    context_window: int | None = Field(default=None, strict=True, ge=LEAST_WINDOW)
    takes: tuple[ImageType | Literal["application/pdf"], ...] | None = None


class IdentityProviderSettings(Entry):
    """`id_token` and `client_secret` are names of secrets."""

    token_endpoint: Url
    client_id: str
    id_token: str
    client_secret: str | None = None


class OAuthSettings(Entry):
    """How tokens for an MCP server are had; `client_secret` and `private_key` are names of secrets."""

    grant: Literal["authorization_code", "client_credentials", "cross_app"] = "authorization_code"
    client_id: str | None = None
    client_secret: str | None = None
    private_key: str | None = None
    algorithm: Literal["ES256", "RS256"] = "ES256"
    scope: str | None = None
    issuer: str | None = None  # compared letter by letter with what the authorization server says of itself
    identity_provider: IdentityProviderSettings | None = None


class McpServerSettings(Entry):
    """An MCP server over streamable HTTP. Times in seconds; `allow` and `deny` are globs over its tools' own names."""

    url: Url
    headers: Headers = Field(default_factory=dict, repr=False)
    auth: OAuthSettings | Literal["oauth"] | None = None
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    connect_timeout: float = Field(default=30, gt=0, allow_inf_nan=False)
    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _spoken_here(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        entry = dict(cast(dict[str, Any], value))
        kind = entry.pop("type", None) or entry.pop("transport", None) or "http"
        if kind == "stdio" or "command" in entry or "args" in entry:
            raise ValueError("is a stdio server, and a Worker cannot start programs: give a streamable HTTP url")
        if kind == "sse":
            raise ValueError("uses the legacy HTTP+SSE transport: give the url of its streamable HTTP endpoint")
        if kind not in ("http", "streamable-http", "streamable_http"):
            raise ValueError("has an unknown type; streamable HTTP is the only transport")
        return entry


Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceEntry(Entry):
    """US dollars per million tokens; `cached` and `cache_write` absent: priced like other input."""

    input: Dollars
    output: Dollars
    cached: Dollars | None = None
    cache_write: Dollars | None = None


class CachingEntry(Entry):
    """ttl: how long a provider keeps what it has read; key: what begins alike has in common, absent: each run has its
    own."""

    ttl: Literal["5m", "1h"] | None = None
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,40}$")] | None = None
