"""What the deployment sets: the EDGE_AGENT_* variables and the keys of providers.

Nothing is checked before it is used: each property reads its own variable and raises ConfigError naming it, the fault
and an example. `faults` tries them all. No message, and no repr, holds a value.
"""

import base64
import difflib
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args

from pydantic import Field, TypeAdapter, ValidationError

from edge_agent.core.errors import ConfigError
from edge_agent.core.events import ApprovalMode, Mode, ToolRule
from edge_agent.core.limits import FRACTIONAL, Limits
from edge_agent.core.price import Price
from edge_agent.wire.entries import LEAST_WINDOW, TOOL_GLOB, McpServerSettings, PriceEntry, Provider, http_url

LogLevel = Literal["none", "error", "warning", "info", "debug"]
PREFIX = "EDGE_AGENT_"
DEFAULT_MAX_BODY = 1_048_576
MIN_KEY_BYTES = 32
MIN_SECRET_LENGTH = 8  # a shorter value is not masked: it would blot out ordinary words
_MAX_MAX_BODY = 33_554_432
_KEY_NAME = re.compile(r"_(API_KEY|KEY|TOKEN|SECRET|PASSWORD|TOKEN_BEDROCK)$")
_GATEWAY = re.compile(r"(?:(?P<account>[0-9a-f]{32})/)?(?P<id>[a-z0-9][a-z0-9-]{0,63})")
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_FOR_TESTS = frozenset({"EDGE_AGENT_FIXTURES"})  # `make dev` passes the whole environment on
T = TypeVar("T")


class NamedToken(NamedTuple):
    """A caller and the bearer token that makes one this caller."""

    name: str
    token: str

    def __repr__(self) -> str:
        return f"NamedToken(name={self.name!r})"


class Gateway(NamedTuple):
    """An AI Gateway. Without an account it is reached by the AI binding, with one over HTTPS and with the token."""

    id: str
    account: str | None = None
    token: str | None = None

    def __repr__(self) -> str:
        return f"Gateway(id={self.id!r})"


_ProviderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
_ServerName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9-]+(_[a-zA-Z0-9-]+)*$", max_length=32)]
_PROVIDERS = TypeAdapter(dict[_ProviderName, Provider])
_SERVERS = TypeAdapter(dict[_ServerName, McpServerSettings])
_RULES = TypeAdapter(dict[Annotated[str, Field(pattern=TOOL_GLOB)], ToolRule])
_PRICES = TypeAdapter(dict[str, PriceEntry])
_KNOWN_LIMITS = tuple(field.name for field in fields(Limits))
_UNLIMITED = Limits(**dict.fromkeys(_KNOWN_LIMITS))
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_LIMITS = TypeAdapter(dict[str, Annotated[int, Field(strict=True)] | _Number | None])
_EXAMPLES = {
    "EDGE_AGENT_TOKEN": "alice:s3cret-one,ci:s3cret-two",
    "EDGE_AGENT_NAME": "edge-agent",
    "EDGE_AGENT_MODEL": "openai-compatible/some-model",
    "EDGE_AGENT_PLANNER_MODEL": "openai/gpt-5",
    "EDGE_AGENT_SYNTHESIZER_MODEL": "openai/gpt-5",
    "EDGE_AGENT_BASE_URL": "https://models.example.com/v1",
    "EDGE_AGENT_API_KEY": "sk-…",
    "EDGE_AGENT_PROVIDERS": '{"mine": {"base_url": "https://example.com/v1", "key": "MINE_API_KEY"}}',
    "EDGE_AGENT_GATEWAY": "0123456789abcdef0123456789abcdef/default",
    "EDGE_AGENT_MCP_SERVERS": '{"docs": {"url": "https://docs.example.com/mcp"}}',
    "EDGE_AGENT_TOOLS_ALLOW": "docs__*,calculator",
    "EDGE_AGENT_TOOLS_DENY": "github__delete_*",
    "EDGE_AGENT_LIMITS": '{"max_steps": 20, "max_total_tokens": 200000}',
    "EDGE_AGENT_PRICES": '{"openai-compatible/some-model": {"input": 0.5, "cached": 0.05, "output": 2.0}}',
    "EDGE_AGENT_CONTEXT_WINDOW": "32768",
    "EDGE_AGENT_MODEL_TIMEOUT": "120",
    "EDGE_AGENT_STALL_TIMEOUT": "60",
    "EDGE_AGENT_MAX_RETRIES": "2",
    "EDGE_AGENT_MAX_BODY": "1048576",
    "EDGE_AGENT_MAX_RUNS": "100",
    "EDGE_AGENT_SECRET": "$(openssl rand -base64 32)",
    "EDGE_AGENT_CORS": "https://app.example.com,https://admin.example.com",
    "EDGE_AGENT_LOG_LEVEL": "info",
    "EDGE_AGENT_MODE": "direct",
    "EDGE_AGENT_APPROVAL": "ask-writes",
    "EDGE_AGENT_TOOL_RULES": '{"github__delete_*": "deny"}',
    "EDGE_AGENT_APPROVAL_TIMEOUT": "86400",
}


