"""A run in real workerd on a model of Anthropic's wire: what it streams, what it costs, and how it fails.

The server checks every request against the rules of the Messages API; one that breaks them would end its run."""

import base64
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
PRICE = {"input": 5.0, "cached": 0.5, "cache_write": 6.25, "output": 25.0}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with running("anthropic_server.py", "--script", str(HERE / "anthropic_script.json")) as server:
        yield server


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory, model: Running, tool_server: Running) -> Iterator[Server]:
    provider = {"adapter": "anthropic", "base_url": f"{model.url}/v1", "key": "CLAUDE_API_KEY"}
    own = {
        **variables(model, tool_server),
        "EDGE_AGENT_MODEL": "claude/claude-opus-5",
        "EDGE_AGENT_PROVIDERS": json.dumps({"claude": provider}),
        "EDGE_AGENT_PRICES": json.dumps({"claude/claude-opus-5": PRICE}),
        "EDGE_AGENT_MAX_RETRIES": "1",
        "CLAUDE_API_KEY": "sk-ant-planted-1",
    }
    with serve(state=tmp_path_factory.mktemp("claude"), overlay=HERE / "worker", variables=own) as server:
        yield server


@pytest.fixture
def api(claude: Server) -> Iterator[Api]:
    with Api(claude.url) as client:
        yield client


def asked(model: Running, run_id: str) -> list[dict[str, Any]]:
    """What the server got of one run, known by its id in the text."""
    return [seen for seen in model.log() if run_id in json.dumps(seen["body"]["messages"])]


def cost(usage: dict[str, int]) -> float:
    """Dollars of one call."""
    cached, written = usage.get("cached", 0), usage.get("cache_write", 0)
    plain = usage["input"] - cached - written
    dollars = plain * PRICE["input"] + cached * PRICE["cached"] + written * PRICE["cache_write"]
    return (dollars + usage["output"] * PRICE["output"]) / 1e6


def reasoning_of(events: list[Event], part: str) -> str:
    return "".join(one["delta"] for one in events if one["type"] == "step.reasoning-delta" and one["part"] == part)


def test_text_streams_and_its_tokens_are_counted(api: Api) -> None:
    run_id = api.start("please: talks")
    events = list(api.stream(run_id))
    assert list(text_of(events).values()) == ["One two three four."]
    answer = find(events, "model.answered")
    assert (answer["usage"]["input"], answer["usage"]["output"]) == (110, 4)
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
    assert [(one["input"], one["output"], one["reasoning"]) for one in usage] == [(110, 4, 3), (210, 7, 4)]
    assert [answer["cost_usd"] for answer in answers] == [pytest.approx(cost(one)) for one in usage]
    assert state["cost_usd"] == pytest.approx(sum(map(cost, usage)))
    assert (state["spent"]["input"], state["spent"]["output"]) == (320, 11)
    figure(f"two rounds with thoughts: {state['spent']}")

    first, second = asked(model, run_id)
    assert (first["status"], second["status"]) == (200, 200)
    told = second["body"]["messages"][-2:]
    assert [block["type"] for block in told[0]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["type"] for block in told[1]["content"]] == ["tool_result", "tool_result"]
    assert first["headers"]["x-api-key"] == "sk-ant-planted-1"
    assert "sk-ant-planted-1" not in str(events) + str(api.log(run_id))


@pytest.mark.parametrize(
    "name, means", [("claude-opus-5", "output_config"), ("claude-sonnet-4-20250514", "tool_choice")]
)
def test_an_answer_comes_in_the_form_asked_for(api: Api, model: Running, name: str, means: str) -> None:
    run_id = f"forms-{name}-{id(api)}"
    body = {"input": f"run {run_id} that forms", "run_id": run_id, "model": f"claude/{name}", "output_schema": SCHEMA}
    assert api.post("/v1/runs", body).status_code == 202
    assert find(list(api.stream(run_id)), "run.completed")["output"] == {"n": 7}
    assert means in asked(model, run_id)[-1]["body"]


