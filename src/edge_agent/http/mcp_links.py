"""Signed texts of a login to an MCP server: the link that a person opens, and the state that comes back with it.

Both name the connection they belong to, and an HMAC says that they are ours. A link lets whoever has it begin a login,
and nothing else. A state is random besides; that it is used once and in one browser is the connection's word.
"""

import base64
import hmac
import re
from dataclasses import dataclass

from edge_agent.core.errors import Refusal
from edge_agent.http.run_tokens import hkdf

PATH = "/v1/mcp/connect"
CALLBACK = "/v1/mcp/callback"
DOCUMENT = "/v1/mcp/client.json"
LIFETIME = 90_000  # seconds, of a link: longer than a run waits for a login
_INFO = b"edge-agent mcp links v1"
_NAMES = r"([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]{1,200})"
_LINK = re.compile(rf"em1\.{_NAMES}\.([0-9]{{1,12}})\.(.{{43}})")
_STATE = re.compile(rf"es1\.{_NAMES}\.([A-Za-z0-9_-]{{43}})\.(.{{43}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionId:
    """A connection: one for each server and user."""

    server: str
    user: str

    @property
    def name(self) -> str:
        """Of its object."""
        return f"{self.server}/{self.user}"

    @classmethod
    def of(cls, name: str) -> "ConnectionId":
        server, _, user = name.partition("/")
        return cls(server=server, user=user)


def link_to(key: bytes, whose: ConnectionId, now_ms: int) -> str:
    """The path of the page where a person begins a login."""
    return f"{PATH}/{_signed(key, 'em1', whose, str(now_ms // 1000 + LIFETIME))}"


def opened_link(key: bytes, text: str, now_ms: int) -> ConnectionId:
    """Raises Refusal: 403 for a link that is not ours, 410 for one whose time is over."""
    whose, expires = _opened(key, _LINK, text)
    if int(expires) <= now_ms // 1000:
        raise Refusal(410, "link_expired", "This link has expired. Start the run again, or ask for another link.")
    return whose


def state_for(key: bytes, whose: ConnectionId, nonce: str) -> str:
    return _signed(key, "es1", whose, nonce)


def opened_state(key: bytes, text: str) -> ConnectionId:
    """Raises Refusal 403 for a state that is not ours."""
    return _opened(key, _STATE, text)[0]


def _signed(key: bytes, kind: str, whose: ConnectionId, last: str) -> str:
    user = base64.urlsafe_b64encode(whose.user.encode()).rstrip(b"=").decode()
    said = f"{kind}.{whose.server}.{user}.{last}"
    return f"{said}.{_mac(key, said)}"


def _opened(key: bytes, form: re.Pattern[str], text: str) -> tuple[ConnectionId, str]:
    found = form.fullmatch(text)
    said, _, mac = text.rpartition(".")
    if found is None or not hmac.compare_digest(mac.encode(), _mac(key, said).encode()):
        raise Refusal(403, "wrong_link", "This is no link of this server, or it is not whole: copy all of it.")
    server, user, last, _ = found.groups()
    name = base64.urlsafe_b64decode(user + "=" * (-len(user) % 4)).decode("utf-8", "replace")
    return ConnectionId(server=server, user=name), last


def _mac(key: bytes, said: str) -> str:
    """By a key of its own, so that no other token is one of these."""
    return base64.urlsafe_b64encode(hmac.digest(hkdf(key, _INFO), said.encode(), "sha256")).rstrip(b"=").decode()
