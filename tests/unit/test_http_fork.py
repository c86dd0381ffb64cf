"""Fork, replay and the state at a record, as the API takes and answers them."""

import json
from typing import Any

import pytest

from edge_agent.core.events import RunCreated, RunStarted
from edge_agent.core.limits import Limits
from edge_agent.core.ports import Record
from edge_agent.http.routing import MOST_LOG
from edge_agent.wire import export
from tests.unit.http_fakes import TOKEN, Api, problem

NDJSON = "application/x-ndjson"


async def api_with_a_run() -> Api:
    api = Api()
    await api.post("/v1/runs", {"input": "x", "run_id": "source"})
    return api


def log(*more: Record) -> bytes:
    created = RunCreated(version=1, input="go", agent_name="assistant", models=("m",), limits=Limits())
    first = Record(seq=1, key="run", batch=1, life=0, by="note", at=0, agent="assistant", event=created, money={})
    return "".join(f"{line}\n" for line in export.lines("r", [first, *more], ())).encode()


def started() -> Record:
    event = RunStarted(reason="created")
    return Record(seq=2, key="life/0", batch=2, life=0, by="note", at=0, agent="assistant", event=event, money={})


# -- fork
async def test_a_fork_is_answered_like_a_new_run_and_names_the_record_it_was_rounded_to() -> None:
    api = await api_with_a_run()
    answer = await api.post("/v1/runs/source/fork", {"at": 7, "changes": {"model": "a/b"}, "run_id": "mine"})
    assert answer.status_code == 202
    content = answer.json()
    assert answer.headers["location"] == content["links"]["self"] == "/v1/runs/mine"
    assert content["forked_from"] == {"run_id": "source", "at": 8, "inherited": 7}
    assert content["stream_token"].startswith("er1.mine.")
    _, (run_id, method, payload) = api.runs.asked
    assert (run_id, method) == ("mine", "fork")
    assert payload["changes"] == {"model": "a/b"}
    assert (payload["source"], payload["at"], payload["idempotent"]) == ("source", 7, False)


async def test_the_same_key_makes_one_fork_and_another_body_or_source_is_a_conflict() -> None:
    api = await api_with_a_run()
    await api.post("/v1/runs", {"input": "x", "run_id": "other"})
    first = await api.post("/v1/runs/source/fork", {"at": 3}, idempotency_key="k")
    again = await api.post("/v1/runs/source/fork", {"at": 3, "changes": {}}, idempotency_key="k")
    assert first.json() == again.json()
    for path, body in (("source", {"at": 4}), ("other", {"at": 3})):
        answer = await api.post(f"/v1/runs/{path}/fork", body, idempotency_key="k")
        problem(answer, 409, "idempotency_conflict")
    problem(await api.post("/v1/runs", {"input": "x"}, idempotency_key="k"), 409, "idempotency_conflict")


async def test_a_fork_of_nothing_is_404_and_one_under_a_taken_id_409() -> None:
    api = await api_with_a_run()
    problem(await api.post("/v1/runs/nobody/fork", {"at": 1}), 404, "unknown_run")
    problem(await api.post("/v1/runs/source/fork", {"at": 1, "run_id": "source"}), 409, "run_exists")


@pytest.mark.parametrize(
    "body,field",
    [
        ({}, "at"),
        ({"at": 0}, "at"),
        ({"at": -1}, "at"),
        ({"at": "3"}, "at"),
        ({"at": 3.5}, "at"),
        ({"at": 3, "changes": {"input": "other"}}, "changes.input"),
        ({"at": 3, "changes": {"instructions": "other"}}, "changes.instructions"),
        ({"at": 3, "changes": {"model": "GPT 5"}}, "changes.model"),
        ({"at": 3, "changes": {"models": {"chef": "a/b"}}}, "changes.models.chef"),
        ({"at": 3, "changes": {"limits": {"max_steps": 0}}}, "changes.limits.max_steps"),
        ({"at": 3, "changes": {"approval": "never"}}, "changes.approval"),
        ({"at": 3, "run_id": "a b"}, "run_id"),
        ({"at": 3, "change": {}}, "change"),
    ],
)
async def test_what_a_fork_gets_wrong_is_named(body: dict[str, Any], field: str) -> None:
    answer = await (await api_with_a_run()).post("/v1/runs/source/fork", body)
    assert problem(answer, 422, "invalid_request")["field"] == field


