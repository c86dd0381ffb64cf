"""Approvals in real workerd: over HTTP, by socket and by link, by an alarm, and after the object has slept."""

import json
import re
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import PATIENCE, TERMINAL, Api, Event, events_of, every, find, types, until

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
HERE = Path(__file__).parent / "approvals_worker"
TOKEN = "token-of-alice-4711"
IDLE = 13.0  # seconds of no request; the platform lets go of an idle object after ten


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with running("model_server.py", "--script", str(HERE / "model_script.json")) as server:
        yield server


@contextmanager
def served(folder: Path, model: Running, tools: Running, **more: str) -> Generator[Server]:
    variables = {
        "EDGE_AGENT_MODEL": "openai-compatible/one",
        "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
        "EDGE_AGENT_TOKEN": TOKEN,
        "TOOL_SERVER_URL": tools.url,
        **more,
    }
    with serve(state=folder, overlay=HERE, variables=variables) as server:
        yield server


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory, model: Running, tool_server: Running) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("asking"), model, tool_server) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, model: Running, tool_server: Running) -> Iterator[Server]:
    """A deployment where nobody has much time."""
    more = {"EDGE_AGENT_APPROVAL_TIMEOUT": "3", "EDGE_AGENT_APPROVAL": "ask-writes"}
    with served(tmp_path_factory.mktemp("hasty"), model, tool_server, **more) as server:
        yield server


@pytest.fixture
def api(asking: Server) -> Iterator[Api]:
    with Api(asking.url, TOKEN) as client:
        yield client


def waiting(api: Api, run_id: str, count: int = 1) -> list[Event]:
    """The open requests, once the run waits for them."""
    state = api.until(run_id, lambda s: s["status"] == "waiting" and len(s["approvals"]) == count)
    return list(state["approvals"])


def asked(api: Api, model: str = "one", **fields: Any) -> tuple[str, Event]:
    run_id = api.start(model=model, **fields)
    return run_id, waiting(api, run_id)[0]


def decide(api: Api, run_id: str, call_id: str, **body: Any) -> httpx2.Response:
    return api.post(f"/v1/runs/{run_id}/approvals/{call_id}", body)


def refused(answer: httpx2.Response, status: int, code: str) -> Event:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    return answer.json()


def effects(tools: Running, run_id: str) -> list[tuple[str, int]]:
    return [(entry["path"], entry["n"]) for entry in tools.log() if entry.get("run") == run_id]


# -- an object that sleeps
def instances(server: Server, run_id: str) -> list[str]:
    said = server.log.read_text(encoding="utf-8", errors="replace")
    return re.findall(rf"instance (\w+) has read {run_id}\b", said)


def test_a_call_is_approved_after_the_object_has_hibernated(
    api: Api, asking: Server, tool_server: Running, figure: Figure
) -> None:
    run_id, request = asked(api, "beside")
    with api_socket(api, run_id) as socket:
        before = _evicted(api, asking, run_id)
        assert decide(api, run_id, request["call_id"], approved=True).status_code == 200
        heard = list(events_of(socket))
    after = instances(asking, run_id)
    figure(f"instances of {run_id}: {before} before the decision, {after} after it")
    assert len(set(after)) > len(set(before)) >= 1
    assert types(heard)[-1] == "run.completed", "the socket slept with the object and heard the rest"
    assert effects(tool_server, run_id) == [("/lookup", 2), ("/charge", 1)]
    records = api.records(run_id)
    assert [e["key"] for e in records if e["type"] == "tool.called"] == ["s1/r1/c1/call", "s1/r1/c0/call"]
    assert api.state(run_id)["restarts"] == 0, "to wait is no restart"


def test_a_call_of_an_inline_subagent_is_approved_after_the_object_has_hibernated_and_both_sockets_hear_of_it(
    api: Api, asking: Server, tool_server: Running
) -> None:
    run_id = api.start(agent="boss", model="delegating")
    child = api.until(run_id, lambda state: bool(state["subagents"]))["subagents"][0]["child_run_id"]
    request = waiting(api, child)[0]
    with api_socket(api, run_id) as parents, api_socket(api, child) as childs:
        before = _evicted(api, asking, run_id)
        assert decide(api, child, request["call_id"], approved=True).status_code == 200
        of_child, of_parent = list(events_of(childs)), list(events_of(parents))
    assert len(set(instances(asking, run_id))) > len(set(before)) >= 1
    assert (of_child[-1]["run_id"], of_child[-1]["text"]) == (child, "That is done.")
    assert (of_parent[-1]["run_id"], of_parent[-1]["text"]) == (run_id, "It was charged.")
    assert {event["run_id"] for event in of_child if "run_id" in event} == {child}
    assert effects(tool_server, child) == [("/charge", 1)]


