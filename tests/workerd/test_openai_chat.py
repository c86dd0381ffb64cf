"""A run in real workerd on a model behind chat completions: what it streams, what it costs, and how it fails."""

from collections.abc import Iterator

import pytest

from tests.conftest import Figure
from tests.servers.running import Running
from tests.workerd.provider_runs import PASSING, STAYING, Deployed, Provider

pytestmark = pytest.mark.workerd
DEEP = Provider(
    name="deep",
    model="deep-chat",
    server="openai_server.py",
    script="openai_script.json",
    path="/v1",
    settings={"profile": "deepseek"},
    key="sk-deep-planted-1",
    price={"input": 1.0, "cached": 0.1, "output": 4.0},
    variables={"EDGE_AGENT_THINKING": "medium"},
)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory, tool_server: Running) -> Iterator[Deployed]:
    with DEEP.deployed(tmp_path_factory.mktemp("deep"), tool_server) as deployed:
        yield deployed


def test_text_streams_and_its_tokens_are_counted(deep: Deployed) -> None:
    assert deep.says() == [(20, 0, 0, 1, 0), (40, 4, 0, 4, 0)]


def test_thoughts_two_calls_at_once_and_what_all_of_it_cost(deep: Deployed, figure: Figure) -> None:
    assert deep.thinks() == [(20, 0, 0, 1, 0), (40, 4, 0, 4, 3), (70, 8, 0, 7, 4)]
    figure(f"three rounds with thoughts: {deep.api.state('thinks')['spent']}")

    first, _, last = deep.asked("thinks")
    said, *results = last["body"]["messages"][-3:]
    assert said["reasoning_content"] == "First I look."
    assert [call["id"] for call in said["tool_calls"]] == [result["tool_call_id"] for result in results]
    assert first["body"]["thinking"] == {"type": "enabled"}
    assert first["headers"]["authorization"] == f"Bearer {DEEP.key}"


def test_an_answer_comes_in_the_form_asked_for(deep: Deployed) -> None:
    assert deep.gives_the_form("forms-1")["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize(
    "scenario, failures",
    [*PASSING, ("status-529-times-1", ["overloaded"]), ("late-cut", []), ("late-hang", [])],
)
def test_a_fault_that_passes_costs_a_retry_and_no_run(deep: Deployed, scenario: str, failures: list[str]) -> None:
    deep.outlives(scenario, failures)


@pytest.mark.parametrize("scenario, error, tries", [*STAYING, ("status-401", "unauthorized", 1)])
def test_a_fault_that_stays_ends_the_run_and_says_what_to_do(
    deep: Deployed, scenario: str, error: str, tries: int
) -> None:
    deep.ends_by(scenario, error, tries)


def test_a_refusal_is_an_answer_that_explains_itself(deep: Deployed) -> None:
    deep.refuses()
