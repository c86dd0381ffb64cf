"""Whatever is sent, the API answers: never a 5xx, and every error is a problem."""

import asyncio
import json
from typing import Any

import httpx2
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.http_fakes import TOKEN, Api

API = Api()
TEXT = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["input", "agent", "mode", "model", "history", "limits", "metadata", "run_id", "answer", "reason"]
BODIES = st.binary(max_size=40) | (st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5) | JSON).map(
    lambda value: json.dumps(value).encode("utf-8", "surrogatepass")
)
SEGMENTS = st.sampled_from(
    ["v1", "runs", "r1", "events", "ws", "log", "files", "cancel", "resume", "answers", "agents"]
)
PATHS = (
    st.lists(SEGMENTS | TEXT.map(lambda text: text.encode("utf-8", "replace").hex()), max_size=6)
    .map("/".join)
    .map(lambda path: path.lstrip("/"))
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(["application/json", "application/json; charset=utf-8", "text/plain", ";", ""]),
        "authorization": st.sampled_from([f"Bearer {TOKEN}", "Bearer er1.r1.1.x", "Bearer", "Basic x", "\xff"]),
        "idempotency-key": st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=8),
        "origin": st.sampled_from(["null", "http://localhost:8787", "http://evil.example", "\xe9"]),
        "host": st.sampled_from(["localhost:8787", "localhost:8787", "127.0.0.1", "evil.example", "[::1", ""]),
        "sec-websocket-protocol": st.sampled_from(["edge-agent.v1, token.er1.r1.1.x", "token.x", ","]),
        "last-event-id": TEXT.map(lambda text: text.encode("ascii", "replace").decode()).filter(str.isprintable),
    },
)
METHODS = st.sampled_from(["POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "BREW"])
CLOSED = Api("https://agent.example", TOKEN=TOKEN, CORS="https://app.example")


async def send(api: Api, method: str, path: str, headers: dict[str, str], body: bytes) -> httpx2.Response:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return await api.client.request(method, f"/{path}", headers=raw, content=body)


def check(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and answer.request.method != "HEAD":
        assert answer.headers["content-type"] == "application/problem+json"
        content: dict[str, Any] = answer.json()
        assert {"type", "title", "status", "code", "detail"} <= set(content)
        assert content["status"] == answer.status_code


@given(METHODS, PATHS, HEADERS, BODIES)
def test_any_request_is_answered_and_every_error_is_a_problem(
    method: str, path: str, headers: dict[str, str], body: bytes
) -> None:
    for api in (API, CLOSED):
        check(asyncio.run(send(api, method, path, headers, body)))


@given(BODIES)
def test_any_body_of_a_start_is_a_run_or_a_problem(body: bytes) -> None:
    answer = asyncio.run(send(API, "POST", "v1/runs", {"content-type": "application/json"}, body))
    check(answer)
    assert answer.status_code in (202, 400, 409, 422)
