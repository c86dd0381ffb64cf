"""The error codes of Workers AI and AI Gateway, in every envelope they come in."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.failures import failed_inside, failed_status, raised_status
from edge_agent.models.source import Source

SOURCE = Source.of(Endpoint(provider="@cf", base_url="https://workers-binding.ai"), "meta/llama")
# code, status, kind, whether to try again; from developers.cloudflare.com/workers-ai/platform/errors and ai-gateway
CODES: list[tuple[int, int, str, bool]] = [
    (5007, 400, "not-found", False), (5004, 400, "bad-request", False), (5006, 400, "bad-request", False),
    (3003, 400, "bad-request", False), (3039, 400, "bad-request", False), (5018, 403, "unauthorized", False),
    (3041, 403, "unauthorized", False), (5016, 403, "unauthorized", False), (3023, 403, "unauthorized", False),
    (5019, 405, "not-found", False), (5005, 405, "not-found", False), (3042, 404, "not-found", False),
    (3006, 413, "context-overflow", False), (3007, 408, "timeout", True), (3008, 408, "timeout", True),
    (3036, 429, "quota", False), (3040, 429, "overloaded", True), (8006, 400, "bad-request", False),
    (7003, 404, "not-found", False), (2021, 402, "quota", False), (2001, 400, "bad-request", False),
    (2009, 401, "unauthorized", False), (2016, 424, "refused", False), (2017, 424, "refused", False),
    (7013, 503, "unavailable", True),
]  # fmt: skip
Wrapped = Callable[[int, str], Any]
ENVELOPES: dict[str, Wrapped] = {
    "errors": lambda code, words: {"success": False, "errors": [{"code": code, "message": words}], "result": None},
    "error as a list": lambda code, words: {"success": False, "error": [{"code": code, "message": words}]},
    "error": lambda code, words: {"error": {"code": code, "message": words}},
    "internalCode": lambda code, words: {"internalCode": code, "name": "AiError", "description": words},
    "text": lambda code, words: {"error": f"{code}: {words}"},
    "raised": lambda code, words: {"name": "InferenceUpstreamError", "message": f"AiError: {code}: {words}"},
}


def failure(status: int, body: Any, **headers: str) -> ModelError:
    return failed_status(SOURCE, status, headers, json.dumps(body).encode())


@pytest.mark.parametrize("envelope", ENVELOPES)
@pytest.mark.parametrize("code, status, kind, retryable", CODES)
def test_a_code_says_how_it_failed_in_every_envelope(
    code: int, status: int, kind: str, retryable: bool, envelope: str
) -> None:
    body = ENVELOPES[envelope](code, "the words")
    for error in (failure(status, body), failed_inside(SOURCE, body)):
        assert (error.kind, error.retryable) == (kind, retryable)
        assert "the words" in error.message


@pytest.mark.parametrize("code, status, kind, retryable", CODES)
def test_an_error_that_a_binding_raises_has_the_status_of_its_code(
    code: int, status: int, kind: str, retryable: bool
) -> None:
    for text in (f"{code}: words", f"InferenceUpstreamError: {code}: words", f"4711: AiError: {code}: words"):
        assert raised_status(text) == status
    assert raised_status("Network connection lost.") == raised_status("1234: words") == 500


def test_the_free_share_of_the_day_comes_again_at_midnight_and_not_before() -> None:
    error = failure(429, {"errors": [{"code": 3036, "message": "used up"}]}, **{"retry-after": "5"})
    assert not error.retryable
    assert "00:00 UTC" in error.message


def test_capacity_comes_back_after_the_time_that_is_said() -> None:
    error = failure(429, {"internalCode": 3040, "description": "busy"}, **{"retry-after": "7"})
    assert (error.retryable, error.retry_after) == (True, 7)


def test_json_that_does_not_fit_is_asked_for_again() -> None:
    error = failure(400, {"errors": [{"code": 5024, "message": "JSON Mode couldn't be met"}]})
    assert (error.kind, error.retryable) == ("bad-answer", True)


def test_a_code_of_somebody_else_says_nothing() -> None:
    assert failure(500, {"error": {"code": 3036, "message": "line 3036"}}).kind == "unavailable"
