"""Fork, replay and the state at a record in real workerd: objects that lend and take, a kill in the middle, a log."""

import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running
from tests.workerd.client import Api, Event, find, types, whole
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
NDJSON = {"content-type": "application/x-ndjson"}
OWN = ("seq", "batch", "life", "run_id")  # what a shared record has of its own in each run


def fork(api: Api, run_id: str, at: int, **changes: Any) -> Event:
    if "model" in changes:
        changes["model"] = f"openai-compatible/{changes['model']}"
    answer = api.post(f"/v1/runs/{run_id}/fork", {"at": at, "changes": changes})
    assert answer.status_code == 202, answer.text
    return answer.json()


def shared(event: Event) -> Event:
    return {name: value for name, value in event.items() if name not in OWN}


def replayed(api: Api, log: str | bytes) -> httpx2.Response:
    return api.http.post("/v1/replay", content=log, headers=NDJSON)


def export_of(api: Api, run_id: str) -> str:
    answer = api.http.get(f"/v1/runs/{run_id}/log")
    assert answer.status_code == 200
    return answer.text


def test_a_fork_with_another_model_repeats_no_call_and_shares_the_log_up_to_there(
    api: Api, tool_server: Running
) -> None:
    run_id = api.start(model="rounds-6", agent="counter")
    api.ended(run_id)
    records = api.records(run_id)
    results = [event for event in records if event["type"] == "tool.result"]
    at = results[2]["seq"]
    answer = fork(api, run_id, at, model="rounds-3")
    forked = answer["run_id"]
    assert answer["forked_from"]["at"] == find(records[at - 1 :], "tool.result")["batch"]
    state = api.ended(forked)
    assert state["status"] == "completed"
    assert state["models"] == ["openai-compatible/rounds-3"]
    own = api.records(forked)
    whole(own)
    inherited = answer["forked_from"]["inherited"]
    there = {event["key"]: event for event in records}
    for event in own[1:inherited]:
        assert shared(event) == shared(there[event["key"]])
    assert types(own[:inherited]).count("tool.result") == 3
    assert not {"tool.called", "tool.result"} & set(types(own[inherited:]))  # its three rounds are over
    made = [entry for entry in tool_server.log() if entry.get("run") in (run_id, forked)]
    assert len(made) == 6
    assert {entry["run"] for entry in made} == {run_id}
    assert [e["type"] for e in own[inherited:]][:2] == ["run.started", "boundary"]
    assert replayed(api, export_of(api, forked)).json()["differences"] == []


def test_what_was_open_is_made_by_the_fork_under_its_own_key(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="mixed", agent="counter")
    api.ended(run_id)
    at = find(api.records(run_id), "tool.called")["seq"]
    forked = fork(api, run_id, at)["run_id"]
    assert api.ended(forked)["text"] == "Both done."
    keys = {run: {e["key"] for e in tool_server.log() if e.get("run") == run} for run in (run_id, forked)}
    assert len(keys[run_id]) == len(keys[forked]) == 5
    assert not keys[run_id] & keys[forked]


def test_the_files_of_inherited_results_come_along_whole(api: Api) -> None:
    run_id = api.start(model="troubles", agent="troubled")
    api.ended(run_id)
    records = api.records(run_id)
    result = next(event for event in records if event["type"] == "tool.result" and event["files"])
    name = result["files"][0]["name"]
    forked = fork(api, run_id, records[-1]["seq"])["run_id"]
    assert api.ended(forked)["status"] == "completed"
    for run in (run_id, forked):
        file = api.http.get(f"/v1/runs/{run}/files/{name}")
        assert file.status_code == 200
        assert file.content == b"0123456789" * 524_288
    assert replayed(api, export_of(api, forked)).json()["differences"] == []


def test_a_long_log_travels_in_pages(api: Api) -> None:
    run_id = api.start("y" * 900_000, model="rounds-20-2000", agent="counter")
    api.ended(run_id)
    records = api.records(run_id)
    forked = fork(api, run_id, records[-1]["seq"])
    state = api.ended(forked["run_id"])
    assert len(state["input"]) == 900_000
    assert state["text"] == api.state(run_id)["text"]


def test_the_same_key_makes_one_fork(api: Api) -> None:
    run_id = api.start(model="rounds-2", agent="counter")
    api.ended(run_id)
    key = uuid.uuid4().hex
    answers = [api.post(f"/v1/runs/{run_id}/fork", {"at": at}, idempotency_key=key) for at in (5, 5, 6)]
    assert [answer.status_code for answer in answers] == [202, 202, 409]
    assert answers[0].json()["run_id"] == answers[1].json()["run_id"]
    assert answers[2].json()["code"] == "idempotency_conflict"


def test_what_cannot_be_forked_is_refused_and_leaves_nothing(api: Api) -> None:
    run_id = api.start(model="rounds-2", agent="counter")
    last = api.ended(run_id)["seq"]
    taken = f"f-{uuid.uuid4().hex[:8]}"
    asked = {
        (404, "unknown_run"): ("nobody-is-here", {"at": 1}),
        (416, "record_ahead"): (run_id, {"at": last + 1}),
        (422, "limit_too_high"): (run_id, {"at": 1, "changes": {"limits": {"max_steps": 1_000}}}),
        (422, "unknown_model"): (run_id, {"at": 1, "changes": {"model": "nowhere/x"}}),
        (409, "run_exists"): (run_id, {"at": 1, "run_id": run_id}),
    }
    for (status, code), (source, body) in asked.items():
        answer = api.post(f"/v1/runs/{source}/fork", {"run_id": taken, **body})
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert api.http.get(f"/v1/runs/{taken}").status_code == 404


