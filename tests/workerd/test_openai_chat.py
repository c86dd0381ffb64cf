"""A run in real workerd on a model behind chat completions: what it streams, what it costs, and how it fails.

The server checks every request against the rules of the API; one that breaks them would end its run."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, find, text_of, types
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
MODEL = "deep/deep-chat"
KEY = "sk-deep-planted-1"
PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with running("openai_server.py", "--script", str(HERE / "openai_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory, model: Running, tool_server: Running) -> Iterator[Server]:
    provider = {"base_url": f"{model.url}/v1", "profile": "deepseek", "key": "DEEP_API_KEY"}
    own = {
        **variables(model, tool_server),
        "EDGE_AGENT_MODEL": MODEL,
        "EDGE_AGENT_PROVIDERS": json.dumps({"deep": provider}),
        "EDGE_AGENT_PRICES": json.dumps({MODEL: PRICE}),
        "EDGE_AGENT_MAX_RETRIES": "1",
        "EDGE_AGENT_THINKING": "medium",
        "DEEP_API_KEY": KEY,
    }
    with serve(state=tmp_path_factory.mktemp("deep"), overlay=HERE / "worker", variables=own) as server:
        yield server


@pytest.fixture
def api(deep: Server) -> Iterator[Api]:
    with Api(deep.url) as client:
        yield client


def asked(model: Running, run_id: str) -> list[dict[str, Any]]:
    """What the server got of one run, known by its id in the text."""
    return [seen for seen in model.log() if run_id in json.dumps(seen["body"]["messages"])]


def cost(usage: dict[str, int]) -> float:
    """Dollars of one call."""
    cached = usage.get("cached", 0)
    dollars = (usage["input"] - cached) * PRICE["input"] + cached * PRICE["cached"] + usage["output"] * PRICE["output"]
    return dollars / 1e6


def reasoning_of(events: list[Event], part: str) -> str:
    return "".join(one["delta"] for one in events if one["type"] == "step.reasoning-delta" and one["part"] == part)


def test_text_streams_and_its_tokens_are_counted(api: Api) -> None:
    run_id = api.start("please: talks")
    events = list(api.stream(run_id))
    assert list(text_of(events).values()) == ["One two three four."]
    answer = find(events, "model.answered")
    assert (answer["usage"]["input"], answer["usage"]["output"]) == (20, 4)
    assert answer["cost_usd"] == pytest.approx(cost(answer["usage"]))
    assert find(events, "run.completed")["text"] == "One two three four."


def test_thoughts_two_calls_at_once_and_what_all_of_it_cost(api: Api, model: Running, figure: Figure) -> None:
    run_id = f"thinks-{id(api)}"
    api.start(f"run {run_id} that thinks", run_id=run_id, agent="counter")
    events = list(api.stream(run_id))
    state = api.ended(run_id)
    answers = [event for event in events if event["type"] == "model.answered"]
    parts = [answer["key"].removesuffix("/end") for answer in answers]
    assert [reasoning_of(events, part) for part in parts] == ["First I look.", "Now I know it."]
    assert [text_of(events)[part] for part in parts] == ["Looking.", "Both are done."]
    assert types(events).count("tool.result") == 2

    usage = [answer["usage"] for answer in answers]
    counts = [(one["input"], one.get("cached", 0), one["output"], one["reasoning"]) for one in usage]
    assert counts == [(20, 0, 4, 3), (50, 4, 7, 4)]
    assert [answer["cost_usd"] for answer in answers] == [pytest.approx(cost(one)) for one in usage]
    assert state["cost_usd"] == pytest.approx(sum(map(cost, usage)))
    assert (state["spent"]["input"], state["spent"]["output"]) == (70, 11)
    figure(f"two rounds with thoughts: {state['spent']}")

    first, second = asked(model, run_id)
    assert (first["status"], second["status"]) == (200, 200)
    said, *results = second["body"]["messages"][-3:]
    assert said["reasoning_content"] == "First I look."
    assert [call["id"] for call in said["tool_calls"]] == [result["tool_call_id"] for result in results]
    assert first["body"]["thinking"] == {"type": "enabled"}
    assert first["headers"]["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(events) + str(api.log(run_id))


def test_an_answer_comes_in_the_form_asked_for(api: Api, model: Running) -> None:
    run_id = f"forms-{id(api)}"
    api.start(f"run {run_id} that forms", run_id=run_id, output_schema=SCHEMA)
    assert find(list(api.stream(run_id)), "run.completed")["output"] == {"n": 7}
    assert asked(model, run_id)[-1]["body"]["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    "scenario, failures",
    [("429-retry-after-1", ["rate-limited"]), ("status-529-times-1", ["overloaded"]), ("json", []), ("late-cut", []),
     ("late-hang", [])],
)  # fmt: skip
def test_a_fault_that_passes_costs_a_retry_and_no_run(api: Api, scenario: str, failures: list[str]) -> None:
    run_id = api.start(f"please do {scenario}")
    state = api.ended(run_id)
    failed = [event["error"] for event in api.records(run_id) if event["type"] == "model.failed"]
    assert (state["status"], failed) == ("completed", failures)
    assert state["text"] == "The answer is here, word by word."


@pytest.mark.parametrize(
    "scenario, error, tries",
    [("error-in-stream", "overloaded", 2), ("cut", "truncated", 2), ("hang", "stalled", 2), ("html", "bad-answer", 1),
     ("overflow", "context-overflow", 1), ("status-401", "unauthorized", 1)],
)  # fmt: skip
def test_a_fault_that_stays_ends_the_run_and_says_what_to_do(api: Api, scenario: str, error: str, tries: int) -> None:
    run_id = api.start(f"please do {scenario}")
    state = api.ended(run_id)
    failed = [event for event in api.records(run_id) if event["type"] == "model.failed"]
    assert state["status"] == "failed"
    assert [event["error"] for event in failed] == [error] * tries
    assert f"{MODEL} at 127.0.0.1" in failed[-1]["message"]
    assert KEY not in str(api.log(run_id))


def test_a_refusal_is_an_answer_that_explains_itself(api: Api) -> None:
    run_id = api.start("please do refuse")
    events = list(api.stream(run_id))
    assert find(events, "model.answered")["finish_reason"] == "filtered"
    assert find(events, "run.completed")["text"] == "I cannot help with that."
