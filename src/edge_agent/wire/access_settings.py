"""Who may call, and what calls may hold."""

import base64
import re
from functools import cached_property
from typing import NamedTuple

from edge_agent.wire.variables import Variables, entries, wrong

DEFAULT_MAX_BODY = 1_048_576
MIN_KEY_BYTES = 32
_MAX_MAX_BODY = 33_554_432
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


class NamedToken(NamedTuple):
    """A caller and the bearer token that makes one this caller."""

    name: str
    token: str

    def __repr__(self) -> str:
        return f"NamedToken(name={self.name!r})"


class AccessSettings(Variables):
    @cached_property
    def tokens(self) -> tuple[NamedToken, ...]:
        """Empty: only loopback is answered."""
        variable, text = "EDGE_AGENT_TOKEN", self.env.get("EDGE_AGENT_TOKEN", "")
        named = [NamedToken(*entry.strip().split(":", 1)) for entry in entries(text) if ":" in entry]
        if text and ":" not in text and "," not in text:
            named = [NamedToken("default", text)]
        elif text and not 0 < len(named) == len(entries(text)):
            raise wrong(variable, "several tokens are written as name:token, separated by commas")
        for name, token in named:
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                raise wrong(variable, "a caller's name is made of letters, digits, '.', '_' and '-'")
            if not _TOKEN.fullmatch(token):
                raise wrong(variable, "a token is made of letters, digits and -._~+/ (then =), without spaces")
        if len({name for name, _ in named}) != len(named):
            raise wrong(variable, "two tokens have the same name")
        return tuple(named)

    @cached_property
    def secret_key(self) -> bytes | None:
        """Key material for run tokens, 32 bytes or more."""
        text = self.env.get("EDGE_AGENT_SECRET")
        if text is None:
            return None
        try:
            key = base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
        except ValueError:
            raise wrong("EDGE_AGENT_SECRET", "is not base64") from None
        if len(key) < MIN_KEY_BYTES:
            raise wrong("EDGE_AGENT_SECRET", f"holds {len(key)} bytes; {MIN_KEY_BYTES} or more are needed")
        return key

    @cached_property
    def cors(self) -> tuple[str, ...]:
        """Origins whose pages may call."""
        origins = entries(self.env.get("EDGE_AGENT_CORS", ""))
        for origin in origins:
            if not re.fullmatch(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?", origin):
                raise wrong("EDGE_AGENT_CORS", "each entry is an origin: scheme, host, port and nothing else; no *")
        return tuple(origin.lower() for origin in origins)

    @cached_property
    def max_body(self) -> int:
        return self.whole("EDGE_AGENT_MAX_BODY", DEFAULT_MAX_BODY, 1024, _MAX_MAX_BODY)

    @cached_property
    def max_runs(self) -> int | None:
        """Runs that have not ended, in the whole deployment; None for no cap."""
        return self.whole("EDGE_AGENT_MAX_RUNS", 0, 1, 1_000_000) or None
