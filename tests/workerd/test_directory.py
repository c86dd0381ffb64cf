"""What spans runs, in real workerd: the list, what they used, deletion, runs that continue others, the cap."""

import shutil
import sqlite3
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running
from tests.workerd.client import Api, Event, events_of, find, until
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
TOKENS = ("input", "cached", "cache_write", "output", "reasoning")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Server]:
    """One that nobody else starts runs on."""
    state, given = tmp_path_factory.mktemp("directory"), variables(model_server, tool_server)
    with serve(state=state, overlay=HERE / "worker", variables=given) as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with Api(server.url) as client:
        yield client


def page(api: Api, **asked: Any) -> Event:
    answer = api.http.get("/v1/runs", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(api: Api, **asked: Any) -> list[Event]:
    """All runs, page by page, or those after a cursor."""
    runs: list[Event] = []
    while True:
        answer = page(api, **asked)
        runs += answer["runs"]
        if "cursor" not in answer:
            return runs
        asked["cursor"] = answer["cursor"]


def listed_as(api: Api, run_id: str, status: str) -> Event:
    """The run in the list, as soon as it is there with this status."""
    return until(lambda: listed(api, run_id), lambda found: found and found[0]["status"] == status)[0]


def listed(api: Api, run_id: str) -> list[Event]:
    return [run for run in pages(api, limit=100) if run["run_id"] == run_id]


def twenty(api: Api) -> list[str]:
    started = [
        api.start(f"task {number}", model="rounds-2" if number % 2 else "text", agent="counter", metadata={"n": number})
        for number in range(19)
    ]
    started.append(api.start("the last one", model="text", agent="careful"))
    for run_id in started:
        api.ended(run_id)
        listed_as(api, run_id, "completed")
    return started


def test_twenty_runs_are_listed_newest_first_filtered_and_paged_and_what_they_used_adds_up(api: Api) -> None:
    started = twenty(api)
    runs = page(api, limit=100)["runs"]
    assert [run["run_id"] for run in runs] == started[::-1]
    assert (runs[0]["title"], runs[0]["agent"], runs[0]["stop_reason"]) == ("the last one", "careful", "stop")
    assert runs[1]["metadata"] == {"n": 18}
    assert runs[0]["created_at"] <= runs[0]["updated_at"]

    first = page(api, limit=7)
    newer = api.start("came in between", model="text", agent="careful")
    api.ended(newer)
    listed_as(api, newer, "completed")
    rest = pages(api, limit=7, cursor=first["cursor"])
    assert [run["run_id"] for run in (*first["runs"], *rest)] == started[::-1]

    careful = page(api, agent="careful")["runs"]
    assert [run["run_id"] for run in careful] == [newer, started[-1]]
    assert page(api, status="failed")["runs"] == []
    assert len(pages(api, status="completed", agent="counter", limit=6)) == 19
    _usage_is_the_sum_of_the_states(api, [*started, newer])


def _usage_is_the_sum_of_the_states(api: Api, started: list[str]) -> None:
    states = [api.state(run_id) for run_id in started]
    sums: dict[str, Counter[str]] = {}
    for state in states:
        for name in ("", state["agent"]):
            sums.setdefault(name, Counter()).update({kind: state["usage"][kind] for kind in TOKENS}, runs=1)
    told = api.http.get("/v1/usage", params={"by": "agent"}).json()
    assert sums[""]["output"] > 0
    assert {kind: told["total"][kind] for kind in ("runs", *TOKENS)} == {
        kind: sums[""][kind] for kind in ("runs", *TOKENS)
    }
    assert told["total"]["cost_usd"] == pytest.approx(sum(state.get("cost_usd", 0) for state in states))
    assert {group["name"]: group["output"] for group in told["groups"]} == {
        name: sums[name]["output"] for name in ("counter", "careful")
    }
    today = datetime.now(UTC).date()
    by_day = api.http.get("/v1/usage", params={"by": "day", "since": today.isoformat()}).json()
    assert by_day["total"] == told["total"]
    assert [group["name"] for group in by_day["groups"]] == [today.isoformat()]
    by_model = api.http.get("/v1/usage", params={"by": "model"}).json()
    assert sum(group["output"] for group in by_model["groups"]) == told["total"]["output"]
    assert api.http.get("/v1/usage", params={"since": "2999-01-01"}).json()["total"]["runs"] == 0


def test_a_run_is_listed_as_soon_as_its_start_is_answered(api: Api) -> None:
    run_id = api.start("slow", model="slow-text-900", agent="counter")
    assert page(api, limit=1)["runs"][0]["run_id"] == run_id
    api.post(f"/v1/runs/{run_id}/cancel")
    assert listed_as(api, run_id, "cancelled")["stop_reason"] == "cancelled"


@pytest.mark.parametrize("query", ["status=odd", "limit=0", "limit=101", "cursor=x", "cursor=MTIz"])
def test_a_wrong_question_about_runs_names_its_field(api: Api, query: str) -> None:
    answer = api.http.get(f"/v1/runs?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["field"] == query.partition("=")[0]
    assert api.http.get("/v1/usage?by=moon").status_code == 422
    assert api.http.get("/v1/usage?since=yesterday").json()["field"] == "since"


# -- deletion
OWN = "/v1/runs/{run_id}"
ROUTES: dict[tuple[str, str], Any] = {
    ("GET", OWN): None,
    ("GET", f"{OWN}/events"): None,
    ("GET", f"{OWN}/ws"): None,
    ("GET", f"{OWN}/log"): None,
    ("GET", f"{OWN}/calls"): None,
    ("GET", f"{OWN}/files/{{name}}"): None,
    ("POST", f"{OWN}/cancel"): {},
    ("POST", f"{OWN}/resume"): {},
    ("POST", f"{OWN}/steps/current/cancel"): {},
    ("POST", f"{OWN}/subagents/{{call_id}}/cancel"): {},
    ("POST", f"{OWN}/messages"): {"text": "x"},
    ("POST", f"{OWN}/answers/{{question_id}}"): {"answer": "x"},
    ("GET", f"{OWN}/approvals/{{call_id}}"): None,
    ("POST", f"{OWN}/approvals/{{call_id}}"): {"approved": True},
    ("PUT", f"{OWN}/approval-mode"): {"mode": "read-only"},
    ("POST", f"{OWN}/fork"): {"at": 1},
}


def gone(api: Api, run_id: str) -> None:
    """Every path of the run says so, and none of them makes it again."""
    described = api.http.get("/openapi.json").json()["paths"]
    there_are = {(method.upper(), path) for path, item in described.items() if "{run_id}" in path for method in item}
    assert there_are == {*ROUTES, ("DELETE", OWN)}, "each route of a run is asked here"
    answers = [
        api.http.request(method, path.replace("{run_id}", run_id).replace("{", "").replace("}", ""), json=body)
        for (method, path), body in ROUTES.items()
    ]
    kept = api.start("another run", model="text", agent="counter")
    api.ended(kept)
    answers += [
        api.http.get(f"/v1/runs/{run_id}/events?wait=false"),
        api.post("/v1/runs", {"input": "again", "run_id": run_id}),
        api.post("/v1/runs", {"input": "again", "continues": run_id}),
        api.post(f"/v1/runs/{kept}/fork", {"at": 2, "run_id": run_id}),
    ]
    for answer in answers:
        said = (answer.status_code, answer.json()["code"])
        assert said == (410, "run_deleted"), (answer.request.method, answer.request.url)


def unlisted(api: Api, run_id: str) -> None:
    until(lambda: listed(api, run_id), lambda found: not found)


def left_of(state: Path, run_id: str, secret: str) -> dict[str, int]:
    """The rows of each table of the objects that hold a tombstone; the run must be in no other object."""
    rows: Counter[str] = Counter()
    for path in (state / "storage").rglob("*.sqlite"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            names = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
            for name in names:
                found = database.execute(f'select * from "{name}"').fetchall()
                if name != "forgotten":
                    assert secret not in str(found)
                    assert f"'{run_id}'" not in str(found), (path, name)
                if "tombstone" in names and not name.startswith("_cf_"):
                    rows[name] += len(found)
        database.close()
    return dict(rows)


def test_a_deleted_run_is_gone_from_every_path_the_list_and_the_storage_but_what_it_used_counts(
    api: Api, server: Server
) -> None:
    run_id = api.start("a secret task", model="rounds-2", agent="counter", metadata={"secret": "in here"})
    api.ended(run_id)
    listed_as(api, run_id, "completed")
    before = api.http.get("/v1/usage").json()
    for _ in range(3):
        assert api.http.delete(f"/v1/runs/{run_id}").status_code == 204
    unlisted(api, run_id)
    assert api.http.get("/v1/usage").json() == before
    gone(api, run_id)
    assert left_of(server.state, run_id, "secret") == {"tombstone": 1, "outbox": 0}


def test_a_run_that_is_deleted_while_it_works_ends_for_its_followers_and_stays_gone(
    api: Api, model_server: Running
) -> None:
    key = uuid.uuid4().hex
    body = {"input": f"mark {key}", "model": "openai-compatible/slow-text-900", "agent": "counter"}
    run_id = api.post("/v1/runs", body, idempotency_key=key).json()["run_id"]
    with api.socket(run_id) as socket:
        stream = api.stream(run_id)
        next(event for event in stream if event["type"] == "step.text-delta")
        assert api.http.delete(f"/v1/runs/{run_id}").status_code == 204
        assert [event["type"] for event in stream][-1] == "run.cancelled"
        by_socket = events_of(socket)
        assert any(event["type"] == "run.cancelled" for event in by_socket)
    until(model_server.log, lambda log: any(key in str(seen) and seen["closed_early"] for seen in log))
    unlisted(api, run_id)
    gone(api, run_id)
    assert api.post("/v1/runs", body, idempotency_key=key).json()["code"] == "run_deleted"


def test_an_unknown_run_cannot_be_deleted_and_a_run_token_may_not(api: Api) -> None:
    assert api.http.delete("/v1/runs/nobody").json()["code"] == "unknown_run"
    assert api.http.get("/v1/runs/nobody").json()["code"] == "unknown_run"
    started = api.post("/v1/runs", {"input": "go", "model": "openai-compatible/text"}).json()
    own, token = started["links"]["self"], {"authorization": f"Bearer {started['stream_token']}"}
    assert api.http.get(own, headers=token).status_code == 200
    refused = api.http.delete(own, headers=token)
    assert (refused.status_code, refused.json()["code"]) == (403, "token_scope")
    assert api.ended(started["run_id"])["status"] == "completed"


# -- runs that continue others
def test_a_run_continues_what_was_said_in_another_one_and_in_those_before_it(api: Api) -> None:
    first = api.start("my name is Ada", model="text", agent="counter", history=[{"role": "user", "text": "hello"}])
    said = api.ended(first)["text"]
    second = api.start("what is it?", model="text", agent="counter", continues=first)
    again = api.ended(second)["text"]
    third = api.start("and now?", model="text", agent="counter", continues=second)
    history = find(api.records(third), "run.created")["history"]
    assert [(turn["role"], turn["text"]) for turn in history] == [
        ("user", "hello"),
        ("user", "my name is Ada"),
        ("assistant", said),
        ("user", "what is it?"),
        ("assistant", again),
    ]
    assert api.ended(third)["status"] == "completed"


def test_what_cannot_be_continued_is_refused_with_the_reason(api: Api) -> None:
    unknown = api.post("/v1/runs", {"input": "x", "continues": "nobody"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_run")
    assert unknown.json()["field"] == "continues"
    slow = api.start("slow", model="slow-text-900", agent="counter")
    early = api.post("/v1/runs", {"input": "x", "continues": slow})
    assert (early.status_code, early.json()["code"]) == (409, "run_not_ended")
    api.post(f"/v1/runs/{slow}/cancel")
    api.ended(slow)
    both = {"input": "x", "continues": slow, "history": [{"role": "user", "text": "y"}]}
    assert (api.post("/v1/runs", both).status_code, api.post("/v1/runs", both).json()["field"]) == (422, "continues")
    assert api.ended(api.start("go on", model="text", agent="counter", continues=slow))["status"] == "completed"


# -- the cap
@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Server]:
    own = {**variables(model_server, tool_server), "EDGE_AGENT_MAX_RUNS": "2"}
    with serve(state=tmp_path_factory.mktemp("capped"), overlay=HERE / "worker", variables=own) as server:
        yield server


def test_as_many_runs_are_active_as_may_be_and_the_next_one_is_told_to_come_back(capped: Server) -> None:
    with Api(capped.url) as api:
        body = {"input": "slow", "model": "openai-compatible/slow-text-900", "agent": "counter"}
        first = api.post("/v1/runs", body, idempotency_key="first")
        second = api.start("slow", model="slow-text-900", agent="counter")
        refused = api.post("/v1/runs", body)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_runs")
        assert int(refused.headers["retry-after"]) > 0
        assert "EDGE_AGENT_MAX_RUNS" in refused.json()["detail"]
        again = api.post("/v1/runs", body, idempotency_key="first")
        assert (again.status_code, again.json()["run_id"]) == (202, first.json()["run_id"])
        assert api.post("/v1/runs", body, idempotency_key="other").status_code == 429
        api.post(f"/v1/runs/{second}/cancel")
        answer = until(lambda: api.post("/v1/runs", body), lambda answer: answer.status_code != 429)
        assert answer.status_code == 202
        assert api.post(f"/v1/runs/{second}/resume").json()["code"] == "too_many_runs"


# -- kill -9
def test_the_end_of_a_run_is_told_though_everything_was_killed_before_it_could_be(
    tmp_path: Path, model_server: Running, tool_server: Running
) -> None:
    overlay = tmp_path / "overlay"
    for part in ("worker", "deaf_worker"):
        shutil.copytree(HERE / part, overlay, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    state, given = tmp_path / "state", variables(model_server, tool_server)
    with serve(state=state, overlay=overlay, variables={**given, "DEAF": "yes"}) as deaf, Api(deaf.url) as api:
        run_id = api.start("who hears me?", model="rounds-2", agent="counter")
        used = api.ended(run_id)["usage"]
        assert page(api)["runs"] == []
        deaf.kill()
    with serve(state=state, overlay=overlay, variables=given) as server, Api(server.url) as api:
        listed = listed_as(api, run_id, "completed")  # by asking the directory alone: nobody wakes the run
        assert listed["usage"] == used
        assert len(page(api)["runs"]) == 1
