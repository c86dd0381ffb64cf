"""A run in real workerd on a model of Anthropic's wire: what it streams, what it costs, and how it fails."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Figure
from tests.servers.running import Running
from tests.workerd.client import every
from tests.workerd.provider_runs import PASSING, STAYING, Deployed, Provider

pytestmark = pytest.mark.workerd
CLAUDE = Provider(
    name="claude",
    model="claude-opus-5",
    server="anthropic_server.py",
    script="anthropic_script.json",
    path="/v1",
    settings={"adapter": "anthropic"},
    key="sk-ant-planted-1",
    price={"input": 5.0, "cached": 0.5, "cache_write": 6.25, "output": 25.0},
)


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory, tool_server: Running) -> Iterator[Deployed]:
    with CLAUDE.deployed(tmp_path_factory.mktemp("claude"), tool_server) as deployed:
        yield deployed


def test_text_streams_and_its_tokens_are_counted(claude: Deployed) -> None:
    assert claude.says() == [(110, 0, 100, 1, 0), (210, 100, 100, 4, 0)]


def test_thoughts_two_calls_at_once_and_what_all_of_it_cost(claude: Deployed, figure: Figure) -> None:
    assert claude.thinks() == [(110, 0, 100, 1, 0), (210, 100, 100, 4, 3), (310, 200, 100, 7, 4)]
    figure(f"three rounds with thoughts: {claude.api.state('thinks')['spent']}")

    first, _, last = claude.asked("thinks")
    told = last["body"]["messages"][-2:]
    assert [block["type"] for block in told[0]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["type"] for block in told[1]["content"]] == ["tool_result", "tool_result"]
    assert first["headers"]["x-api-key"] == CLAUDE.key


@pytest.mark.parametrize(
    "name, means", [("claude-opus-5", "output_config"), ("claude-sonnet-4-20250514", "tool_choice")]
)
def test_an_answer_comes_in_the_form_asked_for(claude: Deployed, name: str, means: str) -> None:
    assert means in claude.gives_the_form(f"forms-{name}", f"claude/{name}")


@pytest.mark.parametrize("scenario, failures", [*PASSING, ("status-529-times-1", ["overloaded"]), ("late-cut", [])])
def test_a_fault_that_passes_costs_a_retry_and_no_run(claude: Deployed, scenario: str, failures: list[str]) -> None:
    claude.outlives(scenario, failures)


@pytest.mark.parametrize("scenario, error, tries", [*STAYING, ("status-401", "unauthorized", 1)])
def test_a_fault_that_stays_ends_the_run_and_says_what_to_do(
    claude: Deployed, scenario: str, error: str, tries: int
) -> None:
    claude.ends_by(scenario, error, tries)


def test_a_turn_its_provider_paused_goes_on_where_it_was(claude: Deployed) -> None:
    claude.api.start("run searches-1 that searches", run_id="searches-1")
    assert claude.api.ended("searches-1")["text"] == "Found it."
    answers = every(claude.api.records("searches-1"), "model.answered")
    assert [answer["finish_reason"] for answer in answers] == ["paused", "stop"]
    used = {"type": "server_tool_use", "id": "srvtoolu_0", "name": "web_search", "input": {"query": "x"}}
    assert without_mark(claude.asked("searches-1")[-1]["body"]["messages"][-1]["content"][-1]) == used


def without_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def test_a_refusal_is_an_answer_that_explains_itself(claude: Deployed) -> None:
    claude.refuses()


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
    claude: Deployed,
) -> None:
    api, run_id = claude.api, "looks-1"
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
    assert [sources(seen) for seen in claude.asked(run_id)] == [both] * 3
    log = api.http.get(f"/v1/runs/{run_id}/log")
    replayed = api.http.post("/v1/replay", content=log.content, headers={"content-type": "application/x-ndjson"})
    assert replayed.json()["differences"] == []
    assert (
        api.http.get(f"/v1/runs/{run_id}?include=messages").json()["messages"][0]["attachments"][0]["name"] == names[0]
    )


def test_what_a_model_does_not_take_is_refused_before_there_is_a_run_and_before_there_is_a_fork(
    claude: Deployed,
) -> None:
    api = claude.api
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
