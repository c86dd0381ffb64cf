"""A planned run over HTTP in real workerd: a plan, a failure that revises it, a message that changes it, an answer."""

import json
from pathlib import Path

import pytest

from tests.workerd.client import Api, Event, events_of, find, text_of, types, whole

pytestmark = pytest.mark.workerd
GOLDEN = Path(__file__).parent / "golden"


def told(records: list[Event]) -> list[str]:
    return [f"{record['key']}  {record['type']}" for record in records]


def test_a_plan_is_revised_by_a_failure_and_by_a_message(api: Api) -> None:
    run_id = api.start("plan my trip", model="trip", agent="troubled", mode="planned")
    events: list[Event] = []
    for event in api.stream(run_id):
        events.append(event)
        if event["type"] == "tool.called" and event["name"] == "hang_reading":
            answer = api.post(f"/v1/runs/{run_id}/messages", {"text": "go by the south", "id": "m1"})
            assert (answer.status_code, answer.json()["message_id"]) == (202, "m1")
    records = [event for event in events if "seq" in event]
    whole(records)
    golden = GOLDEN / "planned_run.txt"
    assert told(records) == golden.read_text(encoding="utf-8").splitlines()
    causes = [event["cause"] for event in records if event["type"] == "replan.decision"]
    assert causes == ["llm-decision", "user-message", "last-step"]
    assert find(records, "message.delivered")["where"] == "round"
    answered = [event for event in records if event["type"] == "model.answered" and event["stage"] == "final"]
    final = [event for event in events if event["type"] == "final.text-delta"]
    assert "".join(event["delta"] for event in final) == answered[0]["message"]["text"] == records[-1]["text"]
    thought = "".join(event["delta"] for event in events if event["type"] == "plan.thought-delta")
    assert thought == find(records, "plan.created")["plan"]["thought"]
    assert [event["step"] for event in events if event["type"] == "plan.step-added"] == [
        step["description"] for step in find(records, "plan.created")["plan"]["steps"]
    ]
    assert set(text_of(events)) == {"s1/r2/a0", "s2/r2/a0", "s3/r2/a0"}


def test_the_state_shows_the_plan_its_steps_and_its_revisions(api: Api) -> None:
    run_id = api.start("plan my trip", model="trip", agent="troubled", mode="planned")
    state = api.ended(run_id)
    assert (state["status"], state["mode"], state["revisions"]) == ("completed", "planned", 1)
    assert [step["status"] for step in state["steps"]] == ["completed"] * 3
    assert [step["description"] for step in state["plan"]["steps"]] == ["look at the southern line", "book a seat"]


def test_the_open_step_is_cancelled_and_the_run_goes_on(api: Api) -> None:
    run_id = api.start("plan my trip", model="trip", agent="troubled", mode="planned")
    for event in api.stream(run_id):
        if event["type"] == "tool.called" and event["name"] == "hang_reading":
            answer = api.post(f"/v1/runs/{run_id}/steps/current/cancel")
            assert (answer.status_code, answer.json()["step"]) == (200, "s2")
    records = api.records(run_id)
    unknown = find(records, "tool.unknown")
    assert (unknown["key"], unknown["cause"]) == ("s2/r1/c0/result", "cancelled")
    end = next(record for record in records if record["key"] == "s2/end")
    assert (end["blocked"], end["stop"]) == (True, "cancelled")
    assert types(records)[-1] == "run.completed"


def test_a_budget_stop_still_answers_from_the_reserve(api: Api) -> None:
    limits = {"max_total_tokens": 5_000}
    run_id = api.start("plan my trip", model="trip", agent="troubled", mode="planned", limits=limits)
    state = api.ended(run_id)
    assert (state["status"], state["stop_reason"]) == ("completed", "budget")
    assert state["spent"]["input"] + state["spent"]["output"] <= 5_000
    assert "budget.exceeded" in types(api.records(run_id))


def test_a_direct_run_takes_a_message_at_its_next_round_and_has_no_step_to_cancel(api: Api) -> None:
    run_id = api.start(model="troubles", agent="troubled")
    for event in api.stream(run_id):
        if event["type"] == "tool.called" and event["name"] == "hang_reading":
            assert api.post(f"/v1/runs/{run_id}/messages", {"text": "hurry"}).status_code == 202
            assert api.post(f"/v1/runs/{run_id}/steps/current/cancel").json()["code"] == "no_open_step"
    records = api.records(run_id)
    assert find(records, "message.delivered")["boundary"] == "s1/r2"
    assert api.post(f"/v1/runs/{run_id}/messages", {"text": "too late"}).json()["code"] == "run_ended"
    assert api.post(f"/v1/runs/{run_id}/messages", {"text": " "}).status_code == 422


def test_a_message_over_the_socket_is_acknowledged(api: Api) -> None:
    run_id = api.start(model="slow-text-40", agent="counter")
    with api.socket(run_id) as socket:
        socket.send(json.dumps({"id": 1, "type": "message", "message_id": "m1", "text": "hello"}))
        flat = list(events_of(socket))
    assert {"ack": 1, "ok": True} in flat
    assert find([event for event in flat if "type" in event], "message.undelivered")["message_id"] == "m1"
    assert api.state(run_id)["undelivered"] == ["m1"]
