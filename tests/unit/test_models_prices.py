"""What models cost and how much fits into their window, and the refusal of caps that nobody could keep."""

from typing import NoReturn

import pytest

from edge_agent import Agent, Limits, cpython, tool
from edge_agent.core.errors import Refusal
from edge_agent.core.events import RecordedEvent
from edge_agent.core.price import FREE, Price, spent_by
from edge_agent.core.usage import Amount, Usage
from edge_agent.deployment import Deployment
from edge_agent.models.price_table import TABLE
from edge_agent.models.prices import DEFAULT_WINDOW, price_of, window_of
from edge_agent.models.scripted import ScriptedModel
from edge_agent.wire.http import StartRun, WantedLimits
from edge_agent.wire.settings import Settings

HERE = {"EDGE_AGENT_BASE_URL": "http://127.0.0.1:9/v1"}
ELSEWHERE = {"EDGE_AGENT_BASE_URL": "https://models.example.com/v1"}


def settings(**env: str) -> Settings:
    return Settings.from_env(env)


# -- a price
def test_each_kind_of_token_has_its_price() -> None:
    price = Price(input=2.0, cached=0.2, cache_write=2.5, output=8.0)
    usage = Usage(input=1_000, cached=600, cache_write=300, output=500, reasoning=100)
    assert price.of(usage) == pytest.approx((100 * 2.0 + 600 * 0.2 + 300 * 2.5 + 500 * 8.0) / 1e6)
    assert spent_by(usage, price) == Amount(input=1_000, output=500, reasoning=100, usd=price.of(usage))


def test_what_has_no_price_of_its_own_costs_as_much_as_other_input() -> None:
    usage = Usage(input=1_000, cached=600, cache_write=300)
    assert Price(input=2.0, output=8.0).of(usage) == pytest.approx(1_000 * 2.0 / 1e6)
    assert Price(input=2.0, output=8.0).of(Usage(input=10, cached=99)) > 0, "more cached than sent costs no less than 0"


def test_a_reserve_counts_with_what_writing_the_cache_would_cost() -> None:
    assert Price(input=2.0, cached=0.2, cache_write=2.5, output=8.0).at_most(1_000, 500) == pytest.approx(
        (1_000 * 2.5 + 500 * 8.0) / 1e6
    )


# -- where it comes from
def test_every_listed_model_has_a_date_a_source_and_a_plausible_price() -> None:
    for name, listed in TABLE.items():
        assert name.partition("/")[2]
        assert "as of 2026-" in listed.source
        assert 0 < listed.price.input <= listed.price.output
        assert (listed.price.cached or 0) < listed.price.input
        assert listed.window >= 16_000


def test_writing_a_claude_s_cache_costs_more_than_other_input() -> None:
    price = TABLE["anthropic/claude-opus-5"].price
    assert price == Price(input=5.0, cached=0.5, cache_write=6.25, output=25.0)


def test_a_configured_price_wins_by_the_whole_name_or_the_models_alone() -> None:
    variable = '{"openai/gpt-5-mini": {"input": 9, "output": 9}, "mine": {"input": 1, "cached": 0.1, "output": 2}}'
    read = settings(EDGE_AGENT_PRICES=variable, **ELSEWHERE)
    assert price_of("openai/gpt-5-mini", read) == Price(input=9, output=9)
    assert price_of("openai-compatible/mine", read) == Price(input=1, cached=0.1, output=2)
    assert price_of("openai/gpt-5", read) == TABLE["openai/gpt-5"].price


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/v1", "http://localhost/v1", "http://[::1]:99/v1", "http://127.9.9.9/v1"]
)
def test_what_runs_on_this_machine_is_free(url: str) -> None:
    assert price_of("openai-compatible/any", settings(EDGE_AGENT_BASE_URL=url)) == FREE


@pytest.mark.parametrize(
    "url", ["https://models.example.com/v1", "http://10.0.0.1/v1", "https://localhost.example.com"]
)
def test_what_runs_elsewhere_is_not(url: str) -> None:
    assert price_of("openai-compatible/any", settings(EDGE_AGENT_BASE_URL=url)) is None


def test_nobody_knows_the_price_of_a_model_nobody_knows() -> None:
    assert price_of("nowhere/any", settings()) is None
    assert price_of("scripted/scripted", settings()) is None


def test_a_model_of_a_certain_date_costs_what_it_costs_without() -> None:
    assert price_of("anthropic/claude-haiku-4-5-20251001", settings()) == TABLE["anthropic/claude-haiku-4-5"].price
    assert price_of("openai/gpt-5-mini-2025-08-07", settings()) == TABLE["openai/gpt-5-mini"].price


def test_a_cache_that_is_kept_for_an_hour_costs_more_to_write_also_in_the_budget_of_its_agent() -> None:
    name = "anthropic/claude-opus-5"
    assert price_of(name, settings(), for_an_hour=True) == Price(input=5, cached=0.5, cache_write=10, output=25)
    assert price_of("openai/gpt-5", settings(), for_an_hour=True) == TABLE["openai/gpt-5"].price
    patient = Agent(name="a", model=name, prompt_caching={"ttl": "1h"})
    ready = deployment(patient, ANTHROPIC_API_KEY="sk-12345678")
    price = ready.ports(ready.configure(StartRun(input="go")), Unheard(), Stopped()).price(name)
    assert price is not None
    assert price.cache_write == 10


