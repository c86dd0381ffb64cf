"""What bad input gets: a problem that names the cause and the way out, and nothing else happens."""

import uuid
from typing import Any

import httpx2
import pytest

from scripts.serve import Server
from tests.workerd.client import Api

pytestmark = pytest.mark.workerd
JSON = {"content-type": "application/json"}


def problem(answer: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    body = answer.json()
    assert (body["status"], body["code"]) == (status, code)
    assert len(body["detail"]) > 10
    assert "Traceback" not in answer.text
    return body


def test_malformed_json(api: Api) -> None:
    problem(api.http.post("/v1/runs", content='{"input": ', headers=JSON), 400, "malformed_json")


def test_a_body_that_is_not_declared_as_json(api: Api) -> None:
    assert api.http.post("/v1/runs", content="input=hi").status_code == 415


def test_an_unknown_agent_names_the_known_ones(api: Api) -> None:
    body = problem(api.post("/v1/runs", {"input": "hi", "agent": "nobody"}), 422, "unknown_agent")
    assert "counter" in body["detail"]


def test_empty_input(api: Api) -> None:
    answer = api.post("/v1/runs", {"input": "  "})
    assert answer.status_code == 422
    assert "input" in answer.text


def test_an_unknown_field_and_an_unknown_model(api: Api) -> None:
    assert "inptu" in api.post("/v1/runs", {"input": "hi", "inptu": 1}).text
    body = problem(api.post("/v1/runs", {"input": "hi", "model": "nobody/x"}), 422, "unknown_model")
    assert "nobody" in body["detail"]


@pytest.mark.parametrize("size", [1_048_577, 2_000_000, 9_000_000])
def test_a_client_that_sends_too_much_reads_why(api: Api, size: int) -> None:
    problem(api.post("/v1/runs", {"input": "x" * size}), 413, "body_too_large")


def test_nearly_a_megabyte_of_input_is_taken_whole(api: Api) -> None:
    task = "x" * 1_000_000
    run_id = api.start(task, model="text")
    error = api.ended(run_id)["error"]
    assert (error["kind"], error["code"]) == ("provider", "context-overflow"), "no model was sent what no window holds"
    assert api.log(run_id)[1]["data"]["input"] == task
    created = api.records(run_id)[0]
    assert created["cut"][0]["chars"] == 1_000_000
    assert api.http.get(f"/v1/runs/{run_id}/files/{created['cut'][0]['file']}").text == task


def test_limits_only_go_down(api: Api) -> None:
    body = problem(api.post("/v1/runs", {"input": "hi", "limits": {"max_steps": 41}}), 422, "limit_too_high")
    assert "40" in body["detail"]


def test_an_unknown_run(api: Api) -> None:
    problem(api.http.get("/v1/runs/nobody"), 404, "unknown_run")
    problem(api.post("/v1/runs/nobody/answers/q", {"answer": "x"}), 404, "unknown_run")


def test_a_taken_run_id(api: Api) -> None:
    run_id = api.start(model="text")
    problem(api.post("/v1/runs", {"input": "go", "run_id": run_id}), 409, "run_exists")


def test_one_idempotency_key_is_one_run(api: Api) -> None:
    key = uuid.uuid4().hex
    body = {"input": "go", "model": "openai-compatible/text"}
    first = api.post("/v1/runs", body, idempotency_key=key)
    second = api.post("/v1/runs", body, idempotency_key=key)
    assert first.status_code == second.status_code == 202
    assert first.json()["run_id"] == second.json()["run_id"]
    problem(api.post("/v1/runs", {**body, "input": "other"}, idempotency_key=key), 409, "idempotency_conflict")


def test_an_unknown_path_and_a_wrong_method(api: Api) -> None:
    problem(api.http.get("/v1/nothing"), 404, "unknown_route")
    assert api.http.delete("/healthz").status_code == 405


def test_a_page_elsewhere_and_a_rebound_name_are_shut_out(worker: Server) -> None:
    body = {"input": "hi"}
    elsewhere = httpx2.post(f"{worker.url}/v1/runs", json=body, headers={"origin": "https://evil.example"})
    assert elsewhere.status_code == 403
    rebound = httpx2.get(f"{worker.url}/v1/agents", headers={"host": "evil.example"})
    assert rebound.status_code == 401
    assert "EDGE_AGENT_TOKEN" in rebound.json()["detail"]


def test_the_openapi_description_has_a_schema_for_every_body(api: Api) -> None:
    description = api.http.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                if status not in ("101", "204"):
                    assert response.get("content"), (path, method, status)


def test_agents_tools_health_and_docs_are_there(api: Api) -> None:
    assert api.http.get("/v1/agents").json()["agents"][0]["name"] == "counter"
    assert "charge" in [tool["name"] for tool in api.http.get("/v1/tools").json()["tools"]]
    assert api.http.get("/healthz").json()["status"] == "ok"
    assert "text/html" in api.http.get("/docs").headers["content-type"]
    assert "text/html" in api.http.get("/").headers["content-type"]
