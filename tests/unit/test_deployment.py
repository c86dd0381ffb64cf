"""What a deployment says of itself is what its runs do."""

from typing import Literal

import pytest

from edge_agent import Agent, ConfigError, cpython, handoff, tool
from edge_agent.core.errors import Refusal
from edge_agent.cpython import model, source
from edge_agent.deployment import Deployment
from edge_agent.models.scripted import ScriptedModel
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.mcp_source import McpSource
from edge_agent.tools.toolbox import ToolSource
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings

MINE = {"EDGE_AGENT_BASE_URL": "http://localhost:1/v1"}


@tool
def look() -> str:
    """Look."""
    return "seen"


def deployment(*agents: Agent, **env: str) -> Deployment:
    return Deployment(agents, Settings.from_env({**MINE, **env}), model, source, cpython.fetcher)


def mcp_source(name: str, server: McpServer, _settings: Settings, _user: str) -> ToolSource:
    return McpSource(name, server)


def named(**fields: str) -> Agent:
    return Agent(name="a", model="openai-compatible/m", **fields)  # pyright: ignore[reportArgumentType] - by field


@pytest.mark.parametrize("variable", [{}, {"EDGE_AGENT_MODE": "direct"}, {"EDGE_AGENT_MODE": "planned"}])
@pytest.mark.parametrize("mode", ["direct", "planned"])
def test_the_mode_that_is_listed_is_the_mode_of_its_runs(mode: str, variable: dict[str, str]) -> None:
    deployed = deployment(named(mode=mode), **variable)
    assert deployed.offer.agents()[0].mode == deployed.configure(StartRun(input="go")).mode


@pytest.mark.parametrize(
    "agent, variables",
    [
        (named(), {"EDGE_AGENT_MODEL": "nosuch/m"}),
        (named(), {"EDGE_AGENT_PLANNER_MODEL": "nosuch/m"}),
        (named(), {"EDGE_AGENT_SYNTHESIZER_MODEL": "nosuch/m"}),
        (named(planner_model="nosuch/m"), {}),
        (named(synthesizer_model="nosuch/m"), {}),
        (Agent(name="a"), {}),
    ],
)
def test_what_stops_every_start_is_a_fault(agent: Agent, variables: dict[str, str]) -> None:
    deployed = deployment(agent, **variables)
    with pytest.raises(ConfigError) as stopped:
        deployed.configure(StartRun(input="go"))
    assert [str(fault) for fault in deployed.offer.faults()] == [str(stopped.value)]


def test_who_is_only_handed_over_to_is_checked_too_but_may_leave_the_model_to_the_run() -> None:
    def entered(target: Agent) -> Deployment:
        return deployment(Agent(name="a", model="openai-compatible/m", tools=[handoff(target)]))

    assert not entered(Agent(name="b")).offer.faults()
    (fault,) = entered(Agent(name="b", tools=[look, tool(name="look")(look.function)])).offer.faults()
    assert "look" in str(fault)


def test_a_model_named_twice_is_no_fallback_of_its_own() -> None:
    twice = "openai-compatible/m, openai-compatible/n,openai-compatible/m"
    both = ("openai-compatible/m", "openai-compatible/n")
    assert deployment(Agent(name="a", model=twice)).configure(StartRun(input="go")).models == both
    assert deployment(named(), EDGE_AGENT_MODEL=twice).configure(StartRun(input="go")).models == both


def test_a_model_that_was_given_as_it_is_stands_beside_others_by_name() -> None:
    deployed = deployment(Agent(name="a", model=ScriptedModel(answers=["hi"])))
    assert deployed.configure(StartRun(input="go")).models == ("scripted/scripted",)
    with pytest.raises(Refusal) as refused:
        deployed.configure(StartRun(input="go", model="nosuch/m"))
    assert refused.value.code == "unknown_model"


def test_a_short_name_of_the_agent_is_its_model_also_in_a_request_and_as_a_fallback() -> None:
    agent = Agent(
        name="a", model="fast, strong", planner_model="strong", aliases={"fast": "mine/small", "strong": "mine/large"}
    )
    deployed = deployment(agent, EDGE_AGENT_PROVIDERS='{"mine": {"base_url": "http://localhost:1/v1"}}')
    created = deployed.configure(StartRun(input="go"))
    assert (created.models, created.planner_models) == (("mine/small", "mine/large"), ("mine/large",))
    assert deployed.configure(StartRun(input="go", model="strong")).models == ("mine/large",)
    with pytest.raises(Refusal, match="'slow' names no model") as caught:
        deployed.configure(StartRun(input="go", model="slow"))
    assert caught.value.code == "unknown_model"


def test_two_agents_that_give_one_name_to_servers_with_different_logins_are_a_fault() -> None:
    def faults(*urls: str, auth: Literal["oauth"] | None = "oauth") -> list[str]:
        servers = [{"docs": McpServer(url=url, auth=auth, timeout=n)} for n, url in enumerate(urls, start=1)]
        agents = [Agent(name=f"a{n}", model="openai-compatible/m", mcp_servers=one) for n, one in enumerate(servers)]
        deployed = Deployment(agents, Settings.from_env(MINE), model, mcp_source, cpython.fetcher)
        return [fault.setting for fault in deployed.offer.faults()]

    one, other = "https://docs.example/mcp", "https://other.example/mcp"
    assert faults(one, other) == ["mcp_servers['docs']"]
    assert faults(one, one) == []
    assert faults(one, other, auth=None) == []


def test_a_secret_that_the_login_to_a_server_names_and_nobody_has_set_is_a_fault() -> None:
    server = (
        '{"docs": {"url": "https://docs.example/mcp", "auth": {"grant": "client_credentials", "client_id": "a", '
        '"client_secret": "DOCS_SECRET", "issuer": "https://auth.example"}}}'
    )

    def faults(**env: str) -> list[str]:
        settings = Settings.from_env({**MINE, "EDGE_AGENT_MCP_SERVERS": server, **env})
        deployed = Deployment([named()], settings, model, mcp_source, cpython.fetcher)
        return [fault.setting for fault in deployed.offer.faults()]

    assert faults() == ["mcp_servers['docs'].auth"]
    assert faults(DOCS_SECRET="s3cret-of-docs") == []