def test_the_state_at_a_record_is_what_it_was_and_has_its_conversation(api: Api) -> None:
    run_id = api.start(model="rounds-3", agent="counter")
    now = api.ended(run_id)
    records = api.records(run_id)
    result = find(records, "tool.result")
    then = api.http.get(f"/v1/runs/{run_id}", params={"at": result["seq"], "include": "messages"}).json()
    assert then["seq"] == result["batch"]
    assert then["status"] == "running"
    assert then["rounds"] == 1
    assert then["spent"]["tool_calls"] == 1
    assert [message["role"] for message in then["messages"]] == ["user", "assistant", "tool"]
    assert then["messages"][2]["text"] == result["output"]
    last = api.http.get(f"/v1/runs/{run_id}", params={"at": records[-1]["seq"]}).json()
    assert {**last, "restarts": now["restarts"]} == now
    ahead = api.http.get(f"/v1/runs/{run_id}", params={"at": records[-1]["seq"] + 1})
    assert (ahead.status_code, ahead.json()["code"]) == (416, "record_ahead")


def test_a_log_is_exported_and_replayed_and_a_difference_is_named(api: Api, model_server: Running) -> None:
    run_id = api.start(model="rounds-3", agent="counter")
    api.ended(run_id)
    log, before = export_of(api, run_id), len(model_server.log())
    answer = replayed(api, log)
    assert answer.status_code == 200, answer.text
    told: Event = {"run_id": run_id, "agent": "counter", "records": len(log.splitlines()) - 1, "differences": []}
    assert answer.json() == told
    renamed = log.replace('"key":"s1/r2/', '"key":"s1/round2/')
    (found,) = replayed(api, renamed).json()["differences"]
    assert (found["kind"], found["key"], found["asked"]) == ("key", "s1/round2/a0", "s1/r2/a0")
    lines = [json.loads(line) for line in log.splitlines()]
    second = [line for line in lines if line.get("type") == "model.requested"][1]
    second["data"]["prompt_hash"] = "0" * 64
    (found,) = replayed(api, "\n".join(json.dumps(line) for line in lines)).json()["differences"]
    assert (found["kind"], found["key"], found["seq"]) == ("prompt", second["key"], second["seq"])
    assert len(model_server.log()) == before
    other = replayed(api, log.replace('"agent_name":"counter"', '"agent_name":"nobody"'))
    assert (other.status_code, other.json()["code"]) == (422, "unknown_agent")


def test_a_log_of_megabytes_is_taken_and_one_over_the_cap_is_not(api: Api, figure: Figure) -> None:
    run_id = api.start(model="troubles", agent="troubled")
    api.ended(run_id)
    log = export_of(api, run_id)
    assert len(log) > 6_000_000  # a file of 5 MB is in it
    began = time.monotonic()
    assert replayed(api, log).json()["differences"] == []
    figure(f"a log of {len(log)} bytes was replayed in {time.monotonic() - began:.1f} s")
    answer = replayed(api, log + " " * 33_554_432)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Server]:
    """A Worker of its own, to be killed."""
    state = tmp_path_factory.mktemp("mortal")
    given = variables(model_server, tool_server)
    with serve(state=state, overlay=Path(HERE) / "worker", variables=given) as server:
        yield server


def test_a_kill_in_the_middle_leaves_no_half_fork_and_the_next_request_makes_it_whole(
    mortal: Server, figure: Figure
) -> None:
    with Api(mortal.url) as api:
        run_id = api.start(model="troubles", agent="troubled")
        api.ended(run_id)
        at = api.records(run_id)[-1]["seq"]
        began = time.monotonic()
        fork(api, run_id, at)
        took = time.monotonic() - began
    cut = 0
    for share in (0.05, 0.2, 0.4, 0.6, 0.8):
        body = {"at": at, "run_id": f"f-{uuid.uuid4().hex[:8]}"}
        pid = mortal.runtime_pid()
        _sent_and_left(mortal, f"/v1/runs/{run_id}/fork", body, share * took)
        os.kill(pid, signal.SIGKILL)
        mortal.wait_until_ready()
        with Api(mortal.url) as api:
            if api.http.get(f"/v1/runs/{body['run_id']}").status_code == 404:
                cut += 1
                assert api.post(f"/v1/runs/{run_id}/fork", body).status_code == 202
            _is_whole(api, str(body["run_id"]))
    assert cut
    figure(f"a fork with 5 MB of files takes {took:.2f} s; {cut} of 5 kills came before it was there")


def _is_whole(api: Api, forked: str) -> None:
    assert api.ended(forked)["status"] == "completed"
    own = api.records(forked)
    whole(own)
    assert types(own).count("run.created") == 1
    result = next(event for event in own if event["type"] == "tool.result" and event["files"])
    file = api.http.get(f"/v1/runs/{forked}/files/{result['files'][0]['name']}")
    assert len(file.content) == 5_242_880


def _sent_and_left(server: Server, path: str, body: Event, seconds: float) -> None:
    """Sends the request and goes away after so many seconds, whatever has come by then."""
    timeout = httpx2.Timeout(5.0, read=max(seconds, 0.001))
    with suppress(httpx2.HTTPError), httpx2.Client(base_url=server.url, timeout=timeout) as client:
        client.post(path, json=body)