def api_socket(api: Api, run_id: str) -> Any:
    from websockets.sync.client import connect  # noqa: PLC0415

    address = f"{api.url.replace('http', 'ws', 1)}/v1/runs/{run_id}/ws"
    headers = {"authorization": f"Bearer {TOKEN}"}
    return connect(address, additional_headers=headers, compression=None, open_timeout=PATIENCE, close_timeout=0.2)


def _evicted(api: Api, server: Server, run_id: str) -> list[str]:
    """The instances so far, after a time in which nobody asked anything of the object: that is what is tested here."""
    before = instances(server, run_id)
    time.sleep(IDLE)
    return before


# -- two clients
def test_two_clients_decide_and_one_decision_is_used_once(api: Api, tool_server: Running) -> None:
    run_id, request = asked(api)
    call_id, hash_ = request["call_id"], request["arguments_hash"]

    def approves(approved: bool) -> httpx2.Response:
        with Api(api.url, TOKEN) as client:
            return decide(client, run_id, call_id, approved=approved, arguments_hash=hash_)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(approves, [True, False] * 4))
    ok = [answer.json()["decision"]["approved"] for answer in answers if answer.status_code == 200]
    assert len(set(ok)) == 1, "the same decision for all who agree with it"
    assert len(ok) == 4
    for answer in answers:
        if answer.status_code != 200:
            assert refused(answer, 409, "already_decided")["decision"]["approved"] is ok[0]
    api.ended(run_id)
    assert effects(tool_server, run_id) == ([("/charge", 1)] if ok[0] else [])
    assert types(api.records(run_id)).count("tool.approval-resolved") == 1


def test_a_denial_with_a_reason_is_told_to_the_model_and_nothing_happens(
    api: Api, tool_server: Running, model: Running
) -> None:
    run_id, request = asked(api)
    answer = decide(api, run_id, request["call_id"], approved=False, reason="the budget is frozen")
    assert (answer.json()["status"], answer.json()["decision"]["by"]) == ("denied", "person")
    assert api.ended(run_id)["text"] == "That is done."
    assert effects(tool_server, run_id) == []
    rejected = find(api.records(run_id), "tool.rejected")
    assert rejected["reason"] == "denied"
    assert "the budget is frozen" in rejected["message"]
    assert rejected["message"] in [m.get("content") for seen in model.log() for m in seen["body"]["messages"]]


def test_edited_arguments_are_checked_recorded_and_used(api: Api, tool_server: Running) -> None:
    run_id, request = asked(api)
    wrong = decide(api, run_id, request["call_id"], approved=True, arguments={"n": "many"})
    assert refused(wrong, 422, "invalid_arguments")["field"] == "arguments.n"
    answer = decide(api, run_id, request["call_id"], approved=True, arguments={"n": 7})
    assert answer.json()["decision"]["arguments"] == {"n": 7}
    api.ended(run_id)
    assert effects(tool_server, run_id) == [("/charge", 7)]
    assert find(api.records(run_id), "tool.called")["arguments"] == {"n": 7}


def test_a_decision_for_the_run_covers_the_other_open_request_and_later_calls(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="twice")
    first, second = waiting(api, run_id, 2)
    assert decide(api, run_id, second["call_id"], approved=True, remember=True).status_code == 200
    (other,) = waiting(api, run_id, 1)
    assert other["name"] == "transfer", "another tool is another question"
    shown = api.http.get(f"/v1/runs/{run_id}/approvals/{first['call_id']}").json()
    assert (shown["status"], shown["decision"]["by"]) == ("approved", "remembered")
    decide(api, run_id, other["call_id"], approved=False)
    api.ended(run_id)
    assert sorted(effects(tool_server, run_id)) == [("/charge", 1), ("/charge", 2), ("/charge", 3)]


# -- what is refused
def test_decisions_about_other_arguments_or_nothing_or_too_late_are_refused_with_a_clear_code(api: Api) -> None:
    run_id, request = asked(api)
    call_id = request["call_id"]
    refused(decide(api, run_id, call_id, approved=True, arguments_hash="0" * 64), 409, "arguments_changed")
    refused(decide(api, run_id, "nobody", approved=True), 404, "unknown_approval")
    refused(decide(api, run_id, call_id, approved="yes"), 422, "invalid_request")
    refused(decide(api, run_id, call_id), 422, "invalid_request")
    bad = {"arguments": {"n": "2"}}
    refused(decide(api, run_id, call_id, approved=True, remember=bad), 422, "invalid_request")
    refused(decide(api, "t-nobody", call_id, approved=True), 404, "unknown_run")
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.ended(run_id)["status"] == "cancelled"
    refused(decide(api, run_id, call_id, approved=True), 410, "approval_expired")
    resolved = find(api.records(run_id), "tool.approval-resolved")
    assert (resolved["approved"], resolved["by"]) == (False, "cancel")


