"""Run tokens: short-lived keys to one run, for browsers. An HMAC over run, caller and expiry; nothing is stored."""

import base64
import hmac
import re
from collections.abc import Sequence

from edge_agent.core.errors import Refusal
from edge_agent.wire.run_ids import RUN_ID_PATTERN
from edge_agent.wire.settings import Settings

LIFETIME = 3_600  # seconds
PROTOCOL = "edge-agent.v1"
_PREFIX = "er1"
_INFO = b"edge-agent run tokens v1"


def derived_key(settings: Settings) -> bytes | None:
    """The key run tokens are made with: from EDGE_AGENT_SECRET, else from EDGE_AGENT_TOKEN; None where neither is set.

    Raises ConfigError where the one that is set is wrong."""
    if settings.secret_key is not None:
        return hkdf(settings.secret_key, _INFO)
    if settings.tokens:
        return hkdf("\n".join(sorted(token for _, token in settings.tokens)).encode(), _INFO)
    return None


def hkdf(material: bytes, info: bytes) -> bytes:
    """32 bytes by HKDF-SHA256 (RFC 5869) without a salt."""
    extracted = hmac.digest(bytes(32), material, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def run_token(key: bytes, run_id: str, now_ms: int) -> str:
    """Only characters that may stand in a subprotocol: er1.<run>.<expiry>.<mac>"""
    expires = now_ms // 1000 + LIFETIME
    return f"{_PREFIX}.{run_id}.{expires}.{_mac(key, run_id, expires)}"


def is_run_token(text: str) -> bool:
    return re.fullmatch(rf"{_PREFIX}\.[^.]*\.[^.]*\.[^.]*", text) is not None


def opened_run(key: bytes, token: str, now_ms: int) -> str:
    """The run a token opens. Raises Refusal 401 for one that is forged or expired."""
    _, run_id, expires, mac = token.split(".")
    wellformed = re.fullmatch(RUN_ID_PATTERN, run_id) and re.fullmatch(r"[0-9]{1,12}", expires)
    if not wellformed or not hmac.compare_digest(mac.encode(), _mac(key, run_id, int(expires)).encode()):
        raise Refusal(
            401, "wrong_token", "This run token is not one of ours. Start the run again, or use an API token."
        )
    if int(expires) <= now_ms // 1000:
        raise Refusal(401, "token_expired", "This run token has expired. Use an API token, or repeat POST /v1/runs "
                      "with its Idempotency-Key for a fresh one.")  # fmt: skip
    return run_id


def offered_token(protocols: str | None) -> str | None:
    """The token in a Sec-WebSocket-Protocol header: `edge-agent.v1, token.<…>`."""
    names = _names(protocols)
    tokens = [name.removeprefix("token.") for name in names if name.startswith("token.")]
    return tokens[0] if tokens and PROTOCOL in names else None


def chosen_protocol(protocols: str | None) -> str | None:
    """The one subprotocol to echo: never the one that carries the token."""
    return PROTOCOL if PROTOCOL in _names(protocols) else None


def _names(protocols: str | None) -> Sequence[str]:
    return [name.strip() for name in (protocols or "").split(",")]


def _mac(key: bytes, run_id: str, expires: int) -> str:
    digest = hmac.digest(key, f"{run_id}\n{expires}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
