"""A history that does not fit the window, in a run and on request, through HTTP in the real runtime."""

import pytest

from tests.unit.test_content import image
from tests.workerd.client import Api, find

pytestmark = pytest.mark.workerd
TEXT = "of nets and ropes " * 850
LONG = [{"role": "user" if n % 2 == 0 else "assistant", "text": f"turn {n}: {TEXT}"} for n in range(44)]
SUMMARY = "Summary of the earlier conversation:\nThe answer is here"


def test_a_run_with_a_long_history_sums_it_up_once_and_another_continues_it(api: Api) -> None:
    run_id = api.start("What did we speak of?", history=LONG)
    state = api.ended(run_id)
    assert state["status"] == "completed", state
    assert len(state["compacted_history"]) == 5
    assert state["compacted_history"][0]["text"].startswith(SUMMARY)
    assert state["compacted_history"][1:] == LONG[-4:]
    records = api.records(run_id)
    folded = find(records, "context.compacted")
    assert (folded["key"], folded["scope"], folded["turns"]) == ("s1/r1/compacted", "history", 40)
    assert find(records, "boundary")["compact"]["parts"] == ["history"]
    assert [r["stage"] for r in records if r["type"] == "model.requested"] == ["compact", "round"]
    assert sum(r["usage"]["output"] for r in records if r["type"] == "model.answered") == state["usage"]["output"]
    log = api.http.get(f"/v1/runs/{run_id}/log").content
    replayed = api.http.post("/v1/replay", content=log, headers={"content-type": "application/x-ndjson"})
    assert replayed.json()["differences"] == []
    next_id = api.start("And before that?", continues=run_id)
    assert api.ended(next_id)["status"] == "completed"
    created = find(api.records(next_id), "run.created")
    assert len(created["history"]) == 7
    assert created["history"][0]["text"].startswith(SUMMARY)


def test_a_history_is_folded_on_request(api: Api) -> None:
    left = api.post("/v1/compact", {"history": LONG[:6]})
    assert left.status_code == 200, left.text
    assert left.json()["compacted"] is False
    assert left.json()["history"] == LONG[:6]
    forced = api.post("/v1/compact", {"history": LONG[:6], "force": True}).json()
    assert forced["compacted"] is True
    assert forced["summary"].startswith("The answer is here")
    assert forced["history"][0]["text"].startswith(SUMMARY)
    assert forced["history"][1:] == LONG[2:6]
    assert forced["after_tokens"] < forced["before_tokens"]


def test_a_history_with_images_is_folded_and_comes_back_as_parts(api: Api) -> None:
    parts = [{"type": "text", "text": "And this?"}, image()]
    pictured = {"role": "user", "parts": parts}
    history = [pictured, *LONG[1:4], {**pictured, "parts": [image()]}]
    forced = api.post("/v1/compact", {"history": history, "force": True}).json()
    assert forced["history"][0]["text"].startswith(SUMMARY)
    assert forced["history"][1:] == history[1:]
    assert forced["before_tokens"] - forced["after_tokens"] > 4_000, "an image less"
    refused = api.post("/v1/compact", {"history": [{"role": "user", "parts": [{**image(), "data": "%"}]}]})
    assert (refused.status_code, refused.json()["field"]) == (422, "history.0.parts.0.data")


def test_a_wrong_history_is_a_clear_problem(api: Api) -> None:
    answer = api.post("/v1/compact", {"history": [{"role": "system", "text": "x"}]})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
