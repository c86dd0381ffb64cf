"""Statuses and bodies of refusals."""

import json
import os
from email.utils import formatdate
from pathlib import Path
from time import time
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.error_bodies import MAX_WAIT
from edge_agent.models.failures import failed_status
from edge_agent.models.source import MAX_TOLD, Source

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
KEY = "sk-very-secret-key"
ENDPOINT = Endpoint(provider="test", base_url=f"https://u:p@models.example.com/v1?k={KEY}", key=KEY)
SOURCE = Source.of(ENDPOINT, "some/model")


def failure(status: int, body: Any = None, **headers: str) -> ModelError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return failed_status(SOURCE, status, {name.replace("_", "-"): value for name, value in headers.items()}, data)


@pytest.mark.parametrize(
    "status, kind, retryable",
    [
        (400, "bad-request", False), (401, "unauthorized", False), (402, "quota", False), (403, "unauthorized", False),
        (404, "not-found", False), (405, "not-found", False), (408, "timeout", True), (409, "unavailable", True),
        (413, "context-overflow", False), (418, "bad-request", False), (422, "bad-request", False),
        (429, "rate-limited", True), (500, "unavailable", True), (502, "unavailable", True), (503, "unavailable", True),
        (504, "unavailable", True), (529, "overloaded", True), (307, "bad-answer", False),
    ],
)  # fmt: skip
def test_a_status_says_how_it_failed_and_whether_to_try_again(status: int, kind: str, retryable: bool) -> None:
    error = failure(status, {"error": {"message": "It is so."}})
    assert (error.kind, error.retryable) == (kind, retryable)
    assert "test/some/model at models.example.com" in error.message
    assert f'HTTP {status}: "It is so."' in error.message
    assert error.message.endswith(".")


@pytest.mark.parametrize(
    "status, body, kind, retryable",
    [
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context-overflow", False),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}, "context-overflow", False),
        (400, {"error": {"message": "exceeds the available context size", "type": "exceed_context_size_error"}},
         "context-overflow", False),
        (422, {"message": "Prompt is too long"}, "context-overflow", False),
        (429, {"error": {"message": "too many tokens", "code": "rate_limit_exceeded"}}, "rate-limited", True),
        (429, {"error": {"message": "x", "code": "insufficient_quota"}}, "quota", False),
        (429, {"errors": [{"code": 3036, "message": "daily free allocation used up"}]}, "quota", False),
        (429, {"errors": [{"code": 3040, "message": "Capacity temporarily exceeded"}]}, "overloaded", True),
        (503, {"error": {"message": "The engine is overloaded"}}, "overloaded", True),
        (424, {"error": [{"code": 2016, "message": "Prompt blocked"}]}, "refused", False),
        (422, {"internalCode": 2017, "name": "AiGatewayError", "description": "blocked"}, "refused", False),
        (400, {"error": {"message": "x", "code": "tool_use_failed", "failed_generation": "{"}}, "bad-answer", True),
        (403, {"error": {"message": "prompt is too long"}}, "unauthorized", False),
    ],
)  # fmt: skip
def test_the_words_of_a_provider_say_more_than_the_status(status: int, body: Any, kind: str, retryable: bool) -> None:
    error = failure(status, body)
    assert (error.kind, error.retryable) == (kind, retryable)


ENVELOPES: list[Any] = [
        {"error": {"message": "the words"}}, {"error": "the words"}, {"errors": [{"message": "the words"}]},
        {"error": [{"message": "the words"}]}, [{"error": {"message": "the words"}}], {"detail": "the words"},
        {"detail": [{"msg": "the words", "loc": []}]}, {"message": "the words"}, {"error": "x", "message": "the words"},
        {"internalCode": 5007, "name": "n", "description": "the words"}, "the words", b"the words", b"\n the  words",
        {"error": {"message": "Provider returned error", "metadata": {"raw": "the words"}}},
]  # fmt: skip


@pytest.mark.parametrize("body", ENVELOPES)
def test_every_envelope_gives_the_words(body: Any) -> None:
    assert "the words" in failure(400, body).message


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{}", b"[[[[[[1]]]]]]", b"[" * 100_000, {"error": {"message": 3}}, b"\xff"]
)
def test_a_body_without_words_is_no_fault(body: Any) -> None:
    assert failure(500, body).kind == "unavailable"


def test_an_html_page_is_told_and_not_quoted() -> None:
    error = failure(502, b"<html><h1>Bad gateway</h1></html>")
    assert "HTML page" in error.message
    assert "<h1>" not in error.message


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"retry_after": "7"}, 7.0), ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "-1"}, None), ({"retry_after": "nan"}, None), ({"retry_after": "inf"}, None),
        ({"retry_after": "soon"}, None), ({"retry_after": ""}, None), ({"retry_after": "1e12"}, MAX_WAIT),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0), ({}, None),
        ({"retry_after": "Fri, 31 Dec 9999 23:59:59 GMT"}, MAX_WAIT),
    ],
)  # fmt: skip
def test_the_time_to_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert failure(429, {}, **headers).retry_after == seconds


def test_the_time_to_wait_may_be_a_date() -> None:
    waits = failure(429, {}, retry_after=formatdate(time() + 100, usegmt=True)).retry_after
    assert waits is not None
    assert 90 < waits <= 100


@pytest.mark.parametrize(
    "status, header, retryable",
    [(500, "false", False), (500, "False", False), (400, "true", True), (400, "perhaps", False), (500, "", True)],
)
def test_a_provider_s_word_on_trying_again_wins(status: int, header: str, retryable: bool) -> None:
    assert failure(status, {}, x_should_retry=header).retryable is retryable


def test_a_message_holds_no_key_no_header_and_no_part_of_the_address_but_the_host() -> None:
    endpoint = Endpoint(
        provider="p", base_url="https://h.example", key=KEY, headers={"x-auth": "Bearer other-secret-0815"}
    )
    words = f"{'x' * (MAX_TOLD - 5)}{KEY} and other-secret-0815 {KEY}"
    told = failed_status(Source.of(endpoint, "m"), 401, {}, json.dumps({"message": words}).encode()).message
    assert "sk-v" not in told
    assert "other" not in told
    assert "u:p" not in failure(401).message


def test_long_words_are_clipped() -> None:
    assert len(failure(400, {"message": "x " * 5000}).message) < MAX_TOLD + 200


@pytest.mark.parametrize("name", ["google-429-retry-info.json", "reasoning-model-legacy-parameter-error.json"])
def test_recorded_error_bodies_become_typed_errors(name: str) -> None:
    path = FIXTURES / name
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    error = failure(429 if "429" in name else 400, path.read_bytes())
    if "429" in name:
        assert error.kind in ("rate-limited", "quota")
        assert error.retry_after is not None
    else:
        assert error.kind == "bad-request"
        assert "max_completion_tokens" in error.message
