"""A run in real workerd on a model of Gemini's wire: what it streams, what it costs, and how it fails."""

from collections.abc import Iterator

import pytest

from tests.conftest import Figure
from tests.servers.running import Running
from tests.wire.google_rules import UNSIGNED
from tests.workerd.client import find, types
from tests.workerd.provider_runs import PASSING, STAYING, Deployed, Provider

pytestmark = pytest.mark.workerd
GEMINI = Provider(
    name="gemini",
    model="gemini-3-flash-preview",
    server="google_server.py",
    script="google_script.json",
    path="/v1beta",
    settings={"adapter": "google"},
    key="a-planted-google-key",
    price={"input": 1.0, "cached": 0.1, "output": 4.0},
    told_in="contents",
    variables={"EDGE_AGENT_THINKING": "low"},
)


@pytest.fixture(scope="module")
def gemini(tmp_path_factory: pytest.TempPathFactory, model_server: Running, tool_server: Running) -> Iterator[Deployed]:
    with GEMINI.deployed(tmp_path_factory.mktemp("gemini"), tool_server, model_server) as deployed:
        yield deployed


def test_text_streams_and_its_tokens_are_counted(gemini: Deployed) -> None:
    assert gemini.says() == [(10, 0, 0, 1, 0), (30, 20, 0, 4, 0)]


def test_thoughts_two_calls_at_once_and_what_all_of_it_cost(gemini: Deployed, figure: Figure) -> None:
    # Ten tokens a turn, of which all but the last one are read from the cache; a word is a token.
    assert gemini.thinks() == [(10, 0, 0, 1, 0), (30, 20, 0, 4, 3), (50, 40, 0, 7, 4)]
    figure(f"three rounds with thoughts: {gemini.api.state('thinks')['spent']}")

    seen = gemini.asked("thinks")
    model, user = seen[-1]["body"]["contents"][-2:]
    signed = [part.get("thoughtSignature") for part in model["parts"] if "functionCall" in part]
    assert signed[0] not in (None, UNSIGNED)
    assert signed[1] is None
    assert ["functionResponse" in part for part in user["parts"]] == [True, True]
    assert seen[0]["body"]["generationConfig"]["thinkingConfig"] == {"thinkingLevel": "LOW", "includeThoughts": True}
    assert seen[0]["headers"]["x-goog-api-key"] == GEMINI.key


def test_an_answer_comes_in_the_form_asked_for(gemini: Deployed) -> None:
    assert gemini.gives_the_form("forms-1")["generationConfig"]["responseMimeType"] == "application/json"


def test_a_planned_run_is_planned_in_a_form_and_thinks_least_there(gemini: Deployed) -> None:
    api, run_id = gemini.api, "plans-1"
    api.start(f"run {run_id} that plans", run_id=run_id, agent="counter", mode="planned")
    assert api.ended(run_id)["text"] == "It is all looked up."
    plan, *_, last = (one["body"].get("generationConfig", {}) for one in gemini.asked(run_id))
    assert (plan["responseMimeType"], plan["thinkingConfig"]["thinkingLevel"]) == ("application/json", "MINIMAL")
    assert last["thinkingConfig"]["thinkingLevel"] == "LOW"
    assert types(api.records(run_id)).count("tool.result") == 1


def test_a_run_that_began_on_another_provider_goes_on_after_a_fork(gemini: Deployed) -> None:
    api, run_id = gemini.api, "moved-1"
    api.start(f"run {run_id}", run_id=run_id, model="rounds-1", agent="counter")
    api.ended(run_id)
    at = find(api.records(run_id), "tool.result")["seq"]
    forked = api.post(f"/v1/runs/{run_id}/fork", {"at": at, "changes": {"model": GEMINI.full_name}})
    assert forked.status_code == 202, forked.text
    assert api.ended(forked.json()["run_id"])["text"] == "The answer is here, word by word."
    (seen,) = gemini.asked(run_id)
    call = next(part for part in seen["body"]["contents"][1]["parts"] if "functionCall" in part)
    assert call["thoughtSignature"] == UNSIGNED


@pytest.mark.parametrize("scenario, failures", [*PASSING, ("status-503-times-1", ["overloaded"]), ("late-hang", [])])
def test_a_fault_that_passes_costs_a_retry_and_no_run(gemini: Deployed, scenario: str, failures: list[str]) -> None:
    gemini.outlives(scenario, failures)


@pytest.mark.parametrize(
    "scenario, error, tries", [*STAYING, ("stumbles", "bad-answer", 2), ("status-403", "unauthorized", 1)]
)
def test_a_fault_that_stays_ends_the_run_and_says_what_to_do(
    gemini: Deployed, scenario: str, error: str, tries: int
) -> None:
    gemini.ends_by(scenario, error, tries)


def test_an_answer_that_a_filter_ended_says_so(gemini: Deployed) -> None:
    gemini.refuses()
