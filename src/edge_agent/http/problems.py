"""Whatever goes wrong, as RFC 9457 problem details: a stable code, a sentence, the field; never a traceback."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from edge_agent.core.errors import ConfigError, Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.wire.refused import path_of, sentence_of

MEDIA_TYPE = "application/problem+json"
_MAX_SHOWN = 120
_CODES = {400: "bad_request", 413: "body_too_large"}
_WHERE: Mapping[str, Literal["body", "path", "query", "header"]] = {
    "body": "body",
    "path": "path",
    "query": "query",
    "header": "header",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole HTTP answer, in no framework's dialect."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict[str, str])


def answer_for(error: Exception) -> Answer:
    """The problem an exception becomes. What is not foreseen is a 500 that says nothing of its cause."""
    match error:
        case Refusal():
            return problem(error.status, error.code, error.message, **error.more)
        case ConfigError():
            more = {"setting": error.setting, "fault": error.fault, "example": error.example}
            return problem(503, "configuration", f"This deployment is misconfigured. {error}", **more)
        case HTTPException():
            return _of_framework(error)
        case RequestValidationError():
            return _invalid(error.errors())
        case _:
            return problem(500, "internal", "Something failed inside the server; its log says what.")


def problem(status: int, code: str, detail: str, **more: Any) -> Answer:
    """`retry_after` (seconds) and `allow` (methods) become headers as well."""
    phrase = HTTPStatus(status).phrase
    content: JsonObject = {"type": "about:blank", "title": phrase, "status": status, "code": code, "detail": detail}
    headers = {"content-type": MEDIA_TYPE, "cache-control": "no-store", "x-content-type-options": "nosniff"}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    if "retry_after" in more:
        headers["retry-after"] = str(more["retry_after"])
    if "allow" in more:
        headers["allow"] = ", ".join(more["allow"])
    body = json.dumps({**content, **more}, ensure_ascii=False, default=str).encode("utf-8", "replace")
    return Answer(status=status, body=body, headers=headers)


def unreadable_json(fault: str) -> Refusal:
    """`fault` as the parser words it: what, then "at line 1 column 5"."""
    what, _, place = fault.rpartition(" at line ")
    position = re.fullmatch(r"(\d+) column (\d+)", place)
    if position is None:
        return Refusal(400, "malformed_json", f"The body is not JSON: {fault}.")
    line, column = (int(number) for number in position.groups())
    detail = f"The body is not JSON: {what} at line {line}, column {column}."
    return Refusal(400, "malformed_json", detail, line=line, column=column)


def _of_framework(error: HTTPException) -> Answer:
    code = _CODES.get(error.status_code, "error")
    return problem(error.status_code, code, f"{str(error.detail)[:_MAX_SHOWN]}.".replace("..", "."))


def _invalid(errors: Sequence[Mapping[str, Any]]) -> Answer:
    told = [_field_problem(found) for found in errors[:20]]
    first = told[0]
    place = f"`{first['field']}`" if first["field"] else f"The {first['where']}"
    return problem(422, "invalid_request", f"{place} {first['message']}.", field=first["field"], errors=told)


def _field_problem(found: Mapping[str, Any]) -> JsonObject:
    head, *path = path_of(found["loc"])
    return {"field": ".".join(path)[:_MAX_SHOWN], "where": _WHERE.get(head, "body"), "message": sentence_of(found)}
