"""Refusals of Gemini as typed errors."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.failures import failed_status
from edge_agent.models.source import Source

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
SOURCE = Source.of(Endpoint(provider="google", base_url="https://g.example.com/v1beta"), "gemini-2.5-flash")
BILLING = "You exceeded your current quota, please check your plan and billing details."
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17.5s"}


def failure(status: int, body: Any) -> ModelError:
    return failed_status(SOURCE, status, {}, body if isinstance(body, bytes) else json.dumps(body).encode())


def told(code: int, message: str, status: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


def test_the_recorded_refusal_says_when_to_try_again() -> None:
    path = FIXTURES / "google-429-retry-info.json"
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    error = failure(429, path.read_bytes())
    assert (error.kind, error.retryable, error.retry_after) == ("rate-limited", True, 34.4)
    assert "check your plan" in error.message


MINUTE, DAY = "GenerateRequestsPerMinutePerProjectPerModel", "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
CASES: list[tuple[int, Any, str, bool, float | None]] = [
    (429, told(429, "Resource has been exhausted", "RESOURCE_EXHAUSTED"), "rate-limited", True, None),
    (429, told(429, BILLING, "RESOURCE_EXHAUSTED", quota(MINUTE), RETRY), "rate-limited", True, 17.5),
    (429, told(429, BILLING, "RESOURCE_EXHAUSTED", quota(DAY), RETRY), "quota", False, 17.5),
    (429, told(429, BILLING, "RESOURCE_EXHAUSTED"), "quota", False, None),
    (503, told(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"), "overloaded", True, None),
    (500, told(500, "An internal error has occurred.", "INTERNAL"), "unavailable", True, None),
    (504, told(504, "Deadline expired.", "DEADLINE_EXCEEDED"), "unavailable", True, None),
    (400, told(400, "API key not valid. Please pass a valid one.", "INVALID_ARGUMENT"), "unauthorized", False, None),
    (400, told(400, "Function call is missing a thought_signature", "INVALID_ARGUMENT"), "bad-request", False, None),
    (400, told(400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", "INVALID_ARGUMENT"),
     "context-overflow", False, None),
    (403, told(403, "Permission denied", "PERMISSION_DENIED", None, 3), "unauthorized", False, None),
    (404, told(404, "models/x is not found for API version v1beta", "NOT_FOUND"), "not-found", False, None),
]  # fmt: skip


@pytest.mark.parametrize("in_a_list", [False, True])
@pytest.mark.parametrize("status, body, kind, retryable, after", CASES)
def test_a_refusal_is_told_by_kind_alone_or_in_a_list(
    status: int, body: Any, kind: str, retryable: bool, after: float | None, *, in_a_list: bool
) -> None:
    error = failure(status, [body] if in_a_list else body)
    assert (error.kind, error.retryable, error.retry_after) == (kind, retryable, after)
    assert body["error"]["message"] in error.message