def test_a_request_that_nobody_answers_is_denied_by_the_alarm_with_nobody_there(
    hasty: Server, tool_server: Running
) -> None:
    with Api(hasty.url, TOKEN) as api:
        run_id = api.start(model="one")
        requested = next(e for e in _until_recorded(api, run_id, "tool.approval-requested"))
        resolved = next(e for e in _until_recorded(api, run_id, "tool.approval-resolved"))
        assert (resolved["by"], resolved["approved"], resolved["automatic"]) == ("expiry", False, True)
        assert resolved["key"] == "s1/r1/c0/decision"
        refused(decide(api, run_id, requested["call_id"], approved=True), 410, "approval_expired")
        assert api.ended(run_id)["status"] == "completed"
        assert effects(tool_server, run_id) == []
        shown = api.http.get(f"/v1/runs/{run_id}/approvals/{requested['call_id']}").json()
        assert shown["status"] == "expired"
        link = _link_of(api, api.start(model="one"))
        until(lambda: httpx2.get(api.url + link).status_code == 410)
        refused(httpx2.post(api.url + link, json={"approved": True}), 410, "link_expired")


def _until_recorded(api: Api, run_id: str, kind: str) -> list[Event]:
    return until(lambda: every(api.records(run_id), kind))


def _link_of(api: Api, run_id: str) -> str:
    return str(waiting(api, run_id)[0]["link"])


# -- links
def test_a_link_shows_the_request_and_decides_once_with_no_session(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="one")
    link = api.url + _link_of(api, run_id)
    for _ in range(3):
        shown = httpx2.get(link)
        assert (shown.status_code, shown.json()["status"], shown.json()["arguments"]) == (200, "pending", {"n": 1})
    assert httpx2.head(link).status_code in (200, 405)
    assert api.state(run_id)["status"] == "waiting", "to look decides nothing"
    refused(httpx2.post(link, json={"approved": True, "arguments": {"n": 9}}), 422, "invalid_request")
    assert httpx2.post(link, json={"approved": True}).json()["status"] == "approved"
    used = refused(httpx2.post(link, json={"approved": True}), 409, "link_used")
    assert used["decision"]["approved"] is True
    api.ended(run_id)
    assert effects(tool_server, run_id) == [("/charge", 1)]
    assert httpx2.get(link).json()["status"] == "approved"
    assert link.rsplit(".", 1)[1] not in json.dumps(api.log(run_id)), "no link in the log"


def test_a_link_that_is_forged_or_of_another_call_opens_nothing(api: Api) -> None:
    one, two = (_link_of(api, api.start(model="one")) for _ in range(2))
    head, mac = one.rsplit(".", 1)
    other_mac = two.rsplit(".", 1)[1]
    parts = head.split(".")
    later = ".".join([*parts[:-1], str(int(parts[-1]) + 1_000)])
    forged = [f"{head}.{other_mac}", f"{later}.{mac}", f"{head}.{mac[:-1]}", "/v1/approvals/x", f"{head}."]
    for link in forged:
        refused(httpx2.get(api.url + link), 403, "wrong_link")
        refused(httpx2.post(api.url + link, json={"approved": True}), 403, "wrong_link")
    for link in (one, two):
        assert httpx2.get(api.url + link).json()["status"] == "pending"
        api.post(f"/v1/runs/{link.split('.')[1]}/cancel")


def test_a_link_opens_a_page_whose_form_decides(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="one")
    link = api.url + _link_of(api, run_id)
    browser = {"accept": "text/html,application/xhtml+xml"}
    page = httpx2.get(link, headers=browser)
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "<form method=post>" in page.text
    assert "charge" in page.text
    assert "<script" not in page.text
    done = httpx2.post(link, data={"approved": "false", "reason": "not <b>now</b>"}, headers=browser)
    assert (done.status_code, "This call was denied." in done.text) == (200, True)
    again = httpx2.post(link, data={"approved": "true"}, headers=browser)
    assert (again.status_code, "decides once" in again.text) == (409, True)
    api.ended(run_id)
    assert effects(tool_server, run_id) == []
    assert "not <b>now</b>" in find(api.records(run_id), "tool.rejected")["message"]


