"""Pages of other origins: closed, but for those EDGE_AGENT_CORS names."""

from collections.abc import Mapping, Sequence

from edge_agent.core.errors import Refusal
from edge_agent.http.problems import Answer

_EXPOSED = "location, retry-after, www-authenticate"
_ALLOWED_HEADERS = "authorization, content-type, idempotency-key, last-event-id"
_MAX_AGE = 7_200


def cors_headers(origins: Sequence[str], origin: str | None) -> dict[str, str]:
    """What an answer needs so that a page of `origin` may read it; nothing where it may not."""
    if not origins:
        return {}
    if origin is None or origin.lower() not in origins:
        return {"vary": "Origin"}
    return {"vary": "Origin", "access-control-allow-origin": origin, "access-control-expose-headers": _EXPOSED}


def is_preflight(method: str, headers: Mapping[str, str]) -> bool:
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight_answer(origins: Sequence[str], origin: str) -> Answer:
    """Raises Refusal 403 for an origin that is not allowed."""
    if origin.lower() not in origins:
        raise Refusal(
            403, "wrong_origin", "Pages of this origin may not call. Add it to EDGE_AGENT_CORS if it is yours."
        )
    headers = {
        **cors_headers(origins, origin),
        "access-control-allow-methods": "GET, POST, PUT, DELETE",
        "access-control-allow-headers": _ALLOWED_HEADERS,
        "access-control-max-age": str(_MAX_AGE),
    }
    return Answer(status=204, body=b"", headers=headers)
