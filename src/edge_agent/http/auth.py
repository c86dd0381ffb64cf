"""Who may call. Closed by default: a bearer token, a run token for one run, or, where no token is set, loopback.

Loopback is judged by the host name the client asked for and by the page it comes from, not by the address: a page
elsewhere can reach 127.0.0.1, and a name elsewhere can be pointed at it, but neither can say `Host: localhost`
together with a matching Origin.
"""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from edge_agent.core.errors import Refusal
from edge_agent.core.tooling import LOCAL
from edge_agent.http.run_tokens import is_run_token, offered_token, opened_run
from edge_agent.wire.access_settings import NamedToken

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]@/?#,]+))(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://([^\s/?#@,]+)")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_HOW = "Set EDGE_AGENT_TOKEN (`npx wrangler secret put EDGE_AGENT_TOKEN`) and send it as `Authorization: Bearer …`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a request says about who sends it. `run_id`: the run whose token would do here, if one would."""

    scheme: str
    host: str
    origin: str | None = None
    authorization: str | None = None
    protocols: str | None = None
    run_id: str | None = None

    @classmethod
    def of(cls, scheme: str, headers: Mapping[str, str], run_id: str | None) -> "Ask":
        """`headers` by lower-case names."""
        return cls(
            scheme=scheme,
            host=headers.get("host", ""),
            origin=headers.get("origin"),
            authorization=headers.get("authorization"),
            protocols=headers.get("sec-websocket-protocol"),
            run_id=run_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`run_id`: the only run this caller may reach; None for all."""

    name: str
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What callers are judged by. `key` gives the key of run tokens."""

    tokens: Sequence[NamedToken]
    origins: Sequence[str]
    key: Callable[[], Awaitable[bytes]]


async def admit(door: Door, ask: Ask, now_ms: int) -> Caller:
    """Raises Refusal: 401 without a valid token where one is needed, 403 for a page or a run that is not allowed."""
    token = _bearer(ask.authorization)
    if token is None and ask.authorization is None:
        token = offered_token(ask.protocols)
        if token is not None and not is_run_token(token):
            raise Refusal(401, "wrong_token", "Only a run token may be sent as a WebSocket subprotocol.")
    if token is not None:
        return _named(door.tokens, token) or await _of_run(door, ask, token, now_ms)
    if door.tokens:
        raise Refusal(401, "token_required", "Send one of this deployment's tokens as `Authorization: Bearer …`.")
    return _local(door.origins, ask)


def is_loopback(host: str) -> bool:
    """Whether a Host header names this machine in one of the three plain spellings."""
    return _name_and_port(host)[0] in LOOPBACK_NAMES


def is_same_origin(origin: str, scheme: str, host: str) -> bool:
    """`null` and anything that is no plain origin never are."""
    found = _ORIGIN.fullmatch(origin.lower())
    if found is None or found[1] != scheme.lower():
        return False
    (name, port), (own_name, own_port) = _name_and_port(found[2]), _name_and_port(host)
    default = _DEFAULT_PORTS[found[1]]
    return name is not None and name == own_name and (port or default) == (own_port or default)


def _bearer(authorization: str | None) -> str | None:
    if authorization is None:
        return None
    kind, _, token = authorization.strip().partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise Refusal(401, "wrong_token", "The Authorization header must be `Bearer` and a token.")
    return token.strip()


def _named(tokens: Sequence[NamedToken], shown: str) -> Caller | None:
    """Compares with every token, and hashes first, so that neither place nor length shows in the time it takes."""
    digest, found = hashlib.sha256(shown.encode()).digest(), None
    for name, token in tokens:
        if hmac.compare_digest(digest, hashlib.sha256(token.encode()).digest()):
            found = Caller(name=name)
    return found


async def _of_run(door: Door, ask: Ask, token: str, now_ms: int) -> Caller:
    if not is_run_token(token):
        raise Refusal(401, "wrong_token", "This is not one of this deployment's tokens.")
    run_id = opened_run(await door.key(), token, now_ms)
    if ask.run_id is None:
        raise Refusal(403, "token_scope", "A run token cannot do this: it only follows, answers and cancels its run.")
    if run_id != ask.run_id:
        raise Refusal(403, "token_scope", "This run token belongs to another run.")
    return Caller(name=f"run {run_id}", run_id=run_id)


def _local(origins: Sequence[str], ask: Ask) -> Caller:
    if not is_loopback(ask.host):
        raise Refusal(
            401, "token_required", f"Without a token only localhost, 127.0.0.1 and [::1] are answered. {_HOW}"
        )
    if (
        ask.origin is not None
        and not is_same_origin(ask.origin, ask.scheme, ask.host)
        and ask.origin.lower() not in origins
    ):
        raise Refusal(403, "wrong_origin", "Without a token, no page of another origin may call. "
                      "Add the origin to EDGE_AGENT_CORS if it is yours.")  # fmt: skip
    return Caller(name=LOCAL)


def _name_and_port(host: str) -> tuple[str | None, int | None]:
    found = _HOST.fullmatch(host.strip().lower())
    if found is None:
        return None, None
    return found[1] or found[2], int(found[3]) if found[3] else None