@pytest.mark.parametrize(
    "scenario, failures",
    [("429-retry-after-1", ["rate-limited"]), ("status-529-times-1", ["overloaded"]), ("json", []),
     ("late-cut", [])],
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
    assert "claude/claude-opus-5 at 127.0.0.1" in failed[-1]["message"]
    assert "sk-ant-planted-1" not in str(api.log(run_id))


def test_a_turn_its_provider_paused_goes_on_where_it_was(api: Api, model: Running) -> None:
    run_id = f"searches-{id(api)}"
    api.start(f"run {run_id} that searches", run_id=run_id)
    assert api.ended(run_id)["text"] == "Found it."
    assert [event["finish_reason"] for event in api.records(run_id) if event["type"] == "model.answered"] == [
        "paused",
        "stop",
    ]
    used = {"type": "server_tool_use", "id": "srvtoolu_0", "name": "web_search", "input": {"query": "x"}}
    assert without_mark(asked(model, run_id)[-1]["body"]["messages"][-1]["content"][-1]) == used


def without_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def test_a_refusal_is_an_answer_that_explains_itself(api: Api) -> None:
    run_id = api.start("please do refuse")
    events = list(api.stream(run_id))
    assert find(events, "model.answered")["finish_reason"] == "filtered"
    assert find(events, "run.completed")["text"] == "I cannot help with that."


# -- images and files
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40
PDF = b"%PDF-1.7\n1 0 obj << /Type /Page >> endobj\n" + bytes(range(256)) * 40


def parts(task: str) -> list[dict[str, str]]:
    image = {"type": "image", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    pdf = {"type": "file", "media_type": "application/pdf", "name": "r.pdf", "data": base64.b64encode(PDF).decode()}
    return [{"type": "text", "text": task}, image, pdf]


def sources(seen: dict[str, Any]) -> list[str]:
    blocks = [block for message in seen["body"]["messages"] for block in message["content"]]
    return [block["source"]["data"] for block in blocks if "source" in block]


def test_an_image_and_a_pdf_reach_the_model_and_stay_with_the_run_its_fork_and_what_continues_it(
    api: Api, model: Running
) -> None:
    run_id = f"looks-{id(api)}"
    both = [base64.b64encode(content).decode() for content in (PNG, PDF)]
    api.start("", run_id=run_id, input=parts(f"run {run_id} that talks"))
    assert api.ended(run_id)["text"] == "One two three four."
    records = api.records(run_id)
    created = records[0]
    assert [(file["media_type"], file["bytes"]) for file in created["attachments"]] == [
        ("image/png", len(PNG)),
        ("application/pdf", len(PDF)),
    ]
    assert not any(data in json.dumps(records) for data in both)
    names = [file["name"] for file in created["attachments"]]
    answer = api.post(f"/v1/runs/{run_id}/fork", {"at": 2})
    assert answer.status_code == 202, answer.text
    forked = answer.json()["run_id"]
    next_one = api.start(f"more of {run_id} that talks", continues=run_id)
    assert (api.ended(forked)["status"], api.ended(next_one)["status"]) == ("completed", "completed")
    for one in (run_id, forked, next_one):
        served = [api.http.get(f"/v1/runs/{one}/files/{name}") for name in names]
        assert [(got.status_code, got.content) for got in served] == [(200, PNG), (200, PDF)]
        assert [got.headers["content-type"] for got in served] == ["image/png", "application/pdf"]
    assert [sources(seen) for seen in asked(model, run_id)] == [both] * 3
    log = api.http.get(f"/v1/runs/{run_id}/log")
    replayed = api.http.post("/v1/replay", content=log.content, headers={"content-type": "application/x-ndjson"})
    assert replayed.json()["differences"] == []
    assert (
        api.http.get(f"/v1/runs/{run_id}?include=messages").json()["messages"][0]["attachments"][0]["name"] == names[0]
    )


def test_what_a_model_does_not_take_is_refused_before_there_is_a_run_and_before_there_is_a_fork(api: Api) -> None:
    run_id = api.start("", input=parts("please: talks"))
    api.ended(run_id)
    other = "openai-compatible/text"
    for answer in (
        api.post("/v1/runs", {"input": parts("go"), "model": other}),
        api.post(f"/v1/runs/{run_id}/fork", {"at": 2, "changes": {"model": other}}),
    ):
        told = answer.json()
        assert (answer.status_code, told["code"], told["field"]) == (422, "unsupported_input", "input")
        assert f"{other} is not known to take image/png, application/pdf" in told["detail"]
    elsewhere = api.post("/v1/runs", {"input": [{"type": "image", "url": "https://x.example/a.png"}]})
    assert (elsewhere.status_code, "nothing is fetched" in elsewhere.json()["detail"]) == (422, True)
