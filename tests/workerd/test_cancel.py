"""Cancel of a run: the provider sees the connection close, one terminal record, nothing begins after it."""

import time

import pytest

from tests.servers.running import Running
from tests.workerd.client import Api, types, until

pytestmark = pytest.mark.workerd


def test_a_cancel_in_mid_stream_closes_the_providers_connection(api: Api, model_server: Running) -> None:
    run_id = api.start(f"mark {time.monotonic_ns()}", model="slow-text-900", agent="counter")
    stream = api.stream(run_id)
    next(event for event in stream if event["type"] == "step.text-delta")
    assert api.post(f"/v1/runs/{run_id}/cancel").status_code in (200, 202)
    rest = list(stream)
    assert rest[-1]["type"] == "run.cancelled"
    _until_closed_early(model_server)
    records = api.records(run_id)
    assert types(records)[-4:] == ["model.requested", "cancel.requested", "model.failed", "run.cancelled"]
    assert types(records).count("run.cancelled") == 1


def _until_closed_early(server: Running) -> None:
    until(server.log, lambda log: any(seen["scenario"] == "slow-text-900" and seen["closed_early"] for seen in log))


def test_a_second_cancel_changes_nothing(api: Api) -> None:
    run_id = api.start(model="slow-text-900", agent="counter")
    for _ in range(3):
        assert api.post(f"/v1/runs/{run_id}/cancel").status_code in (200, 202)
    assert api.ended(run_id)["status"] == "cancelled"
    before = api.records(run_id)
    api.post(f"/v1/runs/{run_id}/cancel")
    assert api.records(run_id) == before


def test_a_cancelled_run_is_resumed(api: Api) -> None:
    run_id = api.start(model="slow-text-60", agent="counter")
    next(event for event in api.stream(run_id) if event["type"] == "step.text-delta")
    api.post(f"/v1/runs/{run_id}/cancel")
    api.ended(run_id)
    assert api.post(f"/v1/runs/{run_id}/resume").status_code in (200, 202)
    state = api.until(run_id, lambda state: state["status"] == "completed")
    assert state["life"] == 1


def test_a_disconnect_cancels_nothing(api: Api) -> None:
    run_id = api.start(model="slow-text-40", agent="counter")
    stream = api.stream(run_id)
    next(event for event in stream if event["type"] == "step.text-delta")
    stream.close()
    assert api.ended(run_id)["status"] == "completed"


def test_an_unknown_run_cannot_be_cancelled_or_resumed(api: Api) -> None:
    for verb in ("cancel", "resume"):
        answer = api.post(f"/v1/runs/nobody/{verb}")
        assert answer.status_code == 404
        assert answer.json()["code"] == "unknown_run"