class Settings:
    """The settings of a deployment. Every property but `secrets` may raise ConfigError."""

    def __init__(self, env: Mapping[str, str], *, ai_binding: bool = False) -> None:
        self._env = {name: value.strip() for name, value in env.items() if value.strip()}
        self.ai_binding = ai_binding

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, ai_binding: bool = False) -> "Settings":
        """Takes any environment and never raises; a blank value is as good as none. ai_binding: whether the Worker has
        one."""
        return cls(env, ai_binding=ai_binding)

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(name for name in self._env if name.startswith(PREFIX)))})"

    # -- who may call
    @cached_property
    def tokens(self) -> tuple[NamedToken, ...]:
        """Empty: only loopback is answered."""
        variable, text = "EDGE_AGENT_TOKEN", self._env.get("EDGE_AGENT_TOKEN", "")
        named = [NamedToken(*entry.strip().split(":", 1)) for entry in _entries(text) if ":" in entry]
        if text and ":" not in text and "," not in text:
            named = [NamedToken("default", text)]
        elif text and not 0 < len(named) == len(_entries(text)):
            raise _error(variable, "several tokens are written as name:token, separated by commas")
        for name, token in named:
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                raise _error(variable, "a caller's name is made of letters, digits, '.', '_' and '-'")
            if not _TOKEN.fullmatch(token):
                raise _error(variable, "a token is made of letters, digits and -._~+/ (then =), without spaces")
        if len({name for name, _ in named}) != len(named):
            raise _error(variable, "two tokens have the same name")
        return tuple(named)

    @cached_property
    def secret_key(self) -> bytes | None:
        """Key material for run tokens, 32 bytes or more."""
        text = self._env.get("EDGE_AGENT_SECRET")
        if text is None:
            return None
        try:
            key = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            raise _error("EDGE_AGENT_SECRET", "is not base64") from None
        if len(key) < MIN_KEY_BYTES:
            raise _error("EDGE_AGENT_SECRET", f"holds {len(key)} bytes; {MIN_KEY_BYTES} or more are needed")
        return key

    @cached_property
    def cors(self) -> tuple[str, ...]:
        """Origins whose pages may call."""
        origins = _entries(self._env.get("EDGE_AGENT_CORS", ""))
        for origin in origins:
            if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?", origin):
                raise _error("EDGE_AGENT_CORS", "each entry is an origin: scheme, host, port and nothing else; no *")
        return tuple(origin.lower() for origin in origins)

    @cached_property
    def max_body(self) -> int:
        return self._whole("EDGE_AGENT_MAX_BODY", DEFAULT_MAX_BODY, 1024, _MAX_MAX_BODY)

    @cached_property
    def max_runs(self) -> int | None:
        """Runs that have not ended, in the whole deployment; None for no cap."""
        return self._whole("EDGE_AGENT_MAX_RUNS", 0, 1, 1_000_000) or None

    # -- models
    @cached_property
    def models(self) -> tuple[str, ...]:
        """The model and its fallbacks, in order; empty where the code decides."""
        return self._model_names("EDGE_AGENT_MODEL")

    @cached_property
    def planner_models(self) -> tuple[str, ...]:
        """Empty: those of `models`. Likewise the synthesizer's."""
        return self._model_names("EDGE_AGENT_PLANNER_MODEL")

    @cached_property
    def synthesizer_models(self) -> tuple[str, ...]:
        return self._model_names("EDGE_AGENT_SYNTHESIZER_MODEL")

    def _model_names(self, variable: str) -> tuple[str, ...]:
        models = _entries(self._env.get(variable, ""))
        for model in models:
            if not re.fullmatch(r"@cf/[^\s,]+|[a-z0-9][a-z0-9_-]*/[^\s,]+", model):
                raise _error(variable, "a model is provider/model or @cf/…; fallbacks are separated by commas")
        if any(model.startswith("openai-compatible/") for model in models) and "EDGE_AGENT_BASE_URL" not in self._env:
            raise _error("EDGE_AGENT_BASE_URL", f"is not set, and {variable} names an openai-compatible model")
        return models

    @cached_property
    def base_url(self) -> str | None:
        text = self._env.get("EDGE_AGENT_BASE_URL")
        return None if text is None else _checked("EDGE_AGENT_BASE_URL", http_url, text)

    @cached_property
    def api_key(self) -> str | None:
        """The key of the provider openai-compatible."""
        key = self._env.get("EDGE_AGENT_API_KEY")
        if key is not None and not re.fullmatch(r"[\x21-\x7e]+", key):
            raise _error("EDGE_AGENT_API_KEY", "holds a character that cannot stand in a header")
        return key

    @cached_property
    def providers(self) -> Mapping[str, Provider]:
        providers = self._json("EDGE_AGENT_PROVIDERS", _PROVIDERS, {})
        for name, provider in providers.items():
            if provider.key is not None and provider.key not in self._env:
                raise _error("EDGE_AGENT_PROVIDERS", f"{name}.key names the secret {provider.key}, which is not set")
        return providers

    @cached_property
    def gateway(self) -> Gateway | None:
        """The AI Gateway that calls of models go through; None: each provider is called directly."""
        variable = "EDGE_AGENT_GATEWAY"
        text = self._env.get(variable)
        if text is None:
            return None
        named = _GATEWAY.fullmatch(text)
        if named is None:
            raise _error(variable, "is the id of a gateway, or account/gateway")
        token = self._env.get("CF_AIG_TOKEN")
        if named["account"] and token is None:
            raise ConfigError(
                "CF_AIG_TOKEN", f"is not set, and {variable} as account/gateway needs it", "CF_AIG_TOKEN=…"
            )
        if not named["account"] and not self.ai_binding:
            raise _error(variable, "needs the AI binding where it names no account")
        return Gateway(named["id"], named["account"], token)

    def variable(self, name: str) -> str | None:
        """Any variable by its name: an option of a provider."""
        return self._env.get(name)

    @cached_property
    def secrets(self) -> Mapping[str, str]:
        """Keys by their usual names (OPENAI_API_KEY, GITHUB_TOKEN, …) and those providers name. Never raises."""
        wanted = set(re.findall(r'"key"\s*:\s*"([A-Za-z_][A-Za-z0-9_]*)"', self._env.get("EDGE_AGENT_PROVIDERS", "")))
        return {
            name: value
            for name, value in self._env.items()
            if name in wanted or (_KEY_NAME.search(name) and not name.startswith(PREFIX))
        }

    @cached_property
    def model_timeout(self) -> float | None:
        """Seconds for one whole model call; None for no limit."""
        return self._seconds("EDGE_AGENT_MODEL_TIMEOUT", 0) or None

    @cached_property
    def stall_timeout(self) -> float | None:
        """Seconds a stream may be silent; None for no limit."""
        return self._seconds("EDGE_AGENT_STALL_TIMEOUT", 60) or None

    @cached_property
    def max_retries(self) -> int:
        return self._whole("EDGE_AGENT_MAX_RETRIES", 2, 0, 10)

    @cached_property
    def prices(self) -> Mapping[str, Price]:
        """By model, `provider/model` or the model alone; they win over the table."""
        entries = self._json("EDGE_AGENT_PRICES", _PRICES, {})
        return {
            name: Price(input=one.input, output=one.output, cached=one.cached, cache_write=one.cache_write)
            for name, one in entries.items()
        }

    @cached_property
    def context_window(self) -> int | None:
        """Tokens, of every model; None where each has its own."""
        return self._whole("EDGE_AGENT_CONTEXT_WINDOW", 0, LEAST_WINDOW, 100_000_000) or None

    # -- tools
    @cached_property
    def mcp_servers(self) -> Mapping[str, McpServerSettings]:
        return self._json("EDGE_AGENT_MCP_SERVERS", _SERVERS, {})

    @cached_property
    def tools_allow(self) -> tuple[str, ...]:
        """Globs; empty where everything is allowed."""
        return _entries(self._env.get("EDGE_AGENT_TOOLS_ALLOW", ""))

    @cached_property
    def tools_deny(self) -> tuple[str, ...]:
        return _entries(self._env.get("EDGE_AGENT_TOOLS_DENY", ""))

    # -- runs
    @cached_property
    def limits(self) -> Mapping[str, float | None]:
        """What is laid over the limits in the code; a null takes a cap away."""
        wanted = self._json("EDGE_AGENT_LIMITS", _LIMITS, {})
        _checked("EDGE_AGENT_LIMITS", _UNLIMITED.lowered_by, {k: v for k, v in wanted.items() if v is not None})
        unknown = [name[:60] for name in wanted if name not in _KNOWN_LIMITS]
        if unknown:
            raise _error("EDGE_AGENT_LIMITS", f"{unknown[0]} is not a limit; known are {', '.join(_KNOWN_LIMITS)}")
        fractional = [name for name, value in wanted.items() if isinstance(value, float) and name not in FRACTIONAL]
        if fractional:
            raise _error("EDGE_AGENT_LIMITS", f"{fractional[0]} must be a whole number")
        return wanted

    @cached_property
    def mode(self) -> Mode | None:
        """None where the code decides."""
        mode = self._env.get("EDGE_AGENT_MODE")
        if mode is not None and mode not in get_args(Mode):
            raise _error("EDGE_AGENT_MODE", f"is one of {', '.join(get_args(Mode))}")
        return cast(Mode | None, mode)

    # -- approvals
    @cached_property
    def approval(self) -> ApprovalMode | None:
        """None where the code decides."""
        mode = self._env.get("EDGE_AGENT_APPROVAL")
        if mode is not None and mode not in get_args(ApprovalMode):
            raise _error("EDGE_AGENT_APPROVAL", f"is one of {', '.join(get_args(ApprovalMode))}")
        return cast(ApprovalMode | None, mode)

    @cached_property
    def tool_rules(self) -> Mapping[str, ToolRule]:
        return self._json("EDGE_AGENT_TOOL_RULES", _RULES, {})

    @cached_property
    def approval_timeout(self) -> float | None:
        """Seconds a person is waited for; None for ever."""
        return self._seconds("EDGE_AGENT_APPROVAL_TIMEOUT", 86_400) or None

    # -- the rest
    @cached_property
    def name(self) -> str:
        """The client's name: User-Agent towards MCP servers and providers."""
        name = self._env.get("EDGE_AGENT_NAME", "edge-agent")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise _error("EDGE_AGENT_NAME", "is made of up to 64 letters, digits, '.', '_' and '-'")
        return name

    @cached_property
    def log_level(self) -> LogLevel:
        level = self._env.get("EDGE_AGENT_LOG_LEVEL", "info").lower()
        if level not in get_args(LogLevel):
            raise _error("EDGE_AGENT_LOG_LEVEL", f"is one of {', '.join(get_args(LogLevel))}")
        return cast(LogLevel, level)

    # -- all of it
    def faults(self) -> tuple[ConfigError, ...]:
        """Everything that is wrong, each once, without a value."""
        found: dict[str, ConfigError] = {}
        for name, member in vars(Settings).items():
            if isinstance(member, cached_property):
                try:
                    getattr(self, name)
                except ConfigError as error:
                    found.setdefault(str(error), error)
        return (*found.values(), *self._unknown())

    def declared_secrets(self) -> tuple[str, ...]:
        """What to mask in every record, frame, log line and problem; longest first. Never raises."""
        token = self._env.get("EDGE_AGENT_TOKEN", "")
        values = {token, *_entries(token), *(entry.partition(":")[2] for entry in _entries(token))}
        values |= {self._env.get(f"{PREFIX}{name}", "") for name in ("API_KEY", "SECRET")}
        values |= {*self.secrets.values(), *self._secret_headers()}
        return tuple(sorted((v for v in values if len(v) >= MIN_SECRET_LENGTH), key=lambda v: (-len(v), v)))

    def _secret_headers(self) -> set[str]:
        found: set[str] = set()
        for read in (lambda: self.mcp_servers, lambda: self.providers):
            try:
                entries = read().values()
            except ConfigError:
                continue
            headers = [pair for entry in entries for pair in entry.headers.items()]
            values = [value for name, value in headers if name.lower() not in _PLAIN_HEADERS]
            found |= {*values, *(value.rpartition(" ")[2] for value in values)}  # the latter without its "Bearer "
        return found

    def mask(self, text: str) -> str:
        """The text with each declared secret replaced."""
        for secret in self._masked:
            text = text.replace(secret, "[secret]")
        return text

    @cached_property
    def _masked(self) -> tuple[str, ...]:
        return self.declared_secrets()

    def _unknown(self) -> list[ConfigError]:
        unknown = sorted(
            name for name in self._env if name.startswith(PREFIX) and name not in {*_EXAMPLES, *_FOR_TESTS}
        )
        nearest = [difflib.get_close_matches(name, _EXAMPLES, n=1, cutoff=0.0)[0] for name in unknown]
        fault = "is not a variable of this version"
        return [
            ConfigError(name, fault, f"{near}={_EXAMPLES[near]}") for name, near in zip(unknown, nearest, strict=True)
        ]

    def _json(self, variable: str, adapter: TypeAdapter[T], default: T) -> T:
        text = self._env.get(variable)
        if text is None:
            return default
        try:
            return adapter.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part)[:60] for part in first["loc"])
            fault = first["msg"].removeprefix("Value error, ").removeprefix("Invalid JSON: ")
            raise _error(variable, f"{place}: {fault}" if place else f"is not the right JSON: {fault}") from None

    def _seconds(self, variable: str, default: float) -> float:
        text = self._env.get(variable)
        if text is None:
            return default
        if not re.fullmatch(r"\d{1,7}(\.\d{1,3})?", text):
            raise _error(variable, "is a number of seconds, 0 for no limit")
        return float(text)

    def _whole(self, variable: str, default: int, low: int, high: int) -> int:
        text = self._env.get(variable)
        if text is None:
            return default
        if not re.fullmatch(r"\d{1,10}", text) or not low <= int(text) <= high:
            raise _error(variable, f"is a whole number from {low} to {high}")
        return int(text)


def _error(variable: str, fault: str) -> ConfigError:
    return ConfigError(variable, fault, f"{variable}={_EXAMPLES[variable]}")


def _checked(variable: str, check: Any, value: Any) -> Any:
    try:
        return check(value)
    except ValueError as error:
        raise _error(variable, str(error)) from None


def _entries(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry.strip() for entry in text.split(",") if entry.strip()))
