"""What there is in a deployment: agents, their tools and skills, the logins they need, and what is wrong with it."""

from collections.abc import Mapping, Sequence

from edge_agent import configured, permissions
from edge_agent.agent import Agent
from edge_agent.core.errors import ConfigError
from edge_agent.core.skills import Skill
from edge_agent.equipment import Equipment
from edge_agent.loop.selection import for_plans
from edge_agent.mcp_servers import require_secrets, servers_of
from edge_agent.model_choice import ModelChoice
from edge_agent.prompting import prompting_of
from edge_agent.reach import everyone, with_runs_of_their_own
from edge_agent.tools.mcp_server import McpServer
from edge_agent.wire.http_answers import AgentInfo, ToolInfo, ToolsAnswer
from edge_agent.wire.settings import Settings

VERSION = "0.1.0"


class Inventory:
    """The first agent is the default."""

    version = VERSION

    def __init__(self, agents: Sequence[Agent], settings: Settings, choice: ModelChoice, equipment: Equipment) -> None:
        self._agents, self._settings, self._choice, self._equipment = agents, settings, choice, equipment
        self._everyone, self._own_runs = [*everyone(agents).values()], with_runs_of_their_own(agents)

    def agents(self) -> Sequence[AgentInfo]:
        return [
            AgentInfo(
                name=agent.name,
                description=agent.description,
                default=number == 0,
                models=self._choice.of_agent(agent),
                mode=configured.mode_of(agent, self._settings),
                tools=tuple(tool.spec.name for tool in self._equipment.own_tools(agent)),
                limits=configured.limits_of(agent, self._settings),
                approval=permissions.mode_of(agent, self._settings),
                approval_modes=tuple(permissions.modes_of(agent, self._settings)),
                tool_rules=permissions.rules_of(agent, self._settings),
            )
            for number, agent in enumerate(self._agents)
        ]

    def skills(self) -> Mapping[str, Skill]:
        """Those of the code, by name. Of two agents' skills with one name the first agent's is shown."""
        return {skill.name: skill for agent in reversed(self._everyone) for skill in reversed(agent.skills)}

    async def tools(self, user: str) -> ToolsAnswer:
        """Every tool once, by name and server, with the agents that have it. Connects to the servers as `user`."""
        found: dict[tuple[str | None, str], ToolInfo] = {}
        unreachable: dict[str, None] = {}
        for agent in self._agents:
            box = self._equipment.toolbox(agent, user)
            try:
                unreachable.update(dict.fromkeys(await box.refresh()))
                unreachable.update(dict.fromkeys(f"{one.server} needs a login: {one.url}" for one in box.sign_ins()))
                for spec in for_plans(box.offered()):
                    if tool := box.find(spec.name):
                        key = (tool.server, spec.name)
                        agents = (*(found[key].agents if key in found else ()), agent.name)
                        found[key] = ToolInfo(
                            name=spec.name,
                            description=spec.description,
                            server=tool.server,
                            parameters=spec.parameters,
                            read_only=tool.read_only,
                            safe_to_repeat=tool.safe_to_repeat,
                            requires_approval=tool.requires_approval,
                            agents=agents,
                        )
            finally:
                await box.close()
        return ToolsAnswer(tools=tuple(found.values()), unreachable=tuple(unreachable))

    def mcp_server(self, name: str) -> McpServer:
        """The server of this name that asks for a login. Raises ConfigError where there is none, or two agents mean
        different ones."""
        named = (servers_of(agent, self._settings).get(name) for agent in self._everyone)
        found = [server for server in named if server is not None and server.oauth is not None]
        if any((server.url, server.oauth) != (found[0].url, found[0].oauth) for server in found):
            fault = "two agents give this name to servers with different logins, and a login goes by the name"
            raise ConfigError(f"mcp_servers[{name!r}]", fault, '{"docs": McpServer(…), "other-docs": McpServer(…)}')
        if found:
            return found[0]
        example = '{"docs": {"url": "https://docs.example.com/mcp", "auth": "oauth"}}'
        raise ConfigError("EDGE_AGENT_MCP_SERVERS", f"no server {name} with OAuth is configured", example)

    def logins(self) -> Sequence[str]:
        """The names of the servers that ask for a login."""
        found = [servers_of(agent, self._settings) for agent in self._everyone]
        return list(dict.fromkeys(name for servers in found for name, server in servers.items() if server.oauth))

    def faults(self) -> Sequence[ConfigError]:
        """Everything wrong with variables and agents. Connects to nothing."""
        faults = list(self._settings.faults())
        for agent in self._everyone:
            try:
                self._check(agent)
            except ConfigError as error:
                faults.append(error)
        return list({str(fault): fault for fault in faults}.values())

    def _check(self, agent: Agent) -> None:
        """Raises ConfigError. A run keeps its models and its approval mode when it is handed over."""
        self._equipment.toolbox(agent)
        servers = servers_of(agent, self._settings)
        require_secrets(servers, self._settings.secrets)
        for name in (name for name, server in servers.items() if server.oauth):
            self.mcp_server(name)
        if agent.name in self._own_runs:
            self._choice.check(agent)
            permissions.mode_of(agent, self._settings)
        prompting_of(agent, self._settings)
