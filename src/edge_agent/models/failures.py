"""What a provider says when it fails, as a ModelError: how it failed, whether to try again, when, and what a person can
do. All providers in one place: gateways pass the errors of others on.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from edge_agent.core.errors import ModelError, ModelErrorKind
from edge_agent.core.model import ModelRequest
from edge_agent.models.error_bodies import (
    GUARDRAIL_CODES,
    MAX_WAIT,
    STATUS_OF_CODE,
    Told,
    is_html,
    read,
    seconds,
    told_in,
)
from edge_agent.models.source import Source


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
_BAD_CALL_CODES = ("tool_use_failed", "malformed_function_call")
_RULE_OF_CODE: Mapping[str, _Rule] = {
    "3036": _USED_UP,
    "3040": _OVERLOADED,
    "3042": _RULES[404],
    "5007": _RULES[404],
    "5016": _NOT_ACCEPTED,
    "8006": _TOO_SHORT,
}


def failed_status(source: Source, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The error of an answer whose status is not 2xx."""
    told = told_in(body)
    rule = _rule(status, told)
    retryable = {"true": True, "false": False}.get(headers.get("x-should-retry", "").lower(), rule.retryable)
    retry_after = _retry_after(headers) if told.retry_after is None else told.retry_after
    words = source.quoted(told.message) or ("; the body is an HTML page" if is_html(body) else "")
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
    told = read(error)
    rule = _rule(told.status, told)
    what = f"{rule.what} (an error inside its answer{source.quoted(told.message)})"
    return source.error(rule.kind, what, rule.remedy, retryable=rule.retryable, retry_after=told.retry_after)


def raised_status(message: str) -> int:
    """The HTTP status of an error that a binding raised as `<code>: <message>`."""
    return read(message).status


def _rule(status: int, told: Told) -> _Rule:
    """What the words say, else what the status says."""
    if 300 <= status < HTTPStatus.BAD_REQUEST:  # noqa: PLR2004 (3xx)
        return _REDIRECT
    by_status = _UNAVAILABLE if status >= HTTPStatus.INTERNAL_SERVER_ERROR else _BAD_REQUEST
    by_code = _RULE_OF_CODE.get(told.code) if status == STATUS_OF_CODE.get(told.code) else None
    return by_code or _by_words(status, told) or _RULES.get(status, by_status)


def _by_words(status: int, told: Told) -> _Rule | None:
    text = told.text
    busy = status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    cases = (
        (_BAD_CALL, told.code in _BAD_CALL_CODES),
        (_NO_JSON, "json mode couldn't be met" in text),
        (_BLOCKED, status in _GUARDRAIL_STATUSES and (told.code in GUARDRAIL_CODES or "guardrail" in text)),
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


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """retry-after-ms, or Retry-After as seconds or as a date."""
    if (milliseconds := seconds(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    asked = seconds(text)
    if asked is not None or not text:
        return asked
    try:
        return min(max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0), MAX_WAIT)
    except (ValueError, OverflowError):
        return None
