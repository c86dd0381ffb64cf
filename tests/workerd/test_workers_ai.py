"""Models of Workers AI and of AI Gateway by the AI binding: the runtime's own `Ai`, with a scripted service behind."""

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import pytest

from scripts.serve import Server, serve
from tests.conftest import Figure
from tests.servers.running import Running, running
from tests.workerd.client import Api, Event, every, find, text_of, thoughts_of, types, whole
from tests.workerd.conftest import HERE, variables

pytestmark = pytest.mark.workerd
LLAMA = "@cf/meta/llama-3.3-70b-instruct-fp8-fast"
SCOUT = "@cf/meta/llama-4-scout-17b-16e-instruct"
GLM = "@cf/zai-org/glm-4.7-flash"
OSS = "@cf/openai/gpt-oss-120b"
PRICES = '{"@cf/zai-org/glm-4.7-flash": {"input": 1.0, "cached": 0.1, "output": 4.0}}'
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
}


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running("workers_ai_server.py", "--script", str(HERE / "ai_script.json")) as server:
        yield server


@contextmanager
def bound(state: Path, service: Running, tools: Running, **more: str) -> Generator[Server]:
    """The Worker of the tests with an AI binding that the service answers."""
    plugin = {"package": str(HERE / "ai_binding/plugin.mjs"), "name": "workers-ai"}
    address = service.url.removeprefix("http://")
    binding = {"name": "AI", "type": "workers-ai", "dev": {"plugin": plugin, "options": {"address": address}}}
    settings = {"unsafe": {"bindings": [binding]}}
    given = variables(service, tools) | {"EDGE_AGENT_MODEL": LLAMA, "EDGE_AGENT_PRICES": PRICES} | more
    with serve(state=state, overlay=HERE / "worker", variables=given, settings=settings) as server:
        yield server


@pytest.fixture(scope="module")
def ai(tmp_path_factory: pytest.TempPathFactory, service: Running, tool_server: Running) -> Iterator[Api]:
    with bound(tmp_path_factory.mktemp("ai"), service, tool_server) as server, Api(server.url) as api:
        yield api


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, service: Running, tool_server: Running) -> Iterator[Api]:
    state = tmp_path_factory.mktemp("gateway")
    with (
        bound(state, service, tool_server, EDGE_AGENT_GATEWAY="main", OPENAI_API_KEY="sk-of-the-tests") as server,
        Api(server.url) as api,
    ):
        yield api


def run(api: Api, task: str, model: str, **fields: Any) -> list[Event]:
    """A whole run as its followers see it."""
    events = list(api.stream(api.start(f"please do {task}", model=model, **fields)))
    whole(events)
    return events


def asked(service: Running, scenario: str) -> list[Event]:
    return [entry for entry in service.log() if entry["scenario"] == scenario]


def answers(events: list[Event]) -> list[Event]:
    return every(events, "model.answered")


def usage(event: Event) -> tuple[int, int, int, int]:
    counted = event["usage"]
    return counted["input"], counted["cached"], counted["output"], counted["reasoning"]


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def in_common(before: str, now: str) -> str:
    """The beginning that both have."""
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))


# -- what is said
def test_a_legacy_model_calls_two_tools_at_once_and_streams_its_text(ai: Api, service: Running) -> None:
    events = run(ai, "native-rounds", LLAMA, agent="counter")
    called, said = answers(events)
    assert [(call["name"], call["arguments"]) for call in called["message"]["calls"]] == [
        ("lookup", {"n": 1}),
        ("lookup", {"n": 2}),
    ]
    assert types(events).count("tool.result") == 2
    assert find(events, "run.completed")["text"] == "Both are2 there."
    assert text_of(events)[said["key"].removesuffix("/end")] == "Both are2 there."
    assert [usage(one) for one in (called, said)] == [(100, 0, 20, 0), (160, 0, 6, 0)]
    first, second = asked(service, "native-rounds")
    assert first["path"] == "/run"
    assert first["model"] == LLAMA
    assert first["options"] == {"returnRawResponse": True}
    assert first["headers"]["x-session-affinity"] == second["headers"]["x-session-affinity"]
    assert first["inputs"]["max_tokens"] > 256
    assert [message["role"] for message in second["inputs"]["messages"]][-3:] == ["assistant", "tool", "tool"]


