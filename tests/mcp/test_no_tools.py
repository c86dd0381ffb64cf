"""An agent that does not work without the tools of its servers, whose only server is down and comes back."""

import json
import sys
from pathlib import Path

import pytest

from scripts.serve import NODE_MODULES, ROOT, free_port, serve
from tests.servers.running import running, running_command
from tests.workerd.client import Api, types

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
AGENTS = """
from edge_agent import Agent

agents = [Agent(name="needy", fail_on_no_tools=True), Agent(name="easy")]
"""
LOOKUP = {"name": "docs__lookup", "arguments": json.dumps({"q": "two"})}
SCRIPT = {"looks": [{"calls": [LOOKUP]}, {"text": "Done."}]}


def test_its_run_fails_with_the_cause_and_goes_on_by_a_resume_when_the_server_is_there(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT))
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "agents.py").write_text(AGENTS)
    port = free_port()
    with running("model_server.py", "--script", str(tmp_path / "script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/looks",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_TOOL_SELECTION": "all",
            "EDGE_AGENT_MCP_SERVERS": json.dumps({"docs": {"url": f"http://127.0.0.1:{port}/mcp"}}),
        }
        with (
            serve(state=tmp_path / "state", overlay=tmp_path / "overlay", variables=variables) as server,
            Api(server.url) as api,
        ):
            run_id = api.start(agent="needy")
            failed = api.ended(run_id)
            assert (failed["status"], failed["error"]["code"]) == ("failed", "no-tools")
            assert "The MCP server docs" in failed["error"]["message"]
            assert "model.requested" not in types(api.records(run_id))
            assert api.ended(api.start(agent="easy", model="text"))["status"] == "completed"
            command = [sys.executable, "-m", "tests.servers.mcp_server", "--port", str(port)]
            with running_command(command, port):
                assert api.post(f"/v1/runs/{run_id}/resume").status_code in (200, 202)
                assert api.ended(run_id)["status"] == "completed"
            results = [event["output"] for event in api.records(run_id) if event["type"] == "tool.result"]
            assert results == ["found two"]
