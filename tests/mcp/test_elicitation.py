"""What servers of both generations ask a person in the middle of a call, in runs of the deployed Worker."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from scripts.serve import NODE_MODULES, ROOT, Server, serve
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find

pytestmark = [
    pytest.mark.workerd,
    pytest.mark.mcp,
    pytest.mark.skipif(
        not (NODE_MODULES / ".bin" / "wrangler").exists() or not (ROOT / "python_modules").exists(),
        reason="the real runtime is not installed: run `make setup`",
    ),
]
GENERATIONS = ("new", "old")
SERVERS = (*GENERATIONS, "hasty")  # it is of the older generation, and its calls have no time to be held open in


@dataclass(frozen=True)
class Place:
    worker: Server
    servers: dict[str, Running]

    def log(self, server: str) -> list[Any]:
        return httpx2.get(f"{self.servers[server].url}/_log", timeout=30).json()["log"]

    def booked(self, server: str) -> list[Any]:
        return [entry[1:] for entry in self.log(server) if entry[0] == "booked"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    state = tmp_path_factory.mktemp("elicitation")
    script = {
        name: [{"calls": [{"name": f"{name}__book", "arguments": "{}"}]}, {"text": "Booked."}] for name in SERVERS
    }
    (state / "script.json").write_text(json.dumps(script))
    with (
        running("mcp_server.py") as new,
        running("mcp_server.py", "--legacy") as old,
        running("mcp_server.py", "--legacy") as hasty,
        running("model_server.py", "--script", str(state / "script.json")) as model,
    ):
        servers = {"new": new, "old": old, "hasty": hasty}
        configured: dict[str, Any] = {name: {"url": f"{server.url}/mcp"} for name, server in servers.items()}
        configured["hasty"]["timeout"] = 1
        variables = {
            "EDGE_AGENT_MODEL": "openai-compatible/new",
            "EDGE_AGENT_BASE_URL": f"{model.url}/v1",
            "EDGE_AGENT_MCP_SERVERS": json.dumps(configured),
            "EDGE_AGENT_TOOL_SELECTION": "all",
        }
        with serve(state=state, variables=variables) as server:
            yield Place(server, servers)


@pytest.fixture
def api(place: Place) -> Iterator[Api]:
    with Api(place.worker.url) as client:
        yield client


def asked(api: Api, run_id: str) -> Event:
    state = api.until(run_id, lambda state: state["status"] == "waiting")
    (question,) = state["waiting_for"]["questions"]
    return question


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_run_waits_for_what_the_server_asks_and_the_call_is_made_with_the_answer(
    place: Place, api: Api, generation: str
) -> None:
    run_id = api.start(model=generation)
    question = asked(api, run_id)
    assert (question["for_"], question["question"], question["server"]) == ("answer", "How many seats?", generation)
    assert question["schema"]["properties"]["n"]["type"] == "integer"
    path = f"/v1/runs/{run_id}/answers/{question['question_id']}"
    wrong = api.post(path, {"answer": '{"n": "many"}'})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "wrong_answer")
    place.worker.kill_runtime()
    place.worker.wait_until_ready()
    assert api.post(path, {"answer": '{"n": 3}'}).status_code == 200
    assert api.ended(run_id)["status"] == "completed"
    assert find(api.records(run_id), "tool.result")["output"] == 'accept {"n": 3}'
    assert place.booked(generation) == [["accept", {"n": 3}]]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_person_who_declines_is_told_to_the_server(place: Place, api: Api, generation: str) -> None:
    run_id = api.start(model=generation)
    api.post(f"/v1/runs/{run_id}/answers/{asked(api, run_id)['question_id']}", {"answer": "decline"})
    assert api.ended(run_id)["status"] == "completed"
    assert find(api.records(run_id), "tool.result")["output"] == "decline null"


def test_an_answer_that_comes_at_once_goes_into_the_very_call_that_an_older_server_keeps_open(
    place: Place, api: Api
) -> None:
    before = len(place.log("old"))
    run_id = api.start(model="old")
    question = asked(api, run_id)
    assert api.post(f"/v1/runs/{run_id}/answers/{question['question_id']}", {"answer": "5"}).status_code == 200
    assert api.ended(run_id)["status"] == "completed"
    assert [entry for entry in place.log("old")[before:] if entry[0] in ("call", "booked", "cancelled")] == [
        ["call", "book"],
        ["booked", "accept", {"n": 5}],
    ]
    keys = [event["key"] for event in api.records(run_id) if event["type"].startswith(("tool.", "question."))]
    assert keys == [f"s1/r1/c0/{end}" for end in ("call", "ask/0", "ask/0/answer", "call/1", "result")]


def test_a_call_that_nobody_answers_in_time_is_cancelled_at_its_server_and_made_again(place: Place, api: Api) -> None:
    run_id = api.start(model="hasty")
    question = asked(api, run_id)
    api.until(run_id, lambda _: ["cancelled", "book"] in place.log("hasty"))
    assert api.post(f"/v1/runs/{run_id}/answers/{question['question_id']}", {"answer": "6"}).status_code == 200
    assert api.ended(run_id)["status"] == "completed"
    assert place.log("hasty").count(["call", "book"]) == 2
    assert place.booked("hasty") == [["accept", {"n": 6}]]