async def test_a_run_token_forks_and_replays_nothing() -> None:
    api = Api("https://agent.example", TOKEN=TOKEN)
    own = {"authorization": f"Bearer {TOKEN}"}
    begun = (await api.post("/v1/runs", {"input": "x", "run_id": "r1"}, **own)).json()
    shown = {"authorization": f"Bearer {begun['stream_token']}"}
    problem(await api.post("/v1/runs/r1/fork", {"at": 1}, **shown), 403, "token_scope")
    problem(await api.post("/v1/replay", log(), content_type=NDJSON, **shown), 403, "token_scope")
    assert (await api.post("/v1/replay", log(), content_type=NDJSON, **own)).status_code == 200


# -- the state at a record
async def test_the_state_is_asked_for_at_a_record_and_with_the_conversation() -> None:
    api = await api_with_a_run()
    for path, asked in (
        ("", {}),
        ("?at=5", {"at": 5}),
        ("?include=messages", {"messages": True}),
        ("?at=5&include=messages", {"at": 5, "messages": True}),
    ):
        assert (await api.get(f"/v1/runs/source{path}")).status_code == 200
        assert api.runs.asked[-1] == ("source", "state", asked)


@pytest.mark.parametrize("query", ["at=0", "at=x", "at=1.5", "include=secrets"])
async def test_a_record_that_cannot_be_is_refused(query: str) -> None:
    problem(await (await api_with_a_run()).get(f"/v1/runs/source?{query}"), 422, "invalid_request")


# -- replay
async def test_a_log_is_taken_as_lines_or_as_json_and_the_first_difference_is_answered() -> None:
    api = Api()
    as_array = json.dumps([json.loads(line) for line in log().splitlines()]).encode()
    for body, kind in ((log(), NDJSON), (log(), f"{NDJSON}; charset=utf-8"), (as_array, "application/json")):
        answer = await api.post("/v1/replay", body, content_type=kind)
        assert answer.json() == {"run_id": "r", "agent": "assistant", "records": 1, "differences": []}
    answer = await api.post("/v1/replay", log(started()), content_type=NDJSON)
    (found,) = answer.json()["differences"]
    assert found == {"kind": "key", "key": "s1/r1", "seq": 2, "message": "other", "asked": "s1/r9"}


async def test_a_log_may_be_larger_than_other_bodies_up_to_its_own_cap() -> None:
    api = Api()
    large = log() + b" " * 2_000_000
    assert (await api.post("/v1/replay", large, content_type=NDJSON)).status_code == 200
    too_large = await api.post("/v1/replay", log() + b" " * MOST_LOG, content_type=NDJSON)
    assert problem(too_large, 413, "body_too_large")["limit"] == MOST_LOG
    answer = await api.post("/v1/runs", b'{"input": "x"}' + b" " * 2_000_000, content_type="application/json")
    problem(answer, 413, "body_too_large")


async def test_what_is_no_log_is_refused() -> None:
    api = Api()
    problem(await api.post("/v1/replay", log(), content_type="text/plain"), 415, "unsupported_media_type")
    problem(await api.post("/v1/replay", log()), 415, "unsupported_media_type")
    problem(await api.post("/v1/replay", b"nonsense", content_type=NDJSON), 422, "not_a_log")
    problem(await api.post("/v1/replay"), 422, "not_a_log")
    problem(await api.post("/v1/runs", log(), content_type=NDJSON), 415, "unsupported_media_type")
