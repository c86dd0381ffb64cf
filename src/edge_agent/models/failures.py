"""What a provider says when it fails, as a ModelError: how it failed, whether to try again, when, and what a person can
do. All providers in one place: gateways pass the errors of others on.
"""

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, cast

from edge_agent.core.errors import ModelError, ModelErrorKind
from edge_agent.core.messages import JsonObject
from edge_agent.core.model import ModelRequest
from edge_agent.models.endpoint import Endpoint

MAX_TOLD = 500  # characters of a provider's own words
MAX_RETRY_AFTER = 86_400.0  # seconds
MAX_ENVELOPES = 4  # one in the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who is talked about in a message. `secrets` never stand in one."""

    model: str
    host: str
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, endpoint: Endpoint, model: str) -> "Source":
        return cls(model=f"{endpoint.provider}/{model}", host=endpoint.host, secrets=endpoint.secrets)

    def error(
        self, kind: ModelErrorKind, what: str, remedy: str, *, retryable: bool, retry_after: float | None = None
    ) -> ModelError:
        """`what` goes on after the model's name, `remedy` is a sentence."""
        text = self.hidden(f"The model {self.model} at {self.host} {what}. {remedy}")
        return ModelError(kind, text, retryable=retryable, retry_after=retry_after)

    def quoted(self, words: str) -> str:
        """`: "the provider's own words"`, without secrets and clipped; empty for none."""
        words = self.hidden(" ".join(words.split()))
        clipped = words[:MAX_TOLD] + ("…" if len(words) > MAX_TOLD else "")
        return f': "{clipped}"' if words else ""

    def hidden(self, text: str) -> str:
        """The text with each secret replaced; before anything is clipped, or half a key would be left."""
        for secret in self.secrets:
            text = text.replace(secret, "[secret]")
        return text


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    kind: ModelErrorKind
    retryable: bool
    what: str
    remedy: str


_WAIT = "Try again later, or name a fallback model."
_CHECK_NAME = "Check the model's name and the base URL (it often ends in /v1, Gemini's in /v1beta)."


def _never(kind: ModelErrorKind, what: str, remedy: str) -> _Rule:
    return _Rule(kind=kind, retryable=False, what=what, remedy=remedy)


def _again(kind: ModelErrorKind, what: str, remedy: str = _WAIT) -> _Rule:
    return _Rule(kind=kind, retryable=True, what=what, remedy=remedy)


_BAD_REQUEST = _never("bad-request", "refused the request", "Check the model's name and its options.")
_RATE_LIMITED = _again("rate-limited", "gets too many requests", "Send fewer at a time, or name a fallback model.")
_UNAVAILABLE = _again("unavailable", "is not available now")
_OVERLOADED = _again("overloaded", "is overloaded")
_RULES: Mapping[int, _Rule] = {
    400: _BAD_REQUEST,
    401: _never("unauthorized", "refused the key", "Check the key of this provider."),
    402: _never("quota", "asks for payment", "Check the account's balance and billing."),
    403: _never("unauthorized", "does not allow this", "Check what the key of this provider may use."),
    404: _never("not-found", "was not found", _CHECK_NAME),
    405: _never("not-found", "takes no such request here", _CHECK_NAME),
    408: _again("timeout", "took too long to answer"),
    409: _again("unavailable", "is busy with a conflicting request"),
    429: _RATE_LIMITED,
    529: _OVERLOADED,
}
_WRONG_KEY = _RULES[HTTPStatus.UNAUTHORIZED]
_QUOTA = _never(
    "quota",
    "has no quota left for this account",
    "Check the account's plan, its spend limit and its balance.",
)
_OVERFLOW = _never(
    "context-overflow",
    "says that the request is too long for its context window",
    "Shorten the conversation, or use a model with a larger window.",
)
_BLOCKED = _never("refused", "is behind a guardrail that blocked this", "Change the request, or the guardrail's rules.")
_BAD_CALL = _again(
    "bad-answer",
    "wrote a tool call that its own server could not read",
    "Try again; if it keeps happening, take another model, or set tool_mode to json where the wire has it.",
)
_USED_UP = _never(
    "quota",
    "has used up this account's free share of the day",
    "It begins anew at 00:00 UTC: wait until then, move the account to a paid plan, or name a fallback model.",
)
_NOT_ACCEPTED = _never(
    "unauthorized",
    "has terms that this account has not agreed to",
    "Agree to them once, as its page at developers.cloudflare.com/workers-ai/models says.",
)
_TOO_SHORT = _never(
    "bad-request",
    "had too few tokens left for the tool call it was forced to make",
    "Raise max_output_tokens_per_call.",
)
_NO_JSON = _again(
    "bad-answer", "did not write JSON that fits the schema", "Try again, simplify the schema, or use another model."
)
_REDIRECT = _never(
    "bad-answer",
    "answered with a redirect",
    "The base URL likely is wrong: give the one that answers itself; keys are not sent on to another address.",
)

