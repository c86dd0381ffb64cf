"""Links that let somebody decide about one call without a session: an HMAC over run, call, arguments and expiry.

Nothing is stored: that a link decides once is the log's word, which holds one decision for a request.
"""

import base64
import hmac
import re
from dataclasses import dataclass

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.http.run_tokens import hkdf
from edge_agent.wire.run_ids import RUN_ID

PATH = "/v1/approvals"
LIFETIME = 604_800  # seconds, of a link to a request that never expires
_PREFIX = "el1"
_INFO = b"edge-agent approval links v1"
_LINK = re.compile(rf"{_PREFIX}\.({RUN_ID})\.([a-z0-9]{{1,64}})\.([0-9a-f]{{64}})\.([0-9]{{1,12}})\.(.{{43}})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a link is about. `expires`: seconds since the epoch."""

    run_id: str
    call_id: str
    arguments_hash: str
    expires: int


def link_to(key: bytes, run_id: str, asked: JsonObject, now_ms: int) -> str:
    """The path that shows the request `asked` of a state and takes one decision. `key`: that of run tokens."""
    until = asked.get("expires_at")
    expires = now_ms // 1000 + LIFETIME if until is None else until // 1000
    link = Link(run_id=run_id, call_id=asked["call_id"], arguments_hash=asked["arguments_hash"], expires=expires)
    return f"{PATH}/{_PREFIX}.{run_id}.{link.call_id}.{link.arguments_hash}.{expires}.{_mac(key, link)}"


def opened_link(key: bytes, text: str, now_ms: int) -> Link:
    """Raises Refusal: 403 for one that is not ours, 410 for one whose time is over."""
    found = _LINK.fullmatch(text)
    if found is None:
        raise _wrong()
    run_id, call_id, arguments_hash, expires, mac = found.groups()
    link = Link(run_id=run_id, call_id=call_id, arguments_hash=arguments_hash, expires=int(expires))
    if not hmac.compare_digest(mac.encode(), _mac(key, link).encode()):
        raise _wrong()
    if link.expires <= now_ms // 1000:
        raise Refusal(410, "link_expired", "This link has expired, so it decides nothing any more.")
    return link


def _wrong() -> Refusal:
    return Refusal(403, "wrong_link", "This is no link of this server, or it is not whole: copy all of it.")


def _mac(key: bytes, link: Link) -> str:
    """By a key of its own, so that no run token is a link and no link a run token."""
    said = f"{link.run_id}\n{link.call_id}\n{link.arguments_hash}\n{link.expires}"
    digest = hmac.digest(hkdf(key, _INFO), said.encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