def test_a_newer_model_thinks_and_its_usage_and_cost_are_right_to_the_token(
    ai: Api, service: Running, figure: Figure
) -> None:
    events = run(ai, "chat-rounds", GLM, agent="counter")
    called, said = answers(events)
    assert list(thoughts_of(events).values()) == ["Two of them.", "Done."]
    assert types(events).count("tool.result") == 2
    assert find(events, "run.completed")["text"] == "Both found."
    assert [usage(one) for one in (called, said)] == [(200, 128, 40, 0), (300, 256, 10, 0)]
    cost = ((200 - 128 + 300 - 256) * 1.0 + (128 + 256) * 0.1 + (40 + 10) * 4.0) / 1e6
    assert find(events, "run.completed")["cost_usd"] == pytest.approx(cost)
    figure(f"cost of the run: ${cost:.7f}")
    second = asked(service, "chat-rounds")[1]["inputs"]
    assert second["messages"][-3]["reasoning"] == "Two of them."
    assert second["stream_options"] == {"include_usage": True}


def test_a_model_that_answers_in_json_where_a_stream_was_asked_for_is_understood(ai: Api) -> None:
    events = run(ai, "whole-rounds", OSS, agent="counter")
    called, said = answers(events)
    assert len(called["message"]["calls"]) == 2
    assert said["message"]["text"] == "Found."
    assert [usage(one) for one in (called, said)] == [(50, 0, 30, 0), (80, 0, 4, 2)]


@pytest.mark.parametrize("model", [LLAMA, SCOUT, GLM])
def test_structured_output_is_asked_for_without_a_stream_and_may_come_as_the_object_itself(
    ai: Api, service: Running, model: str
) -> None:
    events = run(ai, "json-object", model, output_schema=CITY)
    assert find(events, "run.completed")["output"] == {"city": "Paris", "people": 2102650}
    inputs = asked(service, "json-object")[-1]["inputs"]
    assert inputs["stream"] is False
    bare = {"type": "json_schema", "json_schema": CITY}
    named = {"type": "json_schema", "json_schema": {"name": "answer", "schema": CITY}}
    told = {LLAMA: ("response_format", bare), SCOUT: ("guided_json", CITY), GLM: ("response_format", named)}
    name, value = told[model]
    assert inputs[name] == value


def test_each_request_of_ten_rounds_goes_on_from_the_one_before(ai: Api, service: Running, figure: Figure) -> None:
    run(ai, "ten-rounds", LLAMA, agent="counter")
    inputs = [entry["inputs"] for entry in asked(service, "ten-rounds")]
    told = ["".join(map(canonical, one["tools"] + one["messages"])) for one in inputs]
    assert len(told) == 11
    shares = [len(in_common(before, now)) / len(before) for before, now in pairwise(told)]
    figure(f"at least {min(shares):.1%} of a request is the beginning of the next")
    assert min(shares) >= 0.97


# -- how it fails
def test_a_service_without_capacity_is_asked_again_after_the_time_it_says(ai: Api, service: Running) -> None:
    events = run(ai, "busy-once", LLAMA)
    assert find(events, "run.completed")["text"] == "After all."
    assert find(events, "model.failed")["error"] == "overloaded"
    assert len(asked(service, "busy-once")) == 2


def test_a_free_share_that_is_used_up_is_not_asked_for_again(ai: Api, service: Running) -> None:
    events = run(ai, "used-up", LLAMA)
    error = find(events, "run.failed")["error"]
    assert error["code"] == "quota"
    assert "00:00 UTC" in error["message"] + error["remedy"]
    assert len(asked(service, "used-up")) == 1


