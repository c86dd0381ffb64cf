"""/v1/runs: what starts a run, what is refused, and what its own object is asked."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from edge_agent.core import keys
from tests.unit.http_fakes import TOKEN, Api, problem, state_of


# -- start
async def test_a_run_is_started_and_the_answer_says_where_to_follow_it() -> None:
    api = Api()
    answer = await api.post("/v1/runs", {"input": "What is 17 * 23?", "limits": {"max_steps": 3}})
    assert answer.status_code == 202
    started = answer.json()
    own = f"/v1/runs/{started['run_id']}"
    assert started["links"] == {"self": own, "events": f"{own}/events", "ws": f"{own}/ws"}
    assert (started["status"], started["agent"], answer.headers["location"]) == ("queued", "assistant", own)
    ((run_id, method, payload),) = api.runs.asked
    assert (run_id, method, payload["idempotent"]) == (started["run_id"], "create", False)
    assert payload["created"]["input"] == "What is 17 * 23?"
    assert payload["created"]["limits"]["max_steps"] == 3
    assert payload["created"]["type"] == "run.created"


async def test_the_stream_token_opens_this_run_from_anywhere_and_no_other() -> None:
    api = Api("https://agent.example", TOKEN=TOKEN)
    started = (await api.post("/v1/runs", {"input": "x", "run_id": "r1"}, authorization=f"Bearer {TOKEN}")).json()
    shown = f"Bearer {started['stream_token']}"
    assert (await api.get("/v1/runs/r1", authorization=shown)).status_code == 200
    assert (await api.post("/v1/runs/r1/cancel", authorization=shown)).status_code == 200
    problem(await api.get("/v1/runs/r2", authorization=shown), 403, "token_scope")
    problem(await api.post("/v1/runs/r1/resume", authorization=shown), 403, "token_scope")
    problem(await api.post("/v1/runs", {"input": "x"}, authorization=shown), 403, "token_scope")


async def test_the_same_key_and_body_return_the_same_run_and_another_body_is_a_conflict() -> None:
    api = Api()
    first = await api.post("/v1/runs", {"input": "x"}, idempotency_key="k-1")
    again = await api.post("/v1/runs", {"input": "x", "agent": None}, idempotency_key="k-1")
    assert first.json() == again.json()
    problem(await api.post("/v1/runs", {"input": "y"}, idempotency_key="k-1"), 409, "idempotency_conflict")
    other = await api.post("/v1/runs", {"input": "x"}, idempotency_key="k-2")
    assert other.json()["run_id"] != first.json()["run_id"]


async def test_two_callers_may_use_the_same_key() -> None:
    api = Api(TOKEN="a:token-of-a,b:token-of-b")
    ids = {
        (await api.post("/v1/runs", {"input": "x"}, authorization=f"Bearer token-of-{name}", idempotency_key="k")).text
        for name in "ab"
    }
    assert len(ids) == 2


async def test_a_taken_run_id_is_a_conflict() -> None:
    api = Api()
    assert (await api.post("/v1/runs", {"input": "x", "run_id": "mine"})).json()["run_id"] == "mine"
    problem(await api.post("/v1/runs", {"input": "x", "run_id": "mine"}), 409, "run_exists")


async def test_no_run_of_a_client_takes_the_id_of_a_subagent() -> None:
    api = Api()
    told = problem(
        await api.post("/v1/runs", {"input": "x", "run_id": keys.child("r1", "s1/r1/c0")}), 422, "invalid_request"
    )
    assert "that of a subagent" in told["detail"]
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    problem(await api.post("/v1/runs/r1/fork", {"at": 1, "run_id": "sub-1"}), 422, "invalid_request")


async def test_a_run_id_and_a_key_are_two_names_for_one_run() -> None:
    answer = await Api().post("/v1/runs", {"input": "x", "run_id": "mine"}, idempotency_key="k")
    assert problem(answer, 422, "invalid_request")["field"] == "run_id"


@pytest.mark.parametrize(
    "body,field",
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": " \n"}, "input"),
        ({"input": 5}, "input"),
        ({"input": ["x"]}, "input.0"),
        ({"input": "x", "inptu": "y"}, "inptu"),
        ({"input": "x", "agent": ""}, "agent"),
        ({"input": "x", "agent": "nobody"}, "agent"),
        ({"input": "x", "mode": "dreamy"}, "mode"),
        ({"input": "x", "model": "GPT 5"}, "model"),
        ({"input": "x", "run_id": "a b"}, "run_id"),
        ({"input": "x", "run_id": "a" * 129}, "run_id"),
        ({"input": "x", "run_id": "a\n"}, "run_id"),
        ({"input": "x", "limits": {"max_steps": 0}}, "limits.max_steps"),
        ({"input": "x", "limits": {"max_steps": "3"}}, "limits.max_steps"),
        ({"input": "x", "limits": {"max_stepz": 3}}, "limits.max_stepz"),
        ({"input": "x", "history": [{"role": "system", "text": "y"}]}, "history.0.role"),
        ({"input": "x", "history": [{"role": "user", "text": ""}]}, "history.0.text"),
        ({"input": "x", "metadata": []}, "metadata"),
        ({"input": "x", "metadata": {"k": "v" * 20_000}}, "metadata"),
        ([], ""),
        ("text", ""),
    ],
)
async def test_a_wrong_field_is_named_and_no_run_is_asked(body: Any, field: str) -> None:
    api = Api()
    answer = await api.client.post("/v1/runs", json=body)
    assert answer.json()["field"] == field
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert api.runs.asked == []


async def test_a_number_that_is_not_finite_is_refused() -> None:
    answer = await Api().post("/v1/runs", b'{"input": "x", "metadata": {"k": 1e999}}', content_type="application/json")
    assert problem(answer, 422, "invalid_request")["field"] == "metadata"


@pytest.mark.parametrize(
    "body,line,column",
    [
        (b'{"input"', 1, 8),
        (b'{\n"input": NaN}', 2, 10),
        (b"[" * 300, 1, 202),
        (b'{"input": "\\ud800"}', 1, 18),
        (b"\xff", 1, 1),
    ],
)
async def test_malformed_json_is_told_with_its_position(body: bytes, line: int, column: int) -> None:
    told = problem(await Api().post("/v1/runs", body, content_type="application/json"), 400, "malformed_json")
    assert (told["line"], told["column"]) == (line, column)


@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/json; charset=utf-16"]
)
async def test_a_body_that_is_not_declared_as_json_is_refused(kind: str) -> None:
    problem(await Api().post("/v1/runs", b'{"input": "x"}', content_type=kind), 415, "unsupported_media_type")


async def test_a_body_over_the_cap_is_refused_by_what_it_says_and_by_what_comes() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    api = Api(MAX_BODY="100000")
    answer = await api.post("/v1/runs", b" " * 100_001, content_type="application/json")
    assert problem(answer, 413, "body_too_large")["limit"] == 100_000
    json_type = {"content-type": "application/json"}
    problem(await api.client.post("/v1/runs", content=endless(), headers=json_type), 413, "body_too_large")
    assert (await api.post("/v1/runs", {"input": "x" * 99_000})).status_code == 202


@pytest.mark.parametrize("key", ["", "k" * 256, "tab\t"])
async def test_a_key_is_short_printable_text(key: str) -> None:
    answer = await Api().post("/v1/runs", {"input": "x"}, idempotency_key=key)
    assert problem(answer, 422, "invalid_request")["field"] == "Idempotency-Key"


# -- one run
async def test_state_cancel_resume_and_answer_are_asked_of_the_runs_own_object() -> None:
    api = Api()
    await api.post("/v1/runs", {"input": "x", "run_id": "r1"})
    assert (await api.get("/v1/runs/r1")).json() == state_of("r1")
    await api.post("/v1/runs/r1/cancel", {"reason": "enough"})
    await api.post("/v1/runs/r1/resume")
    await api.post("/v1/runs/r1/answers/s1/r1/c0", {"answer": "retry"})
    assert api.runs.asked[1:] == [
        ("r1", "state", {}),
        ("r1", "cancel", {"reason": "enough"}),
        ("r1", "resume", {"reason": None}),
        ("r1", "answer", {"question_id": "s1/r1/c0", "answer": "retry"}),
    ]


async def test_an_unknown_run_is_not_found() -> None:
    problem(await Api().get("/v1/runs/nobody"), 404, "unknown_run")


@pytest.mark.parametrize("run_id", ["a%20b", "a.b", "%C3%BC", "a" * 169])
async def test_an_impossible_run_id_is_refused_without_asking_any_object(run_id: str) -> None:
    api = Api()
    assert problem(await api.get(f"/v1/runs/{run_id}"), 422, "invalid_request")["field"] == "run_id"
    problem(await api.get(f"/v1/runs/{run_id}/events"), 422, "invalid_request")
    assert api.runs.asked == []


@pytest.mark.parametrize("path", ["/events", "/events?after=3&wait=false", "/ws", "/log", "/files/a.png"])
async def test_a_stream_that_got_here_says_where_it_belongs(path: str) -> None:
    problem(await Api().get(f"/v1/runs/r1{path}"), 421, "misdirected")


async def test_an_answer_needs_text() -> None:
    assert problem(await Api().post("/v1/runs/r1/answers/q", {}), 422, "invalid_request")["field"] == "answer"
