"""MCP servers in a run of the deployed Worker: configured by the variable, in real workerd."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, free_port, serve
from tests.servers.running import Running, running
from tests.workerd.client import Api, every, until

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def docs() -> Iterator[Running]:
    with running("mcp_server.py", "--token", "t0ken") as server:
        yield server


@pytest.fixture(scope="module")
def old() -> Iterator[Running]:
    with running("mcp_server.py", "--legacy") as server:
        yield server


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, docs: Running, old: Running) -> Iterator[Server]:
    servers = {
        "docs": {"url": f"{docs.url}/mcp", "headers": {"Authorization": "Bearer t0ken"}},
        "down": {"url": f"http://127.0.0.1:{free_port()}/mcp"},
        "old": {"url": f"{old.url}/mcp", "allow": ["echo", "slow"]},
    }
    with running("model_server.py", "--script", str(HERE / "model_script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/mcp",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps(servers),
            "EDGE_AGENT_TOOL_SELECTION": "all",
        }
        with serve(state=tmp_path_factory.mktemp("mcp"), variables=variables) as server:
            yield server


@pytest.fixture
def api(worker: Server) -> Iterator[Api]:
    with Api(worker.url) as client:
        yield client


def log_of(server: Running) -> dict[str, Any]:
    return httpx2.get(f"{server.url}/_log", timeout=30).json()


def test_a_run_uses_the_tools_of_two_servers_and_goes_on_without_a_third(api: Api, docs: Running) -> None:
    run_id = api.start(model="mcp")
    passing = [event for event in api.stream(run_id) if event["type"] == "tool.progress"]
    records = api.records(run_id)
    assert records[-1]["type"] == "run.completed", records[-1]
    assert records[-1]["text"] == "All done."
    results = {event["name"]: event for event in records if event["type"] == "tool.result"}
    assert results["docs__charge"]["output"] == "charged 5"
    assert results["old__echo"]["output"] == "hi"
    assert results["old__slow"]["output"] == "slept"
    assert "image-1.png" in results["docs__image"]["output"]
    rejected = next(event for event in records if event["type"] == "tool.rejected")
    assert "`text`: 5 is not of type 'string'" in rejected["message"]
    assert [event["progress"] for event in passing] == [0, 1, 2]
    faults = [event["message"] for event in records if event["type"] == "fault"]
    assert any(message.startswith("The MCP server down (http://127.0.0.1:") for message in faults), faults
    called = next(event for event in records if event["type"] == "tool.called" and event["name"] == "docs__charge")
    assert (called["server"], called["safe_to_repeat"]) == ("docs", False)
    charges = log_of(docs)["charges"]
    assert charges[f'{called["idempotency_key"]} {{"amount": 5}}'] == 1
    assert "t0ken" not in json.dumps(records)


def test_cancelling_the_run_stops_the_tool_at_the_server(api: Api, old: Running) -> None:
    run_id = api.start(model="cancel")
    until(lambda: every(api.records(run_id), "tool.called"))
    until(lambda: ["call", "slow"] in log_of(old)["log"])
    assert api.post(f"/v1/runs/{run_id}/cancel").status_code < 300
    until(lambda: any(entry[0] == "cancelled" for entry in log_of(old)["log"]))
    assert api.ended(run_id)["status"] == "cancelled"


def test_an_unsafe_call_whose_answer_is_lost_is_on_record_as_unknown(api: Api, docs: Running) -> None:
    httpx2.post(f"{docs.url}/_fault", params={"kind": "drop"}, timeout=30).raise_for_status()
    run_id = api.start(model="lost")
    assert api.ended(run_id)["status"] == "completed"
    unknown = next(event for event in api.records(run_id) if event["type"] == "tool.unknown")
    assert "may have been made" in unknown["message"]
    assert sum(count for key, count in log_of(docs)["charges"].items() if '"amount": 7' in key) == 1
