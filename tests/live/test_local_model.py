"""A run that a real language model decides, in real workerd. Asserts mechanics, never wording."""

import json
from collections.abc import Iterator

import pytest

from agents import calculator
from scripts import local_model
from scripts.serve import HOST, Server, free_port, serve
from tests.conftest import Figure
from tests.workerd.client import TERMINAL, Api, find, text_of, types, whole

pytestmark = [pytest.mark.live, pytest.mark.workerd, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The local model behind an OpenAI-compatible address. The first time it fetches about 500 MB."""
    port = free_port()
    try:
        process = local_model.start_server(local_model.ensure_model(print), port, print)
    except (local_model.LocalModelError, OSError) as error:
        pytest.skip(f"the local model cannot be had: {error}")
    try:
        yield f"http://{HOST}:{port}/v1"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def worker(endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Configured as scripts/dev.py does; a busy machine may take minutes to its first token."""
    variables = {
        "EDGE_AGENT_PROVIDERS": json.dumps({"local": {"base_url": endpoint, "profile": "small"}}),
        "EDGE_AGENT_MODEL": f"local/{local_model.MODEL_NAME}",
        "EDGE_AGENT_STALL_TIMEOUT": "600",
    }
    with serve(state=tmp_path_factory.mktemp("live"), variables=variables) as server:
        yield server


def test_the_local_model_finishes_a_run_with_a_calculator_call(worker: Server) -> None:
    with Api(worker.url) as api:
        run_id = api.start("What is 17 * 23?")
        events = list(api.stream(run_id))
        recorded = api.records(run_id)
    assert [event for event in events if "seq" in event] == recorded
    whole(recorded)
    called = find(recorded, "tool.called")
    assert called["name"] == "calculator"
    calculator.check(called["arguments"])
    assert find(recorded, "tool.result")["call_id"] == called["call_id"]
    assert [kind for kind in types(recorded) if kind in TERMINAL] == ["run.completed"] == types(recorded)[-1:]
    answered = [event for event in recorded if event["type"] == "model.answered"][-1]
    said = recorded[-1]["text"]
    assert said.strip()
    assert said == answered["message"]["text"] == text_of(events)[answered["key"].removesuffix("/end")]


def test_the_local_model_finishes_a_planned_run(worker: Server, figure: Figure) -> None:
    with Api(worker.url) as api:
        limits = {"max_plan_steps": 2, "max_revisions": 1, "max_steps_per_task": 4, "max_iterations": 4}
        run_id = api.start("What is 17 * 23, and what is that plus 9?", mode="planned", limits=limits)
        events = list(api.stream(run_id))
        recorded = api.records(run_id)
    whole(recorded)
    created = find(recorded, "plan.created")
    assert not created.get("fallback"), created
    assert 1 <= len(created["plan"]["steps"]) <= 2
    calls = [record for record in recorded if record["type"] == "tool.called" and record["name"] == "calculator"]
    assert calls
    for call in calls:
        calculator.check(call["arguments"])
    assert [kind for kind in types(recorded) if kind in TERMINAL] == ["run.completed"] == types(recorded)[-1:]
    assert recorded[-1]["text"].strip()
    assert recorded[-1]["text"] == "".join(e["delta"] for e in events if e["type"] == "final.text-delta")
    figure(f"{len(recorded)} records; {len(calls)} calculator calls; {recorded[-1]['text']!r}")
