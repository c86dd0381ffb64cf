"""One planned run through what can come its way: a failure, a message, a person who is asked while the object sleeps.

Its events are a golden file that reads well.
"""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, find, types, whole

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(600)]
HERE = Path(__file__).parent
IDLE = 13.0  # seconds of no request; the platform lets go of an idle object after ten


@pytest.fixture(scope="module")
def journeys(tmp_path_factory: pytest.TempPathFactory, tool_server: Running) -> Iterator[Server]:
    with running("model_server.py", "--script", str(HERE / "journey_script.json")) as model:
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/journey",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "TOOL_SERVER_URL": tool_server.url,
        }
        folder = tmp_path_factory.mktemp("journeys")
        with serve(state=folder, overlay=HERE / "approvals_worker", variables=variables) as server:
            yield server


def instances(server: Server, run_id: str) -> list[str]:
    said = server.log.read_text(encoding="utf-8", errors="replace")
    return re.findall(rf"instance (\w+) has read {run_id}\b", said)


def test_a_failure_a_message_and_an_approval_after_a_sleep_in_one_planned_run(
    journeys: Server, tool_server: Running, figure: Figure
) -> None:
    with Api(journeys.url) as api:
        run_id = api.start("plan my journey", agent="clerk", mode="planned")
        state = api.until(run_id, lambda s: s["status"] == "waiting")
        asked = state["approvals"][0]
        message = {"text": "go by the south", "id": "m1"}
        assert api.post(f"/v1/runs/{run_id}/messages", message).status_code == 202
        before = instances(journeys, run_id)
        time.sleep(IDLE)  # in which nobody asks anything of the object: that is what is tested here
        decision = api.post(f"/v1/runs/{run_id}/approvals/{asked['call_id']}", {"approved": True})
        assert decision.status_code == 200, decision.text
        assert api.ended(run_id)["status"] == "completed"
        records = api.records(run_id)
    after = instances(journeys, run_id)
    figure(f"instances of {run_id}: {before} before the decision, {after} after it")
    assert len(set(after)) > len(set(before)) >= 1
    whole(records)
    told = [f"{record['key']}  {record['type']}" for record in records]
    assert told == (HERE / "golden" / "journey.txt").read_text(encoding="utf-8").splitlines(), "\n".join(told)
    causes = [record["cause"] for record in records if record["type"] == "replan.decision"]
    assert causes == ["llm-decision", "user-message", "last-step"]
    assert find(records, "message.delivered")["where"] == "round"
    effects = [(seen["path"], seen["n"]) for seen in tool_server.log() if seen.get("run") == run_id]
    assert sorted(effects) == [("/charge", 1), ("/lookup", 2)]
    assert types(records)[-1] == "run.completed"
