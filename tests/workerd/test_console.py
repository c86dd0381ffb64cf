"""The lines of EDGE_AGENT_LOG_LEVEL, as the real runtime writes them."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from scripts.serve import Server, serve
from tests.servers.running import Running
from tests.workerd.client import Api
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd


def lines(server: Server) -> list[dict[str, Any]]:
    """Ours, of what wrangler has written: it paints errors."""
    text = server.log.read_text(encoding="utf-8", errors="replace")
    return [json.loads(line) for line in re.findall(r'\{"level".*\}', text)]


@pytest.mark.parametrize("level", ["debug", "info", "none"])
def test_a_run_and_a_request_are_told_as_far_as_the_level_says(
    level: str, tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running
) -> None:
    own = {**variables(model_server, tool_server), "EDGE_AGENT_LOG_LEVEL": level}
    state = tmp_path_factory.mktemp("console")
    with serve(state=state, overlay=HERE / "worker", variables=own) as server:
        with Api(server.url) as api:
            run_id = api.start("a task that nobody else has to know of", model="text")
            api.ended(run_id)
            api.http.get("/v1/approvals/a-link-that-is-not-signed")
        server.stop()
        told = lines(server)
    of_run = [line for line in told if line.get("run_id") == run_id]
    if level == "none":
        assert told == []
        return
    ends = ["run.created", "run.started", "run.completed"]
    assert [line["event"] for line in of_run if line["level"] == "info"] == ends
    assert "nobody else" not in json.dumps(told)
    requests = {(line["method"], line["path"], line["status"]) for line in told if line["event"] == "request"}
    if level == "info":
        assert [line["event"] for line in of_run] == ends
        assert requests == set()
        return
    assert [line["seq"] for line in of_run] == list(range(1, len(of_run) + 1))
    assert ("POST", "/v1/runs", 202) in requests
    assert [path for _, path, _ in requests if path.startswith("/v1/approvals")] == ["/v1/approvals/…"]


def test_agents_that_are_none_are_an_error_whose_cause_is_told(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "agents.py").write_text("agents = [None]\n", encoding="utf-8")
    with serve(state=tmp_path / "state", overlay=overlay, ready_path="/app.js") as server:
        answer = httpx2.get(f"{server.url}/healthz")
        server.stop()
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "Traceback" not in answer.text
    (told,) = lines(server)
    assert (told["level"], told["event"]) == ("error", "unexpected")
    assert "'NoneType' object has no attribute 'name'" in told["trace"]
