"""A run over HTTP in real workerd, from its start to its end."""

import pytest

from tests.servers.running import Running
from tests.workerd.client import Api, Event, events_of, find, text_of, types, whole

pytestmark = pytest.mark.workerd


def test_twenty_tool_rounds_stream_to_a_socket_and_an_event_stream_at_once(api: Api) -> None:
    run_id = api.start(model="rounds-20", agent="counter")
    with api.socket(run_id) as socket:
        by_stream = list(api.stream(run_id))
        by_socket = list(events_of(socket))
        assert socket.close_code == 1000
    recorded = api.records(run_id)
    assert [e for e in by_stream if "seq" in e] == recorded
    assert [e for e in by_socket if "seq" in e] == recorded
    whole(recorded)
    assert types(recorded).count("tool.result") == 20
    answer = recorded[-2]
    assert answer["type"] == "model.answered"
    assert recorded[-1]["type"] == "run.completed"
    said = answer["message"]["text"]
    for events in (by_stream, by_socket):
        texts = text_of(events)
        assert texts[answer["key"].removesuffix("/end")] == said == recorded[-1]["text"]


def test_the_state_folds_the_log(api: Api) -> None:
    run_id = api.start(model="rounds-2", agent="counter", metadata={"ticket": 7})
    state = api.ended(run_id)
    assert state["status"] == "completed"
    assert state["stop_reason"] == "stop"
    assert state["rounds"] == 3
    assert state["usage"]["output"] > 0
    assert state["spent"]["tool_calls"] == 2
    assert state["seq"] == len(api.records(run_id))


def test_calls_of_one_answer_are_answered_in_their_order(api: Api, tool_server: Running) -> None:
    run_id = api.start(model="mixed", agent="counter")
    assert api.ended(run_id)["text"] == "Both done."
    seen = [entry for entry in tool_server.log() if entry.get("run") == run_id]
    assert sorted(entry["n"] for entry in seen) == [1, 2, 3, 4, 5]
    assert len({entry["key"] for entry in seen}) == 5


def test_every_trouble_with_a_tool_is_answered_and_the_run_goes_on(api: Api) -> None:
    run_id = api.start(model="troubles", agent="troubled")
    events = list(api.stream(run_id))
    assert events[-1]["type"] == "run.completed"
    answers = {event["call_id"]: event for event in events if event["type"] in ANSWERS}
    called = [call["id"] for call in find(events, "model.answered")["message"]["calls"]]
    assert set(answers) == set(called)
    in_order = [answers[call_id] for call_id in called]
    told = [told_of(event) for event in in_order]
    assert "out of paper" in told[0]
    assert "number" in told[1] or "integer" in told[1]
    assert in_order[2]["files"][0]["bytes"] == 5_242_880
    assert in_order[2]["model_chars"] <= 20_000
    assert (in_order[3]["type"], in_order[3]["cause"]) == ("tool.unknown", "timed-out")
    assert (in_order[4]["type"], in_order[4]["ok"]) == ("tool.result", False)
    assert in_order[5]["ok"]
    assert (in_order[6]["type"], in_order[6]["reason"]) == ("tool.rejected", "invalid-arguments")
    assert "n" in in_order[6]["message"]
    assert in_order[7]["reason"] == "invalid-arguments"
    assert in_order[8]["output"] == "lookup 7 done"
    assert in_order[9]["reason"] == "unknown-tool"
    assert [event["progress"] for event in events if event["type"] == "tool.progress"] == [0, 1, 2]


ANSWERS = {"tool.result", "tool.unknown", "tool.rejected"}


def told_of(event: Event) -> str:
    return str(event.get("output") or event.get("message"))


def test_a_long_result_is_whole_in_a_file(api: Api) -> None:
    run_id = api.start(model="troubles", agent="troubled")
    api.ended(run_id)
    result = next(e for e in api.records(run_id) if e["type"] == "tool.result" and e["files"])
    file = api.http.get(f"/v1/runs/{run_id}/files/{result['files'][0]['name']}")
    assert file.status_code == 200
    assert len(file.content) == 5_242_880
    assert api.http.get(f"/v1/runs/{run_id}/files/nothing").json()["code"] == "unknown_file"


def test_a_cap_on_steps_gives_one_last_round_without_tools(api: Api) -> None:
    run_id = api.start(model="rounds-20", agent="counter", limits={"max_steps": 3})
    state = api.ended(run_id)
    assert (state["status"], state["stop_reason"]) == ("completed", "max_steps")
    records = api.records(run_id)
    assert types(records).count("tool.result") == 3
    assert find(records, "budget.exceeded")["kind"] == "steps"


def test_a_cap_on_tokens_is_never_crossed(api: Api) -> None:
    run_id = api.start(model="rounds-20", agent="counter", limits={"max_total_tokens": 3_000})
    state = api.ended(run_id)
    assert (state["status"], state["stop_reason"]) == ("completed", "budget")
    spent = state["spent"]
    assert spent["input"] + spent["output"] <= 3_000


def test_a_cap_on_tool_calls_answers_the_rest_with_a_budget_error(api: Api) -> None:
    run_id = api.start(model="calls-5", agent="counter", limits={"max_tool_calls": 2})
    api.ended(run_id)
    records = api.records(run_id)
    assert types(records).count("tool.result") == 2
    assert [e["reason"] for e in records if e["type"] == "tool.rejected"] == ["budget"] * 3


def test_a_failed_run_is_resumed_and_repeats_nothing(api: Api, tool_server: Running) -> None:
    run_id = api.start("please do status-500-times-9 then", model="status-500-times-4", agent="counter")
    assert api.ended(run_id)["error"]["kind"] == "provider"
    assert api.post(f"/v1/runs/{run_id}/resume").status_code in (200, 202)
    api.until(run_id, lambda state: state["status"] == "completed")
    records = api.records(run_id)
    whole(records)
    assert types(records).count("run.resumed") == 1
    assert [e["life"] for e in records if e["type"].startswith("run.") and e["type"] != "run.waiting"] == [
        0,
        0,
        0,
        1,
        1,
    ]
    assert api.post(f"/v1/runs/{run_id}/resume").json()["code"] == "run_completed"


def test_a_long_retry_after_lets_go_of_the_object_and_the_alarm_goes_on(api: Api) -> None:
    run_id = api.start(f"turn {id(api)}", model="429-retry-after-7", agent="counter")
    events = list(api.stream(run_id))
    if events[-1]["type"] == "run.waiting":
        assert events[-1]["for"] == ["retry"]
        assert api.state(run_id)["status"] in ("waiting", "running", "completed")
    assert api.ended(run_id)["status"] == "completed"
    assert "timer" in types(api.records(run_id))


@pytest.mark.parametrize(
    "scenario, kind",
    [
        ("html", "bad-answer"),
        ("cut", "truncated"),
        ("hang", "stalled"),
        ("status-401", "unauthorized"),
        ("status-404", "not-found"),
        ("error-in-stream", None),
        ("overflow", "context-overflow"),
    ],
)
def test_a_model_endpoint_that_fails_ends_the_run_in_one_terminal_record(
    api: Api, scenario: str, kind: str | None
) -> None:
    run_id = api.start(model=scenario, agent="counter")
    state = api.ended(run_id)
    assert state["status"] == "failed"
    assert state["error"]["kind"] == "provider"
    if kind:
        assert state["error"]["code"] == kind
    assert state["error"]["message"]
    assert state["error"]["remedy"]
    records = api.records(run_id)
    assert [event["type"] for event in records if event["key"].startswith("end/")] == ["run.failed"]
