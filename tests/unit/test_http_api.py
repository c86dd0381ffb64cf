"""The API as a whole: who may call, what is offered, what is said of errors, and the description of it all."""

import json

import pytest

from edge_agent.http.problems import problem as told_as
from tests.unit.http_fakes import TOKEN, Api, problem


# -- who may call
async def test_without_a_token_only_this_machine_is_answered() -> None:
    told = problem(await Api("http://agent.example").get("/v1/agents"), 401, "token_required")
    assert "EDGE_AGENT_TOKEN" in told["detail"]
    assert (await Api("http://127.0.0.1:8787").get("/v1/agents")).status_code == 200
    problem(await Api().get("/v1/agents", origin="http://evil.example"), 403, "wrong_origin")


async def test_a_refused_caller_is_told_how_to_authenticate_before_the_body_is_looked_at() -> None:
    answer = await Api(TOKEN=TOKEN).post("/v1/runs", b"{", content_type="application/json")
    problem(answer, 401, "token_required")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_health_and_the_description_need_no_token() -> None:
    api = Api("https://agent.example", TOKEN=TOKEN, MAX_RETRIES="many")
    health = (await api.get("/healthz")).json()
    assert (health["status"], health["version"]) == ("misconfigured", "1.2.3")
    assert health["faults"][0]["setting"] == "EDGE_AGENT_MAX_RETRIES"
    assert (await api.get("/openapi.json")).status_code == 200


async def test_a_broken_token_variable_lets_nobody_in_and_says_which_it_is() -> None:
    answer = await Api(TOKEN="secret-one,secret-two").get("/v1/agents")
    assert problem(answer, 503, "configuration")["setting"] == "EDGE_AGENT_TOKEN"
    assert "secret-one" not in answer.text


async def test_a_page_of_a_named_origin_may_ask_and_read() -> None:
    api = Api("https://agent.example", TOKEN=TOKEN, CORS="https://app.example")
    origin = "https://app.example"
    asks = {"origin": origin, "access-control-request-method": "POST"}
    preflight = await api.client.options("/v1/runs", headers=asks)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == origin
    assert "idempotency-key" in preflight.headers["access-control-allow-headers"]
    refused = await api.get("/v1/agents", origin=origin)
    assert refused.headers["access-control-allow-origin"] == origin
    other = await api.client.options("/v1/runs", headers={**asks, "origin": "https://evil.example"})
    problem(other, 403, "wrong_origin")
    assert "access-control-allow-origin" not in other.headers


async def test_without_named_origins_no_page_elsewhere_reads_anything() -> None:
    answer = await Api(TOKEN=TOKEN).get("/v1/agents", origin="https://app.example", authorization=f"Bearer {TOKEN}")
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


# -- the rest
async def test_what_is_offered_is_listed_and_what_cannot_be_reached_is_named() -> None:
    api = Api()
    assert (await api.get("/v1/agents")).json()["agents"][0]["limits"]["max_steps"] == 10
    tools = (await api.get("/v1/tools")).json()
    assert tools["tools"][0]["name"] == "clock"
    assert "docs" in tools["unreachable"][0]


async def test_an_unknown_path_is_answered_with_those_near_it() -> None:
    told = problem(await Api().get("/v1/run"), 404, "unknown_route")
    assert "/v1/runs" in told["nearby"]


@pytest.mark.parametrize(
    "path, right", [("/v1/runs/r1/cancel", "POST"), ("/v1/runs", "GET, POST"), ("/openapi.json", "GET")]
)
async def test_a_wrong_method_is_answered_with_the_right_ones(path: str, right: str) -> None:
    answer = await Api().client.request("DELETE", path)
    told = problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == right
    assert told["detail"] == f"This path takes {right.replace(', ', ' or ')} only."


async def test_what_is_not_foreseen_says_nothing_of_its_cause_and_its_line_on_the_console_holds_no_secret() -> None:
    api = Api(TOKEN=TOKEN)
    answer = await api.post("/v1/runs", {"input": "broken"}, authorization=f"Bearer {TOKEN}")
    problem(answer, 500, "internal")
    assert "secret" not in answer.text
    (line,) = map(json.loads, api.lines)
    assert (line["level"], line["event"], line["at"]) == ("error", "unexpected", "1970-01-12T13:46:40.000Z")
    assert "ZeroDivisionError: a secret stands here: [secret]" in line["trace"]
    assert TOKEN not in api.lines[0]


async def test_a_fault_of_the_deployment_names_the_variable_and_no_secret() -> None:
    api = Api(TOKEN=TOKEN)
    answer = await api.post("/v1/runs", {"input": "misconfigured"}, authorization=f"Bearer {TOKEN}")
    assert problem(answer, 503, "configuration")["setting"] == "EDGE_AGENT_MODEL"
    assert TOKEN not in answer.text


def test_what_may_be_tried_again_says_when_in_a_header_too() -> None:
    assert told_as(503, "run_unavailable", "Try again.", retry_after=2).headers["retry-after"] == "2"


# -- the description
async def test_every_operation_describes_its_body_its_answers_and_its_problems() -> None:
    document = (await Api().get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    for path, item in document["paths"].items():
        for method, operation in item.items():
            assert operation["summary"], (method, path)
            assert operation["description"], (method, path)
            for status, response in operation["responses"].items():
                if status not in ("101", "204"):
                    assert response["content"], (method, path, status)
                    assert all(content["schema"] for content in response["content"].values()), (method, path, status)
                if int(status) >= 400:
                    assert list(response["content"]) == ["application/problem+json"], (method, path, status)
    assert document["paths"]["/v1/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(document["paths"]) >= {"/v1/runs/{run_id}/events", "/v1/runs/{run_id}/ws", "/v1/runs/{run_id}/log"}


async def test_every_reference_of_the_description_leads_somewhere() -> None:
    text = (await Api().get("/openapi.json")).text
    schemas = json.loads(text)["components"]["schemas"]
    references = {part.split('"', 1)[0] for part in text.split('"$ref":"#/components/schemas/')[1:]}
    assert references <= set(schemas)
    assert {"Problem", "Event", "RunCreated", "ToolResult", "StepTextDelta"} <= set(schemas)
