"""What the body of a provider's error says, whatever envelope it came in."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from edge_agent.core.messages import JsonObject
from edge_agent.models.json_fields import object_in, objects_in

MAX_WAIT = 86_400.0  # seconds
MAX_ENVELOPES = 4  # one in the other
GUARDRAIL_CODES = ("2016", "2017")
# The codes of Workers AI and AI Gateway with the statuses they come with, from developers.cloudflare.com
# (workers-ai/platform/errors, ai-gateway). Where a binding raises its error instead, the code is all there is.
STATUS_OF_CODE: Mapping[str, int] = {
    **dict.fromkeys(("2001", "3003", "3039", "5004", "5006", "5007", "5023", "8001", "8006"), 400),
    "2009": 401,
    "2021": 402,
    **dict.fromkeys(("3023", "3041", "5016", "5018"), 403),
    **dict.fromkeys(("3042", "7003"), 404),
    **dict.fromkeys(("5005", "5019"), 405),
    **dict.fromkeys(("3007", "3008"), 408),
    "3006": 413,
    **dict.fromkeys(GUARDRAIL_CODES, 424),
    **dict.fromkeys(("3036", "3040"), 429),
    "7013": 503,
}
_CODE = re.compile(r"\b(\d{4}):")  # "InferenceUpstreamError: 3040: …"
_STATUS_OF_TYPE: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "timeout_error": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "requests": 429,
    "tokens": 429,
    "overloaded_error": 529,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "resource_exhausted": 429,
    "unavailable": 503,
    "deadline_exceeded": 504,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an error body says, whatever envelope it came in. `code` and `type` are in lower case. daily: the quota of a
    day is used up."""

    message: str = ""
    code: str = ""
    type: str = ""
    daily: bool = False
    retry_after: float | None = None

    @property
    def text(self) -> str:
        return f"{self.message} {self.code} {self.type}".lower()

    @property
    def status(self) -> int:
        """The HTTP status that the code or the type stands for; 500 where they stand for none."""
        if re.fullmatch("[45][0-9][0-9]", self.code):
            return int(self.code)
        by_type = _STATUS_OF_TYPE.get(self.code) or _STATUS_OF_TYPE.get(self.type)
        return STATUS_OF_CODE.get(self.code) or by_type or HTTPStatus.INTERNAL_SERVER_ERROR


def told_in(body: bytes) -> Told:
    text = body.decode("utf-8", "replace").strip()
    try:
        return read(json.loads(text))
    except (ValueError, RecursionError):
        return Told() if is_html(body) else _plain(text)


def read(value: Any) -> Told:
    """Any envelope: {"error": …}, {"errors": […]}, [{"error": …}], {"detail": …}, {"message", "code", "type"},
    {"internalCode", "description"} or plain text."""
    for _ in range(MAX_ENVELOPES):
        if isinstance(value, list):
            value = cast(list[Any], value)[0] if value else ""
        elif isinstance(value, dict):
            inner = _inner(cast(dict[str, Any], value))
            if inner is None:
                break
            value = inner
    if isinstance(value, dict):
        return _fields(cast(dict[str, Any], value))
    return _plain(value if isinstance(value, str) else "")


def _plain(message: str) -> Told:
    """A text alone, with the code that it begins with."""
    codes = (code for code in _CODE.findall(message) if code in STATUS_OF_CODE)
    return Told(message=message, code=next(codes, ""))


def _inner(envelope: dict[str, Any]) -> Any:
    """What an envelope holds; None where it is the error itself ({"error": "Not Found", "message": …})."""
    inner = next((envelope[name] for name in ("error", "errors", "detail") if envelope.get(name)), None)
    return None if isinstance(inner, str) and envelope.get("message") else inner


def _fields(error: dict[str, Any]) -> Told:
    message = next((error[name] for name in ("message", "msg", "description") if isinstance(error.get(name), str)), "")
    raw = object_in(error, "metadata").get("raw")
    code = error.get("code", error.get("internalCode"))
    kind = error.get("type", error.get("status"))
    details = objects_in(error, "details")  # Google's, each a message of google.rpc
    return Told(
        message=f"{message}: {raw}" if isinstance(raw, str) else message,
        code=str(code).lower() if isinstance(code, str | int) else _plain(message).code,
        type=kind.lower() if isinstance(kind, str) else "",
        daily=_is_daily(details),
        retry_after=_retry_delay(details),
    )


def _retry_delay(details: list[JsonObject]) -> float | None:
    """RetryInfo: {"retryDelay": "17s"}."""
    delays = (detail["retryDelay"] for detail in details if isinstance(detail.get("retryDelay"), str))
    return next((seconds(delay.removesuffix("s")) for delay in delays), None)


def _is_daily(details: list[JsonObject]) -> bool:
    """QuotaFailure: {"violations": [{"quotaId": "…PerDay…"}]}."""
    return any("perday" in json.dumps(detail.get("violations")).lower() for detail in details)


def seconds(text: str) -> float | None:
    """What is asked to be waited; None for what is no such number."""
    try:
        asked = float(text)
    except ValueError:
        return None
    return min(asked, MAX_WAIT) if math.isfinite(asked) and asked >= 0 else None


def is_html(body: bytes) -> bool:
    return body.lstrip()[:1] == b"<"
