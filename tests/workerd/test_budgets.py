"""Caps in real workerd, measured by what the model server got and sent, with a real tokenizer."""

import json
from typing import Any

import httpx2
import pytest

from tests.conftest import Figure
from tests.servers.running import Running
from tests.tokenizer import count
from tests.workerd.client import Api, find, types

AROUND = 4  # tokens a provider writes around each message


def spent_on(model_server: Running, run_id: str) -> tuple[int, int]:
    """(input, output) of the model calls of one run, as a provider would count them."""
    seen = [one for one in httpx2.get(f"{model_server.url}/_log").json() if run_id in json.dumps(one["body"])]
    assert seen, "the run's calls are known by its id in their text"
    got = sum(_input(one["body"]) for one in seen)
    return got, sum(one["chunks"] for one in seen)  # a chunk is a word or a call, and no more than a few tokens


def _input(body: dict[str, Any]) -> int:
    told = [message.get("content") or "" for message in body["messages"]]
    calls = [json.dumps(message.get("tool_calls", "")) for message in body["messages"]]
    return (
        sum(count(text) + AROUND for text in told) + sum(map(count, calls)) + count(json.dumps(body.get("tools", "")))
    )


@pytest.mark.parametrize("cap", [1_200, 3_000, 8_000])
def test_a_run_spends_no_more_than_its_cap_and_still_answers(
    api: Api, model_server: Running, cap: int, figure: Figure
) -> None:
    run_id = f"capped-{cap}-{id(api)}"
    limits = {"max_total_tokens": cap, "max_steps": 40}
    api.start(f"run {run_id}, do rounds-30-4000", model="talker", agent="counter", limits=limits, run_id=run_id)
    state = api.ended(run_id)
    assert (state["status"], state["stop_reason"]) == ("completed", "budget")
    assert state["text"]
    got, sent = spent_on(model_server, run_id)
    figure(f"a cap of {cap}: {got} tokens got, {sent} sent, {(got + sent) / cap:.2f} of it")
    assert got + sent <= cap
    spent = state["spent"]
    assert spent["input"] + spent["output"] <= cap
    assert types(api.records(run_id)).count("budget.exceeded") == 1


def test_a_cap_too_small_is_refused_with_the_smallest_that_works(api: Api) -> None:
    body: dict[str, Any] = {"input": "go", "agent": "counter", "limits": {"max_total_tokens": 10}}
    refused = api.post("/v1/runs", body)
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (422, "limit_too_low")
    assert problem["field"] == "limits.max_total_tokens"
    body["limits"] = {"max_total_tokens": problem["smallest"]}
    assert api.post("/v1/runs", body).status_code == 202


def test_a_cap_on_dollars_needs_a_price(api: Api) -> None:
    body = {"input": "go", "model": "elsewhere/unknown", "limits": {"max_cost_usd": 1.0}}
    refused = api.post("/v1/runs", body)
    assert (refused.status_code, refused.json()["code"]) == (422, "unknown_price")
    assert "EDGE_AGENT_PRICES" in refused.json()["detail"]


def test_dollars_are_counted_in_the_answers_the_state_and_the_end(api: Api) -> None:
    run_id = api.start("please do rounds-3-50", model="priced", agent="counter")
    events = list(api.stream(run_id))
    state = api.ended(run_id)
    answers = [event for event in events if event["type"] == "model.answered"]
    cost = sum(event["usage"]["input"] * 1.0 + event["usage"]["output"] * 4.0 for event in answers) / 1e6
    assert sum(event["cost_usd"] for event in answers) == pytest.approx(cost)
    assert find(events, "run.completed")["cost_usd"] == state["cost_usd"] == pytest.approx(cost)
    assert state["spent"]["usd"] == pytest.approx(cost)


def test_a_cap_on_dollars_is_never_crossed(api: Api) -> None:
    limits = {"max_cost_usd": 0.004, "max_steps": 40}
    run_id = api.start("please do rounds-30-4000", model="priced", agent="counter", limits=limits)
    state = api.ended(run_id)
    assert (state["status"], state["stop_reason"]) == ("completed", "budget")
    assert state["text"]
    assert 0.001 < state["cost_usd"] <= 0.004
    assert find(api.records(run_id), "budget.exceeded")["kind"] == "usd"