_OVERFLOW_PHRASES = re.compile(
    r"prompt is too long|context_length_exceeded|maximum context length|reduce the length of"
    r"|exceeds the maximum number of tokens|input token count|input is too long|too many (input )?tokens"
    r"|context window|context size|context length|exceed_context_size"
)
_QUOTA_PHRASES = re.compile(
    r"insufficient_quota|\b3036\b|spend(ing)? limit|billing|credit balance"
    r"|daily (free )?(limit|allocation|quota|neurons)"
)
_WRONG_KEY_PHRASES = re.compile(r"api key (not valid|expired)")
_OVERLOADED_PHRASES = re.compile(r"overloaded|\b3040\b|out of capacity|capacity temporarily exceeded")
_ABOUT_THINKING = re.compile("thinking|reasoning")
_OVERFLOW_STATUSES = (400, 422, 500)
_GUARDRAIL_STATUSES = (422, 424)
_GUARDRAIL_CODES = ("2016", "2017")
_BAD_CALL_CODES = ("tool_use_failed", "malformed_function_call")
# The codes of Workers AI and AI Gateway with the statuses they come with, from developers.cloudflare.com
# (workers-ai/platform/errors, ai-gateway). Where a binding raises its error instead, the code is all there is.
_STATUS_OF_CODE: Mapping[str, int] = {
    **dict.fromkeys(("2001", "3003", "3039", "5004", "5006", "5007", "5023", "8001", "8006"), 400),
    "2009": 401,
    "2021": 402,
    **dict.fromkeys(("3023", "3041", "5016", "5018"), 403),
    **dict.fromkeys(("3042", "7003"), 404),
    **dict.fromkeys(("5005", "5019"), 405),
    **dict.fromkeys(("3007", "3008"), 408),
    "3006": 413,
    **dict.fromkeys(_GUARDRAIL_CODES, 424),
    **dict.fromkeys(("3036", "3040"), 429),
    "7013": 503,
}
_RULE_OF_CODE: Mapping[str, _Rule] = {
    "3036": _USED_UP,
    "3040": _OVERLOADED,
    "3042": _RULES[404],
    "5007": _RULES[404],
    "5016": _NOT_ACCEPTED,
    "8006": _TOO_SHORT,
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


def failed_status(source: Source, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error of an answer whose status is not 2xx."""
    told = _told(body)
    rule = _rule(status, told)
    retryable = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower(), rule.retryable)
    retry_after = _retry_after(headers) if told.retry_after is None else told.retry_after
    words = source.quoted(told.message) or ("; the body is an HTML page" if _is_html(body) else "")
    return source.error(
        rule.kind, f"{rule.what} (HTTP {status}{words})", rule.remedy, retryable=retryable, retry_after=retry_after
    )


def thinking_refused(request: ModelRequest, error: ModelError) -> ModelError | None:
    """Some models do not think where the form of the answer is given, and say so only when they are asked to."""
    asked = request.thinking not in (None, "none") and (request.output_schema or request.tool_choice == "required")
    if error.kind != "bad-request" or not asked or not _ABOUT_THINKING.search(error.message.lower()):
        return None
    return ModelError("thinking-refused", error.message, retryable=True)


def failed_inside(source: Source, error: Any) -> ModelError:
    """The error that came as a piece of an answer with status 200."""
    told = _read(error)
    status = _status_inside(told)
    rule = _rule(status, told)
    what = f"{rule.what} (an error inside its answer{source.quoted(told.message)})"
    return source.error(rule.kind, what, rule.remedy, retryable=rule.retryable, retry_after=told.retry_after)


def raised_status(message: str) -> int:
    """The HTTP status of an error that a binding raised as `<code>: <message>`."""
    return _status_inside(_read(message))


def _status_inside(told: Told) -> int:
    if re.fullmatch("[45][0-9][0-9]", told.code):
        return int(told.code)
    by_type = _STATUS_OF_TYPE.get(told.code) or _STATUS_OF_TYPE.get(told.type)
    return _STATUS_OF_CODE.get(told.code) or by_type or HTTPStatus.INTERNAL_SERVER_ERROR


def _rule(status: int, told: Told) -> _Rule:
    """What the words say, else what the status says."""
    if 300 <= status < HTTPStatus.BAD_REQUEST:  # noqa: PLR2004 (3xx)
        return _REDIRECT
    by_status = _UNAVAILABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _BAD_REQUEST
    by_code = _RULE_OF_CODE.get(told.code) if status == _STATUS_OF_CODE.get(told.code) else None
    return by_code or _by_words(status, told) or _RULES.get(status, by_status)


def _by_words(status: int, told: Told) -> _Rule | None:
    text = told.text
    busy = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    cases = (
        (_BAD_CALL, told.code in _BAD_CALL_CODES),
        (_NO_JSON, "json mode couldn't be met" in text),
        (_BLOCKED, status in _GUARDRAIL_STATUSES and (told.code in _GUARDRAIL_CODES or "guardrail" in text)),
        (_OVERFLOW, status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        (_OVERFLOW, status in _OVERFLOW_STATUSES and _OVERFLOW_PHRASES.search(text)),
        (_WRONG_KEY, status == HTTPStatus.BAD_REQUEST and _WRONG_KEY_PHRASES.search(text)),
        (_QUOTA, status == HTTPStatus.TOO_MANY_REQUESTS and _is_used_up(told)),
        (_QUOTA, status == HTTPStatus.BAD_REQUEST and "credit balance is too low" in text),  # Anthropic
        (_OVERLOADED, busy and _OVERLOADED_PHRASES.search(text)),
    )
    return next((rule for rule, applies in cases if applies), None)


def _is_used_up(told: Told) -> bool:
    """Whether waiting a little is of no use. Google speaks of billing for the quota of a minute too, and says then when
    to try again."""
    return told.daily or (told.retry_after is None and _QUOTA_PHRASES.search(told.text) is not None)


def _told(body: bytes) -> Told:
    text = body.decode("utf-8", "replace").strip()
    try:
        return _read(json.loads(text))
    except (ValueError, RecursionError):
        return Told() if _is_html(body) else _plain(text)


def _read(value: Any) -> Told:
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
    codes = (code for code in _CODE.findall(message) if code in _STATUS_OF_CODE)
    return Told(message=message, code=next(codes, ""))


def _inner(envelope: dict[str, Any]) -> Any:
    """What an envelope holds; None where it is the error itself ({"error": "Not Found", "message": …})."""
    inner = next((envelope[name] for name in ("error", "errors", "detail") if envelope.get(name)), None)
    return None if isinstance(inner, str) and envelope.get("message") else inner


def _fields(error: dict[str, Any]) -> Told:
    message = next((error[name] for name in ("message", "msg", "description") if isinstance(error.get(name), str)), "")
    metadata = error.get("metadata")
    raw = cast(dict[str, Any], metadata).get("raw") if isinstance(metadata, dict) else None
    code = error.get("code", error.get("internalCode"))
    kind, details = error.get("type", error.get("status")), _details(error)
    return Told(
        message=f"{message}: {raw}" if isinstance(raw, str) else message,
        code=str(code).lower() if isinstance(code, str | int) else _plain(message).code,
        type=kind.lower() if isinstance(kind, str) else "",
        daily=_is_daily(details),
        retry_after=_retry_delay(details),
    )


def _details(error: dict[str, Any]) -> list[JsonObject]:
    """Google's, each a message of google.rpc."""
    details = error.get("details")
    return [one for one in cast(list[Any], details) if isinstance(one, dict)] if isinstance(details, list) else []


def _retry_delay(details: list[JsonObject]) -> float | None:
    """RetryInfo: {"retryDelay": "17s"}."""
    delays = (detail["retryDelay"] for detail in details if isinstance(detail.get("retryDelay"), str))
    return next((_seconds(delay.removesuffix("s")) for delay in delays), None)


def _is_daily(details: list[JsonObject]) -> bool:
    """QuotaFailure: {"violations": [{"quotaId": "…PerDay…"}]}."""
    return any("perday" in json.dumps(detail.get("violations")).lower() for detail in details)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """retry-after-ms, or Retry-After as seconds or as a date."""
    if (milliseconds := _seconds(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _seconds(text)
    if seconds is not None or not text:
        return seconds
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0), MAX_RETRY_AFTER)
    except (ValueError, OverflowError):
        return None


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return min(seconds, MAX_RETRY_AFTER) if math.isfinite(seconds) and seconds >= 0 else None


def _is_html(body: bytes) -> bool:
    return body.lstrip()[:1] == b"<"