# -- who may
def test_a_run_token_decides_its_run_only_gets_no_link_and_may_only_tighten(api: Api) -> None:
    started = api.post("/v1/runs", {"input": "go", "model": "openai-compatible/one"}).json()
    run_id, token = started["run_id"], started["stream_token"]
    request = waiting(api, run_id)[0]
    other = api.start(model="one")
    with Api(api.url, token) as browser:
        assert "link" not in browser.state(run_id)["approvals"][0]
        refused(browser.http.put(f"/v1/runs/{run_id}/approval-mode", json={"mode": "autopilot"}), 403, "only_tighten")
        refused(browser.http.put(f"/v1/runs/{other}/approval-mode", json={"mode": "ask-all"}), 403, "token_scope")
        refused(decide(browser, other, request["call_id"], approved=True), 403, "token_scope")
        assert browser.http.put(f"/v1/runs/{run_id}/approval-mode", json={"mode": "ask-all"}).status_code == 200
        assert decide(browser, run_id, request["call_id"], approved=False).status_code == 200
    with httpx2.Client(base_url=api.url) as nobody:
        answer = nobody.post(f"/v1/runs/{other}/approvals/{request['call_id']}", json={"approved": True})
        refused(answer, 401, "token_required")
    api.post(f"/v1/runs/{other}/cancel")


def test_a_decision_by_socket_is_acknowledged(api: Api, tool_server: Running) -> None:
    run_id, request = asked(api)
    with api_socket(api, run_id) as socket:
        for number, command in enumerate(
            (
                {"call_id": "nobody", "approved": True},
                {"call_id": request["call_id"]},
                {"approved": True},
                {"call_id": request["call_id"], "approved": True, "arguments": {"n": "x"}},
                {"call_id": request["call_id"], "approved": True, "arguments_hash": request["arguments_hash"]},
            )
        ):
            socket.send(json.dumps({"id": number, "type": "decision", **command}))
        events = list(events_of(socket))
    acks = {event["ack"]: event for event in events if "ack" in event}
    codes = [acks[number].get("problem", {}).get("code") for number in range(5)]
    assert codes == ["unknown_approval", "invalid_request", "invalid_request", "invalid_arguments", None]
    assert "call_id" in acks[2]["problem"]["detail"]
    assert acks[4]["ok"] is True
    assert effects(tool_server, run_id) == [("/charge", 1)]


# -- modes and rules
def test_the_mode_of_a_running_run_is_changed_for_its_next_call(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="twice", agent="clerk")
    requests = waiting(api, run_id, 2)
    answer = api.http.put(f"/v1/runs/{run_id}/approval-mode", json={"mode": "autopilot"})
    assert answer.json()["approval_mode"] == "autopilot"
    assert len(answer.json()["approvals"]) == 2, "what was asked stays asked"
    for request in requests:
        decide(api, run_id, request["call_id"], approved=True)
    assert api.ended(run_id)["status"] == "completed"
    assert sorted(effects(tool_server, run_id)) == [("/charge", 1), ("/charge", 2), ("/charge", 3), ("/transfer", 4)]
    assert types(api.records(run_id)).count("tool.approval-requested") == 2
    strict = api.start(model="one", agent="strict")
    waiting(api, strict)
    answer = api.http.put(f"/v1/runs/{strict}/approval-mode", json={"mode": "autopilot"})
    assert refused(answer, 422, "mode_not_allowed")["field"] == "mode"
    api.post(f"/v1/runs/{strict}/cancel")
    api.ended(strict)
    answer = api.http.put(f"/v1/runs/{strict}/approval-mode", json={"mode": "read-only"})
    refused(answer, 409, "run_ended")


def test_a_request_may_only_make_its_run_stricter(api: Api, tool_server: Running) -> None:
    body: dict[str, Any] = {"input": "go", "agent": "strict", "model": "openai-compatible/one"}
    assert (
        refused(api.post("/v1/runs", {**body, "approval": "autopilot"}), 422, "approval_too_loose")["field"]
        == "approval"
    )
    refused(api.post("/v1/runs", {**body, "tool_rules": {"charge": "allow"}}), 422, "invalid_request")
    denied = api.start(model="one", agent="strict", tool_rules={"char*": "deny"})
    assert api.ended(denied)["status"] == "completed"
    reading = api.start(model="one", agent="strict", approval="read-only")
    assert api.ended(reading)["approval_mode"] == "read-only"
    for run_id in (denied, reading):
        resolved = find(api.records(run_id), "tool.approval-resolved")
        assert (resolved["approved"], resolved["by"], resolved["automatic"]) == (False, "rule", True)
        assert effects(tool_server, run_id) == []


def test_an_event_stream_ends_at_the_request_and_goes_on_after_the_decision(api: Api) -> None:
    run_id = api.start(model="one")
    first = list(api.stream(run_id))
    assert types(first)[-1] == "run.waiting"
    request = find(first, "tool.approval-requested")
    assert find(first, "run.waiting")["for"] == ["approval"]
    decide(api, run_id, request["call_id"], approved=True, arguments_hash=request["arguments_hash"])
    events = first
    while events[-1]["type"] not in TERMINAL:
        events = list(api.stream(run_id, after=max(e["seq"] for e in events if "seq" in e)))
    assert events[-1]["type"] == "run.completed"