# -- the window
def test_the_window_is_configured_or_the_providers_or_the_tables_or_usual() -> None:
    provider = '{"local": {"base_url": "http://127.0.0.1:1/v1", "context_window": 8192}}'
    read = settings(EDGE_AGENT_PROVIDERS=provider, OPENAI_API_KEY="sk-12345678", **ELSEWHERE)
    assert window_of(["local/qwen"], read) == 8_192
    assert window_of(["openai/gpt-5"], read) == 400_000
    assert window_of(["openai-compatible/any"], read) == DEFAULT_WINDOW
    assert window_of(["openai/gpt-5", "local/qwen"], read) == 8_192, "any of them may be asked"
    assert window_of(["local/qwen"], settings(EDGE_AGENT_CONTEXT_WINDOW="32768")) == 32_768
    assert window_of([], read) == DEFAULT_WINDOW


# -- a run that could not work
@tool
def look(query: str) -> str:
    """Look something up."""
    return query


def deployment(agent: Agent, **env: str) -> Deployment:
    def nothing(*_: object) -> ScriptedModel:
        return ScriptedModel(answers=[])

    def no_source(*_: object) -> NoReturn:
        raise AssertionError

    return Deployment([agent], settings(**env), nothing, no_source, cpython.fetcher)


def refusal(agent: Agent, limits: WantedLimits | None = None, **env: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        deployment(agent, **env).configure(StartRun(input="go", limits=limits))
    assert caught.value.status == 422
    return caught.value


AGENT = Agent(name="a", instructions="Be kind.", model="openai-compatible/any", tools=[look])


def test_a_cap_on_dollars_needs_the_price_of_every_model() -> None:
    wanted = WantedLimits(max_cost_usd=1)
    refused = refusal(AGENT, wanted, **ELSEWHERE)
    assert (refused.code, refused.more["field"]) == ("unknown_price", "limits.max_cost_usd")
    assert 'EDGE_AGENT_PRICES={"openai-compatible/any": {"input": …, "cached": …, "output": …}}' in refused.message
    priced = '{"any": {"input": 1, "output": 2}}'
    for env in (HERE, {**ELSEWHERE, "EDGE_AGENT_PRICES": priced}):
        created = deployment(AGENT, **env).configure(StartRun(input="go", limits=wanted))
        assert created.limits.max_cost_usd == 1


@pytest.mark.parametrize("mode", ["direct", "planned"])
@pytest.mark.parametrize(
    "field", ["max_total_tokens", "max_input_tokens", "max_output_tokens", "max_reasoning_tokens", "max_cost_usd"]
)
def test_a_cap_too_small_for_one_call_and_the_answer_is_refused_with_the_smallest_that_works(
    field: str, mode: str
) -> None:
    env = {**ELSEWHERE, "EDGE_AGENT_MODE": mode, "EDGE_AGENT_PRICES": '{"any": {"input": 1, "output": 2}}'}
    refused = refusal(AGENT, WantedLimits.model_validate({field: 1e-6 if "usd" in field else 1}), **env)
    assert (refused.code, refused.more["field"]) == ("limit_too_low", f"limits.{field}")
    smallest = refused.more["smallest"]
    assert f"The smallest that works here is {smallest:g}." in refused.message
    enough = WantedLimits.model_validate({field: smallest})
    created = deployment(AGENT, **env).configure(StartRun(input="go", limits=enough))
    assert getattr(created.limits, field) == smallest


def test_a_longer_prompt_and_more_tools_need_a_higher_cap() -> None:
    def smallest(agent: Agent) -> float:
        return refusal(agent, WantedLimits(max_total_tokens=1), **HERE).more["smallest"]

    bare = Agent(name="a", model="openai-compatible/any")
    assert smallest(bare) < smallest(Agent(name="a", model="openai-compatible/any", tools=[look]))
    assert smallest(bare) < smallest(Agent(name="a", model="openai-compatible/any", instructions="Be kind. " * 50))


def test_the_agents_own_caps_are_looked_at_as_well() -> None:
    agent = Agent(name="a", model="openai-compatible/any", limits=Limits(max_total_tokens=10))
    assert refusal(agent, None, **HERE).code == "limit_too_low"


def test_a_run_works_with_the_prices_and_the_window_of_its_deployment() -> None:
    priced = {"EDGE_AGENT_PRICES": '{"any": {"input": 1, "output": 2}}', "EDGE_AGENT_CONTEXT_WINDOW": "16000"}
    ready = deployment(AGENT, **ELSEWHERE, **priced)
    ports = ready.ports(ready.configure(StartRun(input="go")), Unheard(), Stopped())
    assert ports.context_window == 16_000
    assert ports.price("openai-compatible/any") == Price(input=1, output=2)


class Unheard:
    def recorded(self, records: object) -> None: ...
    def passing(self, event: RecordedEvent | object) -> None: ...


class Stopped:
    def now(self) -> int:
        return 0
