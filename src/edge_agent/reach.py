"""Who can come to work in a deployment: its agents, those they hand over to, and those they give tasks to."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from edge_agent.agent import Agent
from edge_agent.core.errors import ConfigError
from edge_agent.handoff import Handoff
from edge_agent.subagent import Subagent


def team(agent: Agent) -> dict[str, Agent]:
    """Those who can take turns in one run: the agent and all whom its work can be handed over to."""
    return _closure([agent], _handed_over)


def everyone(agents: Sequence[Agent]) -> dict[str, Agent]:
    """Raises ConfigError where two of them have one name."""
    return _closure(agents, lambda agent: [*_handed_over(agent), *_given_tasks(agent)])


def with_runs_of_their_own(agents: Sequence[Agent]) -> set[str]:
    """The names of those who do not only take over a run."""
    tasked = (child.name for agent in everyone(agents).values() for child in _given_tasks(agent))
    return {*(agent.name for agent in agents), *tasked}


def subagents_of(agent: Agent) -> list[Subagent]:
    return [tool for tool in agent.tools if isinstance(tool, Subagent)]


def _handed_over(agent: Agent) -> Iterator[Agent]:
    return (tool.target for tool in agent.tools if isinstance(tool, Handoff))


def _given_tasks(agent: Agent) -> Iterator[Agent]:
    return (child for tool in subagents_of(agent) for child in tool.agents.values())


def _closure(agents: Sequence[Agent], next_to: Callable[[Agent], Iterable[Agent]]) -> dict[str, Agent]:
    found: dict[str, Agent] = {}
    waiting = list(agents)
    while waiting:
        agent = waiting.pop(0)
        if agent.name not in found:
            found[agent.name] = agent
            waiting += next_to(agent)
        elif found[agent.name] is not agent and found[agent.name] != agent:
            raise ConfigError("agents", f"two agents are named {agent.name}", 'Agent(name="other")')
    return found
