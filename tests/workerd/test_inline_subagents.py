"""Inline subagents in real workerd: one object for the whole family, each run of it with its own paths and sockets."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_agent.core import keys
from tests.faults.stand import Stand
from tests.servers.running import Running, running
from tests.workerd.client import Api, events_of, find, types, until, whole

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
WORKER = Path(__file__).parent / "subagents_worker"
BOSS = "boss-inline"


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with running("model_server.py", "--script", str(WORKER / "model_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inline")


@pytest.fixture(scope="module")
def stand(state: Path, model: Running, tool_server: Running) -> Iterator[Stand]:
    variables = {"EDGE_AGENT_BASE_URL": f"{model.url}/v1", "TOOL_SERVER_URL": tool_server.url}
    stand = Stand(state, WORKER, variables)
    yield stand
    stand.close()


@pytest.fixture
def api(stand: Stand) -> Iterator[Api]:
    with Api(stand.server.url) as client:
        yield client


def objects(state: Path) -> int:
    """How many objects of runs have a database."""
    return len(databases(state))


def databases(state: Path) -> list[Path]:
    return [path for path in state.rglob("*.sqlite") if path.parent.name.endswith("-Run")]


def tables(state: Path) -> set[tuple[str, str]]:
    """(database, name of a table) of all runs; those of the platform have names of its own."""
    found: set[tuple[str, str]] = set()
    for path in databases(state):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(
                "select name from sqlite_master where type = 'table' and name not like '\\_cf%' escape '\\'"
            )
            found |= {(path.stem, name) for (name,) in rows}
    return found


def child_of(api: Api, run_id: str) -> str:
    children = api.until(run_id, lambda state: bool(state["subagents"]))["subagents"]
    return str(children[0]["child_run_id"])


@pytest.mark.parametrize("boss,made", [("boss-inline", 1), ("boss-object", 9)])
def test_eight_inline_children_need_no_object_but_their_parents(boss: str, made: int, api: Api, state: Path) -> None:
    before = objects(state)
    run_id = api.start(agent=boss)
    assert [child["status"] for child in api.ended(run_id)["subagents"]] == ["completed"] * 8
    assert objects(state) - before == made


def test_each_has_its_own_socket_and_what_is_said_there_is_for_it_alone(api: Api) -> None:
    run_id = api.start(agent=BOSS, model="patient")
    child, other = [
        one["child_run_id"] for one in api.until(run_id, lambda state: len(state["subagents"]) > 1)["subagents"][:2]
    ]
    with api.socket(child) as childs, api.socket(other) as others, api.socket(run_id) as parents:
        childs.send(json.dumps({"id": 1, "type": "cancel", "reason": "enough"}))
        heard = {whose: list(events_of(one)) for whose, one in ((child, childs), (other, others), (run_id, parents))}
    for whose, events in heard.items():
        records = [event for event in events if "seq" in event]
        whole(records)
        assert records == api.records(whose)
    assert [event["ok"] for event in heard[child] if "ack" in event] == [True]
    assert not [event for events in (heard[other], heard[run_id]) for event in events if "ack" in event]
    assert [heard[whose][-1]["type"] for whose in heard] == ["run.cancelled", "run.completed", "run.completed"]
    statuses = [one["status"] for one in api.state(run_id)["subagents"]]
    assert (statuses[0], set(statuses[1:])) == ("failed", {"completed"})


def test_every_path_of_a_run_is_one_of_an_inline_child_too(api: Api) -> None:
    run_id = api.start(agent=BOSS, model="one")
    api.ended(run_id)
    child = child_of(api, run_id)
    records = api.records(child)
    assert [event for event in api.stream(child) if "seq" in event] == records
    assert [line["seq"] for line in api.log(child) if "seq" in line] == [record["seq"] for record in records]
    assert api.http.get(f"/v1/runs/{child}/calls").json()["calls"]
    assert api.post(f"/v1/runs/{child}/messages", {"text": "more", "id": "m1"}).json()["code"] == "run_ended"
    assert api.post(f"/v1/runs/{child}/resume").json()["code"] in ("run_completed", "run_has_parent")
    forked = api.post(f"/v1/runs/{child}/fork", {"at": find(records, "model.answered")["seq"]}).json()["run_id"]
    assert keys.object_of(forked) == forked
    assert api.ended(forked)["status"] == "completed"
    continued = api.start(agent=BOSS, model="text", continues=child)
    assert api.ended(continued)["status"] == "completed"


def test_an_approval_inside_one_is_given_after_a_crash_of_the_object(api: Api, stand: Stand) -> None:
    run_id = api.start(agent=BOSS, model="asker")
    child = child_of(api, run_id)
    call_id = api.until(child, lambda state: state["status"] == "waiting")["approvals"][0]["call_id"]
    stand.kill_everything()
    with Api(stand.server.url) as after:
        assert after.state(run_id)["waiting_for"]["reasons"] == ["subagent"]
        assert after.post(f"/v1/runs/{child}/approvals/{call_id}", {"approved": True}).status_code == 200
        assert after.ended(run_id)["text"] == "It was ordered."
        assert types(after.records(child)).count("tool.result") == 1


def test_with_their_parent_they_are_deleted_and_one_alone_is_deleted_alone(api: Api) -> None:
    run_id = api.start(agent=BOSS, model="patient")
    first, second = (
        one["child_run_id"] for one in api.until(run_id, lambda state: len(state["subagents"]) > 1)["subagents"][:2]
    )
    assert api.http.delete(f"/v1/runs/{first}").status_code == 204
    assert api.http.get(f"/v1/runs/{first}").json()["code"] == "run_deleted"
    assert api.ended(run_id)["status"] == "completed"
    assert api.state(second)["status"] == "completed"
    assert api.http.delete(f"/v1/runs/{run_id}").status_code == 204
    assert _problem(api, run_id) == "run_deleted"
    until(lambda: _problem(api, second) == "run_deleted")


def _problem(api: Api, run_id: str) -> str | None:
    return api.http.get(f"/v1/runs/{run_id}").json().get("code")


def test_an_inline_child_that_nobody_has_started_is_unknown_and_leaves_nothing(api: Api, state: Path) -> None:
    run_id = api.start(agent=BOSS, model="one")
    api.ended(run_id)
    before = tables(state)
    assert any(keys.within_object(child_of(api, run_id)) in name for _, name in before)
    for parent in (run_id, "nobody-4711"):
        unknown = keys.child(parent, "s9/r9/c9", inline=True)
        for path in ("", "/events", "/log", "/ws"):
            answer = api.http.get(f"/v1/runs/{unknown}{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown_run")
        assert api.post(f"/v1/runs/{unknown}/cancel").status_code == 404
    assert tables(state) == before
