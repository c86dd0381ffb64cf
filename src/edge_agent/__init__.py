"""Durable AI agents in Python on Cloudflare Workers."""

from edge_agent.agent import Agent
from edge_agent.core.approval import Decision
from edge_agent.core.compaction import Compaction
from edge_agent.core.egress import Egress
from edge_agent.core.errors import ConfigError, ToolError
from edge_agent.core.history import compact_history
from edge_agent.core.hooks import Hooks, Reject
from edge_agent.core.limits import Limits
from edge_agent.core.messages import Turn
from edge_agent.core.skill_library import Learning
from edge_agent.core.skills import Skill
from edge_agent.core.tooling import ToolContext, ToolFile, ToolOutput
from edge_agent.handoff import handoff
from edge_agent.subagent import subagent
from edge_agent.tool import tool
from edge_agent.tools.mcp_server import IdentityProvider, McpServer, OAuth

__all__ = [
    "Agent",
    "Compaction",
    "ConfigError",
    "Decision",
    "Egress",
    "Hooks",
    "IdentityProvider",
    "Learning",
    "Limits",
    "McpServer",
    "OAuth",
    "Reject",
    "Skill",
    "ToolContext",
    "ToolError",
    "ToolFile",
    "ToolOutput",
    "Turn",
    "compact_history",
    "handoff",
    "subagent",
    "tool",
]