@pytest.mark.parametrize(
    "scenario, kind",
    [("overloaded-inside", "overloaded"), ("cut", "truncated"), ("hang", "stalled"), ("html", "unavailable")],
)
def test_a_failing_answer_is_asked_for_again_and_then_told(ai: Api, service: Running, scenario: str, kind: str) -> None:
    events = run(ai, scenario, LLAMA)
    assert {event["error"] for event in every(events, "model.failed")} == {kind}
    assert events[-1]["type"] == "run.failed"
    assert len(asked(service, scenario)) == 3  # and two retries
    if scenario == "hang":
        assert all(entry["closed_early"] for entry in asked(service, scenario))


def test_a_cancel_closes_the_connection_behind_the_binding(ai: Api, service: Running) -> None:
    already = len(asked(service, "hang"))
    run_id = ai.start("please do hang", model=LLAMA)
    for event in ai.stream(run_id):
        if event["type"] == "step.text-delta":
            ai.post(f"/v1/runs/{run_id}/cancel")
            break
    assert ai.ended(run_id)["status"] == "cancelled"
    assert [entry["closed_early"] for entry in asked(service, "hang")[already:]] == [True]


def test_an_answer_in_the_form_of_another_call_is_understood(ai: Api) -> None:
    """The binding keeps the options of the last call for all; an object, a stream or an exception may come of it."""
    events = run(ai, "races", LLAMA, agent="accountant")
    object_, stream, error = (json.loads(event["output"]) for event in every(events, "tool.result"))
    assert (object_["status"], json.loads(object_["body"])) == (200, {"response": "hi"})
    assert (stream["status"], stream["body"]) == (200, 'data: {"response": "hi"}\n\ndata: [DONE]\n\n')
    assert (error["status"], json.loads(error["body"])) == (429, {"name": "AiError", "message": "3040: busy"})


# -- through AI Gateway
def test_another_provider_is_reached_by_the_binding_of_the_gateway(gateway: Api, service: Running) -> None:
    events = run(gateway, "through-gateway", "openai/gpt-5-mini")
    answered = find(events, "model.answered")
    assert answered["message"]["text"] == "Through the gateway."
    assert answered["gateway_log_id"].startswith("log-")
    (entry,) = asked(service, "through-gateway")
    assert entry["path"] == "/ai-gateway/universal/run/main"
    assert (entry["entry"]["provider"], entry["entry"]["endpoint"]) == ("openai", "chat/completions")
    assert entry["entry"]["headers"]["authorization"] == "Bearer sk-of-the-tests"
    assert entry["headers"]["cf-aig-max-attempts"] == "1"
    assert "run" in entry["headers"]["cf-aig-metadata"]


def test_workers_ai_is_logged_by_the_gateway_too(gateway: Api, service: Running) -> None:
    events = run(gateway, "chat-rounds", GLM, agent="counter")
    assert all(answered["gateway_log_id"].startswith("log-") for answered in answers(events))
    entry = asked(service, "chat-rounds")[-1]
    assert entry["path"] == "/ai-gateway/run"
    options = entry["options"]["gateway"]
    assert (options["id"], options["retries"]) == ("main", {"maxAttempts": 1})
    assert options["metadata"]["run"] == events[0]["run_id"]


def test_what_a_call_cost_is_read_back_from_the_gateway(gateway: Api) -> None:
    events = run(gateway, "what-it-cost", LLAMA)
    (call,) = gateway.http.get(f"/v1/runs/{events[0]['run_id']}/calls?gateway=true").json()["calls"]
    assert (call["model"], call["usage"]["input"], call["usage"]["output"]) == (LLAMA, 12, 5)
    assert call["gateway"] == {
        "id": find(events, "model.answered")["gateway_log_id"],
        "provider": "workers-ai",
        "model": LLAMA,
        "status": 200,
        "cached": True,
        "input_tokens": 12,
        "output_tokens": 5,
        "cost": 0.00123,
    }
