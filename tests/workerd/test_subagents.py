"""Subagents in real workerd, in objects of their own or inline: results once, one or all of them stopped."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, events_of, find, types, until, whole

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
WORKER = Path(__file__).parent / "subagents_worker"


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with running("model_server.py", "--script", str(WORKER / "model_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: Running, tool_server: Running) -> Iterator[Server]:
    variables = {"EDGE_AGENT_BASE_URL": f"{model.url}/v1", "TOOL_SERVER_URL": tool_server.url}
    with serve(state=tmp_path_factory.mktemp("subagents"), overlay=WORKER, variables=variables) as server:
        yield server


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    with Api(server.url) as client:
        yield client


@pytest.fixture(params=["object", "inline"])
def isolation(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def boss(isolation: str) -> str:
    return f"boss-{isolation}"


def children(api: Api, run_id: str, most: int = 1) -> list[Event]:
    """The subagents of the run, as soon as there are so many."""
    return api.until(run_id, lambda state: len(state["subagents"]) >= most)["subagents"]


def test_eight_children_four_at_a_time_each_run_once_and_their_use_adds_up(
    api: Api, boss: str, tool_server: Running
) -> None:
    run_id = api.start(agent=boss)
    with api.socket(run_id) as socket:
        events = list(events_of(socket))
    whole([event for event in events if "seq" in event])
    assert events[-1]["type"] == "run.completed"
    state = api.state(run_id)
    assert [child["status"] for child in state["subagents"]] == ["completed"] * 8
    assert _most_at_work([event for event in events if "seq" in event]) == 4
    spent = Counter[str]()
    for child in state["subagents"]:
        records = api.records(child["child_run_id"])
        whole(records)
        assert records[0]["parent"]["run_id"] == run_id
        told = [e for e in events if e["type"] == "subagent.event" and e["child_run_id"] == child["child_run_id"]]
        assert [event["child_seq"] for event in told] == [record["seq"] for record in records]
        assert types([event["event"] for event in told]) == types(records)
        effects = Counter(s["key"] for s in tool_server.log() if s.get("run") == child["child_run_id"])
        assert len(effects) == 5
        assert set(effects.values()) == {1}
        amount = api.state(child["child_run_id"])["spent"]
        spent.update({kind: amount[kind] for kind in ("input", "output", "tool_calls")})
    own = {key: money for e in events for key, money in e.get("money", {}).items() if "/a" in key}
    assert state["spent"]["input"] == spent["input"] + sum(money["input"] for money in own.values())
    assert state["spent"]["output"] == spent["output"] + sum(money["output"] for money in own.values())
    assert state["spent"]["tool_calls"] == spent["tool_calls"] + 8
    assert any(event["type"] == "usage" and event["phase"] == "subagent" for event in events)


def _most_at_work(records: list[Event]) -> int:
    now = most = 0
    for record in records:
        now += record["type"] == "subagent.started"
        now -= record["type"] == "subagent.completed"
        most = max(most, now)
    return most


def test_one_of_four_is_stopped_and_the_others_and_their_parent_end_well(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="patient")
    first = children(api, run_id, 4)[0]
    answer = api.post(f"/v1/runs/{run_id}/subagents/{first['call_id']}/cancel", {"reason": "enough"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["child_run_id"] == first["child_run_id"]
    assert api.ended(run_id)["status"] == "completed"
    assert api.ended(first["child_run_id"])["status"] == "cancelled"
    assert [child["status"] for child in api.state(run_id)["subagents"]] == ["stopped", *["completed"] * 3]
    failed = find(api.records(run_id), "subagent.failed")
    assert failed["stopped"]
    assert "enough" in failed["error"]
    again = api.post(f"/v1/runs/{run_id}/subagents/{first['call_id']}/cancel")
    assert again.status_code == 200, "a second time changes nothing"
    assert types(api.records(run_id)).count("subagent.failed") == 1
    other = api.state(run_id)["subagents"][1]
    assert api.post(f"/v1/runs/{run_id}/subagents/{other['call_id']}/cancel").json()["code"] == "subagent_ended"
    assert api.post(f"/v1/runs/{run_id}/subagents/nobody/cancel").json()["code"] == "unknown_subagent"


def test_one_is_stopped_over_the_socket_too(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="patient")
    first = children(api, run_id, 1)[0]
    with api.socket(run_id) as socket:
        socket.send(json.dumps({"id": 1, "type": "cancel_subagent", "call_id": first["call_id"]}))
        socket.send(json.dumps({"id": 2, "type": "cancel_subagent", "call_id": "nobody"}))
        events = list(events_of(socket))
    answered = {event["ack"]: event for event in events if "ack" in event}
    assert answered[1]["ok"]
    assert answered[2]["problem"]["code"] == "unknown_subagent"
    told = [event for event in events if "type" in event]
    assert find(told, "subagent.failed")["child_run_id"] == first["child_run_id"]
    assert told[-1]["type"] == "run.completed"


def test_with_their_parent_all_children_end(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="patient")
    started = children(api, run_id, 4)
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.ended(run_id)["status"] == "cancelled"
    ends = [api.ended(child["child_run_id"])["status"] for child in started]
    assert ends[0] == "cancelled"
    assert set(ends) <= {"cancelled", "completed"}
    results = [record for record in api.records(run_id) if record["key"].endswith("/result")]
    assert len(results) == 4


def test_one_that_takes_too_long_is_given_up_and_settled_when_it_has_ended(api: Api, isolation: str) -> None:
    run_id = api.start(agent=f"hurried-{isolation}")
    state = api.ended(run_id)
    assert (state["status"], state["text"]) == ("completed", "It took too long.")
    failed = find(api.records(run_id), "subagent.failed")
    assert "in time" in failed["error"]
    assert api.ended(failed["child_run_id"])["status"] == "cancelled"


def test_an_approval_inside_a_child_is_the_childs_own_and_its_parent_waits(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="asker")
    child = children(api, run_id)[0]["child_run_id"]
    waiting = api.until(child, lambda state: state["status"] == "waiting")
    assert api.state(run_id)["waiting_for"]["reasons"] == ["subagent"]
    assert not api.state(run_id)["approvals"]
    call_id = waiting["approvals"][0]["call_id"]
    assert api.post(f"/v1/runs/{child}/approvals/{call_id}", {"approved": True}).status_code == 200
    assert api.ended(run_id)["text"] == "It was ordered."


def test_an_unknown_profile_is_told_to_the_model_and_nothing_is_started(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="unknown")
    assert api.ended(run_id)["status"] == "completed"
    rejected = find(api.records(run_id), "tool.rejected")
    assert "patient, asking" in rejected["message"]
    assert api.state(run_id)["subagents"] == []


def test_a_stream_ends_while_only_subagents_work_and_who_comes_back_with_a_cursor_sees_every_record(
    api: Api, boss: str
) -> None:
    run_id = api.start(agent=boss, model="asker")
    child = children(api, run_id)[0]["child_run_id"]
    call_id = api.until(child, lambda state: state["status"] == "waiting")["approvals"][0]["call_id"]
    seen = list(api.stream(run_id))
    assert seen[-1]["type"] == "run.waiting", "the object can sleep"
    cursor = seen[-1]["seq"]
    assert list(api.stream(run_id, cursor)) == [], "nothing new: it still waits"
    api.post(f"/v1/runs/{child}/approvals/{call_id}", {"approved": True})
    while seen[-1]["type"] != "run.completed":
        seen += [event for event in api.stream(run_id, seen[-1]["seq"]) if "seq" in event]
    assert [event for event in seen if "seq" in event] == api.records(run_id)


def test_the_list_of_runs_names_the_parent(api: Api, boss: str) -> None:
    run_id = api.start(agent=boss, model="one")
    api.ended(run_id)
    child = api.state(run_id)["subagents"][0]["child_run_id"]
    assert api.state(child)["parent"] == run_id
    listed = until(lambda: _listed(api, child) or {}, lambda seen: seen.get("status") == "completed")
    assert listed["parent"] == run_id
    assert "parent" not in (_listed(api, run_id) or {})


def _listed(api: Api, run_id: str) -> Event | None:
    runs = api.http.get("/v1/runs", params={"limit": 100}).json()["runs"]
    return next((run for run in runs if run["run_id"] == run_id), None)
