"""What an agent of a deployment works with: its tools, those of its servers, its skills."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from edge_agent.agent import Agent
from edge_agent.core.skill_library import SkillLibrary, SkillUse
from edge_agent.core.subagents import MOST_DEPTH
from edge_agent.core.tooling import LOCAL
from edge_agent.mcp_servers import servers_of
from edge_agent.skilled import skills_of
from edge_agent.subagent import Subagent
from edge_agent.tools.mcp_server import McpServer
from edge_agent.tools.read_result import read_result_tool
from edge_agent.tools.skill_tools import skill_tools
from edge_agent.tools.toolbox import Toolbox, ToolSource
from edge_agent.tools.web_fetch import web_fetch_tool
from edge_agent.wire.settings import Settings

SourceMaker = Callable[[str, McpServer, Settings, str], ToolSource]


class Equipment:
    """`source` raises ConfigError. A source is made for a user, whose login it uses. `taken`: the names of all agents'
    skills of the code."""

    def __init__(self, settings: Settings, source: SourceMaker, library: SkillLibrary, taken: Collection[str]) -> None:
        self._settings, self._source, self._library, self._taken = settings, source, library, taken

    def toolbox(self, agent: Agent, user: str | None = None, *, servers: bool = True, depth: int = 0) -> Toolbox:
        """Without subagents in a run that may have none any more."""
        found = servers_of(agent, self._settings).items() if servers else ()
        sources = [self._source(name, server, self._settings, user or LOCAL) for name, server in found]
        own = [*self.own_tools(agent, deep=depth >= MOST_DEPTH), read_result_tool()]
        return Toolbox(own, sources, allow=self._settings.tools_allow, deny=self._settings.tools_deny, searchable=True)

    def own_tools(self, agent: Agent, *, deep: bool = False) -> Sequence[Any]:
        """Those of the code, without subagents where a run is too `deep` to have any, and the built-in ones."""
        egress = self._settings.egress_over(agent.egress)
        tools = [tool for tool in agent.tools if not (deep and isinstance(tool, Subagent))]
        built_in = [web_fetch_tool(egress)] if egress else []
        return [*tools, *built_in, *skill_tools(self.skills(agent), self._settings.declared_secrets())]

    def skills(self, agent: Agent) -> SkillUse:
        return skills_of(agent, self._settings, self._library, self._taken)
