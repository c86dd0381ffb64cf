"""What the deployment sets: the EDGE_AGENT_* variables and the keys of providers.

Nothing is checked before it is used: each property reads its own variable and raises ConfigError naming it, the fault
and an example. `faults` tries them all. No message, and no repr, holds a value.
"""

import difflib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import cast

from edge_agent.core.errors import ConfigError
from edge_agent.wire.access_settings import AccessSettings
from edge_agent.wire.console import DEFAULT_LEVEL, LEVELS, LogLevel
from edge_agent.wire.model_settings import PREFIX, ModelSettings
from edge_agent.wire.run_settings import RunSettings
from edge_agent.wire.variables import EXAMPLES, entries, wrong

MIN_SECRET_LENGTH = 8  # a shorter value is not masked: it would blot out ordinary words
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
_FOR_TESTS = frozenset({"EDGE_AGENT_FIXTURES"})  # `make dev` passes the whole environment on


class Settings(AccessSettings, ModelSettings, RunSettings):
    """The settings of a deployment. Every property but `secrets` may raise ConfigError."""

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, ai_binding: bool = False) -> "Settings":
        """Takes any environment and never raises. ai_binding: whether the Worker has one."""
        return cls(env, ai_binding=ai_binding)

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(name for name in self.env if name.startswith(PREFIX)))})"

    @cached_property
    def name(self) -> str:
        """The client's name: User-Agent towards MCP servers and providers."""
        name = self.env.get("EDGE_AGENT_NAME", "edge-agent")
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise wrong("EDGE_AGENT_NAME", "is made of up to 64 letters, digits, '.', '_' and '-'")
        return name

    @cached_property
    def log_level(self) -> LogLevel:
        """The finest that the console is told."""
        level = self.env.get("EDGE_AGENT_LOG_LEVEL", DEFAULT_LEVEL).lower()
        if level not in LEVELS:
            raise wrong("EDGE_AGENT_LOG_LEVEL", f"is one of {', '.join(LEVELS)}")
        return cast(LogLevel, level)

    def faults(self) -> tuple[ConfigError, ...]:
        """Everything that is wrong, each once, without a value."""
        found: dict[str, ConfigError] = {}
        for name in dir(Settings):
            if isinstance(getattr(Settings, name), cached_property):
                try:
                    getattr(self, name)
                except ConfigError as fault:
                    found.setdefault(str(fault), fault)
        return (*found.values(), *self._unknown())

    def declared_secrets(self) -> tuple[str, ...]:
        """What to mask in every record, frame, log line and problem; longest first. Never raises."""
        token = self.env.get("EDGE_AGENT_TOKEN", "")
        values = {token, *entries(token), *(entry.partition(":")[2] for entry in entries(token))}
        values |= {self.env.get(f"{PREFIX}{name}", "") for name in ("API_KEY", "SECRET")}
        values |= {*self.secrets.values(), *self._secret_headers()}
        return tuple(sorted((v for v in values if len(v) >= MIN_SECRET_LENGTH), key=lambda v: (-len(v), v)))

    def _secret_headers(self) -> set[str]:
        found: set[str] = set()
        for read in (lambda: self.mcp_servers, lambda: self.providers):
            try:
                found_there = read().values()
            except ConfigError:
                continue
            headers = [pair for entry in found_there for pair in entry.headers.items()]
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
        unknown = sorted(name for name in self.env if name.startswith(PREFIX) and name not in {*EXAMPLES, *_FOR_TESTS})
        nearest = [difflib.get_close_matches(name, EXAMPLES, n=1, cutoff=0.0)[0] for name in unknown]
        fault = "is not a variable of this version"
        return [
            ConfigError(name, fault, f"{near}={EXAMPLES[near]}") for name, near in zip(unknown, nearest, strict=True)
        ]
