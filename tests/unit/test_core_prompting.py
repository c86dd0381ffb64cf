"""How an agent's models are asked: thinking by stage, what may be cached, options of the wire."""

from typing import Any

import pytest

from edge_agent import Agent
from edge_agent.core.errors import ConfigError
from edge_agent.core.messages import UserMessage
from edge_agent.core.model import ModelRequest, PromptCache
from edge_agent.core.prompting import Caching, Prompting, resolve_thinking
from edge_agent.prompting import prompting_of
from edge_agent.wire.settings import Settings

ASKED = ModelRequest(system="Be brief.", messages=(UserMessage(text="hi"),))


def test_thinking_that_nobody_sets_is_the_providers_own() -> None:
    assert {resolve_thinking(stage, None, {}) for stage in ("plan", "round", "replan", "final")} == {None}


@pytest.mark.parametrize(
    "wish, level", [(True, "medium"), (False, "none"), ("none", "none"), ("xhigh", "xhigh"), (2_048, 2_048)]
)
def test_what_is_set_holds_for_rounds_and_the_answer_and_not_where_json_is_asked_for(wish: Any, level: Any) -> None:
    assert resolve_thinking("round", wish, {}) == resolve_thinking("final", wish, {}) == level
    assert resolve_thinking("plan", wish, {}) == resolve_thinking("replan", wish, {}) == "none"


def test_a_stage_of_its_own_wins_also_where_it_is_false() -> None:
    stages: dict[str, Any] = {"planner": "high", "executor": False}
    assert resolve_thinking("plan", None, stages) == "high"
    assert resolve_thinking("round", "low", stages) == "none"
    assert resolve_thinking("final", "low", stages) == "low"


def test_a_run_has_a_cache_of_its_own_unless_a_key_is_shared() -> None:
    def cached(caching: Caching | None) -> PromptCache | None:
        return Prompting(caching=caching).of(ASKED, stage="round", model="p/m", run_id="run-1").cache

    assert cached(Caching()) == PromptCache(key="edge-agent-run-1")
    assert cached(Caching(prefix="mine", key="team", ttl="1h")) == PromptCache(key="mine-team", ttl="1h")
    assert cached(None) is None


def test_the_options_of_a_stage_win_over_those_of_a_model() -> None:
    prompting = Prompting(options={"p/m": {"seed": 1, "top_p": 0.5}, "executor": {"seed": 2}, "planner": {"seed": 3}})
    assert prompting.of(ASKED, stage="round", model="p/m", run_id="r").options == {"seed": 2, "top_p": 0.5}
    assert prompting.of(ASKED, stage="final", model="other/m", run_id="r").options is None


def test_variables_win_over_the_code() -> None:
    agent = Agent(
        name="a", thinking="low", stage_thinking={"planner": True, "synthesizer": "high"}, include_thoughts=False
    )
    env = {
        "EDGE_AGENT_THINKING": "4096",
        "EDGE_AGENT_STAGE_THINKING": '{"planner": false}',
        "EDGE_AGENT_PROMPT_CACHING": '{"ttl": "1h"}',
        "EDGE_AGENT_NAME": "mine",
    }
    assert prompting_of(agent, Settings.from_env(env)) == Prompting(
        thinking=4096,
        stage_thinking={"planner": False, "synthesizer": "high"},
        include_thoughts=False,
        caching=Caching(ttl="1h", prefix="mine"),
    )
    assert prompting_of(agent, Settings.from_env({"EDGE_AGENT_PROMPT_CACHING": "off"})).caching is None
    assert prompting_of(agent, Settings.from_env({})).thinking == "low"
    shared = Agent(name="a", prompt_caching={"key": "team"})
    assert prompting_of(shared, Settings.from_env({})).caching == Caching(key="team")


@pytest.mark.parametrize(
    "variable, value",
    [
        ("EDGE_AGENT_THINKING", "much"),
        ("EDGE_AGENT_THINKING", "5"),
        ("EDGE_AGENT_STAGE_THINKING", '{"cook": true}'),
        ("EDGE_AGENT_STAGE_THINKING", '{"planner": "much"}'),
        ("EDGE_AGENT_PROMPT_CACHING", '{"ttl": "2h"}'),
        ("EDGE_AGENT_PROMPT_CACHING", '{"key": "a b"}'),
    ],
)
def test_a_variable_that_nobody_could_ask_for_is_named_with_an_example(variable: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prompting_of(Agent(name="a"), Settings.from_env({variable: value}))
    assert caught.value.setting == variable
    assert caught.value.example.startswith(f"{variable}=")


@pytest.mark.parametrize(
    "field, value",
    [
        ("thinking", "much"),
        ("thinking", 1),
        ("stage_thinking", {"cook": True}),
        ("stage_thinking", {"planner": "much"}),
        ("prompt_caching", {"ttl": "2h"}),
        ("prompt_caching", {"time": "1h"}),
        ("prompt_caching", "on"),
        ("aliases", {"Fast": "openai/gpt-5-mini"}),
        ("aliases", {"fast": "gpt"}),
    ],
)
def test_an_agent_that_nobody_could_ask_for_is_refused_when_it_is_made(field: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Agent(name="a", **{field: value})
    assert caught.value.setting == f"Agent.{field}"
