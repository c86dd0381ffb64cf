"""A run in real workerd on a model of Gemini's wire: what it streams, what it costs, and how it fails.

The server checks every request against the rules of the API; one that breaks them would end its run."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.wire.google_rules import UNSIGNED
from tests.workerd.client import Api, Event, events_of, find, text_of, types
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
MODEL = "gemini/gemini-3-flash-preview"
KEY = "a-planted-google-key"
PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(scope="module")
def google_server() -> Iterator[Running]:
    with running("google_server.py", "--script", str(HERE / "google_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def gemini(
    tmp_path_factory: pytest.TempPathFactory, google_server: Running, model_server: Running, tool_server: Running
) -> Iterator[Server]:
    provider = {"adapter": "google", "base_url": f"{google_server.url}/v1beta", "key": "GEMINI_API_KEY"}
    own = {
        **variables(model_server, tool_server),
        "EDGE_AGENT_MODEL": MODEL,
        "EDGE_AGENT_PROVIDERS": json.dumps({"gemini": provider}),
        "EDGE_AGENT_PRICES": json.dumps({MODEL: PRICE}),
        "EDGE_AGENT_MAX_RETRIES": "1",
        "EDGE_AGENT_THINKING": "low",
        "GEMINI_API_KEY": KEY,
    }
    with serve(state=tmp_path_factory.mktemp("gemini"), overlay=HERE / "worker", variables=own) as server:
        yield server


@pytest.fixture
def api(gemini: Server) -> Iterator[Api]:
    with Api(gemini.url) as client:
        yield client


def asked(google_server: Running, run_id: str) -> list[dict[str, Any]]:
    """What the server got of one run, known by its id in the text."""
    return [seen for seen in google_server.log() if run_id in json.dumps(seen["body"]["contents"])]


def cost(usage: dict[str, int]) -> float:
    """Dollars of one call."""
    cached = usage.get("cached", 0)
    dollars = (usage["input"] - cached) * PRICE["input"] + cached * PRICE["cached"] + usage["output"] * PRICE["output"]
    return dollars / 1e6


def reasoning_of(events: list[Event], part: str) -> str:
    return "".join(one["delta"] for one in events if one["type"] == "step.reasoning-delta" and one["part"] == part)


def test_text_thoughts_and_two_calls_at_once_stream_and_cost_what_they_should(
    api: Api, google_server: Running, figure: Figure
) -> None:
    run_id = f"thinks-{id(api)}"
    api.start(f"run {run_id} that thinks", run_id=run_id, agent="counter", approval="ask-writes")
    (request,) = api.until(run_id, lambda state: state["status"] == "waiting")["approvals"]
    with api.socket(run_id) as socket:  # so that nothing is said before someone listens
        assert api.post(f"/v1/runs/{run_id}/approvals/{request['call_id']}", {"approved": True}).status_code == 200
        events = list(events_of(socket))
    answers = [event for event in api.records(run_id) if event["type"] == "model.answered"]
    parts = [answer["key"].removesuffix("/end") for answer in answers[1:]]
    assert [reasoning_of(events, part) for part in parts] == ["First I look.", "Now I know it."]
    assert [text_of(events)[part] for part in parts] == ["Looking.", "All are done."]
    assert types(events).count("tool.result") == 3

    # Ten tokens a turn, of which all but the last one are read from the cache; a word is a token.
    usage = [answer["usage"] for answer in answers]
    counted = [tuple(one.get(name, 0) for name in ("input", "cached", "output", "reasoning")) for one in usage]
    assert counted == [(10, 0, 1, 0), (30, 20, 4, 3), (50, 40, 7, 4)]
    assert [answer["cost_usd"] for answer in answers] == [pytest.approx(cost(one)) for one in usage]
    state = api.state(run_id)
    assert state["cost_usd"] == pytest.approx(sum(map(cost, usage)))
    assert (state["spent"]["input"], state["spent"]["output"]) == (90, 12)
    figure(f"three rounds with thoughts: {state['spent']}")

    seen = asked(google_server, run_id)
    assert [one["status"] for one in seen] == [200] * 3
    model, user = seen[-1]["body"]["contents"][-2:]
    signed = [part.get("thoughtSignature") for part in model["parts"] if "functionCall" in part]
    assert signed[0] not in (None, UNSIGNED)
    assert signed[1] is None
    assert ["functionResponse" in part for part in user["parts"]] == [True, True]
    assert seen[0]["body"]["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "LOW", "includeThoughts": True}
    assert seen[0]["headers"]["x-goog-api-key"] == KEY
    assert KEY not in str(events) + str(api.log(run_id))


def test_an_answer_comes_in_the_form_asked_for(api: Api, google_server: Running) -> None:
    run_id = f"forms-{id(api)}"
    api.start(f"run {run_id} that forms", run_id=run_id, output_schema=SCHEMA)
    api.ended(run_id)
    assert find(api.records(run_id), "run.completed")["output"] == {"n": 7}
    config = asked(google_server, run_id)[-1]["body"]["generationConfig"]
    assert config["responseMimeType"] == "application/json"


def test_a_planned_run_is_planned_in_a_form_and_thinks_least_there(api: Api, google_server: Running) -> None:
    run_id = f"plans-{id(api)}"
    api.start(f"run {run_id} that plans", run_id=run_id, agent="counter", mode="planned")
    assert api.ended(run_id)["text"] == "It is all looked up."
    plan, *_, last = (one["body"].get("generationConfig", {}) for one in asked(google_server, run_id))
    assert (plan["responseMimeType"], plan["thinkingConfig"]["thinkingLevel"]) == ("application/json", "MINIMAL")
    assert last["thinkingConfig"]["thinkingLevel"] == "LOW"
    assert types(api.records(run_id)).count("tool.result") == 1


def test_a_run_that_began_on_another_provider_goes_on_after_a_fork(api: Api, google_server: Running) -> None:
    run_id = f"moved-{id(api)}"
    api.start(f"run {run_id}", run_id=run_id, model="rounds-1", agent="counter")
    api.ended(run_id)
    at = find(api.records(run_id), "tool.result")["seq"]
    forked = api.post(f"/v1/runs/{run_id}/fork", {"at": at, "changes": {"model": MODEL}})
    assert forked.status_code == 202, forked.text
    assert api.ended(forked.json()["run_id"])["text"] == "The answer is here, word by word."
    (seen,) = asked(google_server, run_id)
    call = next(part for part in seen["body"]["contents"][1]["parts"] if "functionCall" in part)
    assert call["thoughtSignature"] == UNSIGNED


@pytest.mark.parametrize(
    "scenario, failures",
    [("429-retry-after-1", ["rate-limited"]), ("status-503-times-1", ["overloaded"]), ("json", []), ("late-hang", [])],
)
def test_a_fault_that_passes_costs_a_retry_and_no_run(api: Api, scenario: str, failures: list[str]) -> None:
    run_id = api.start(f"please do {scenario}")
    state = api.ended(run_id)
    failed = [event["error"] for event in api.records(run_id) if event["type"] == "model.failed"]
    assert (state["status"], failed) == ("completed", failures)
    assert state["text"] == "The answer is here, word by word."


@pytest.mark.parametrize(
    "scenario, error, tries",
    [("error-in-stream", "overloaded", 2), ("cut", "truncated", 2), ("hang", "stalled", 2), ("html", "bad-answer", 1),
     ("stumbles", "bad-answer", 2), ("overflow", "context-overflow", 1), ("status-403", "unauthorized", 1)],
)  # fmt: skip
def test_a_fault_that_stays_ends_the_run_and_says_what_to_do(api: Api, scenario: str, error: str, tries: int) -> None:
    run_id = api.start(f"please do {scenario}")
    state = api.ended(run_id)
    failed = [event for event in api.records(run_id) if event["type"] == "model.failed"]
    assert state["status"] == "failed"
    assert [event["error"] for event in failed] == [error] * tries
    assert f"{MODEL} at 127.0.0.1" in failed[-1]["message"]
    assert KEY not in str(api.log(run_id))


def test_an_answer_that_a_filter_ended_says_so(api: Api) -> None:
    run_id = api.start("please do refuse")
    api.ended(run_id)
    answer = find(api.records(run_id), "model.answered")
    assert (answer["finish_reason"], answer["message"]["text"]) == ("filtered", "I cannot help with that.")
