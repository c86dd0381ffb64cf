"""The Durable Object of one MCP connection: a shell."""

from durable_objects.wiring import connecting
from edge_agent.cloudflare.mcp_connection import McpConnectionObject


class McpConnection(McpConnectionObject):
    """One for each server that asks for a login, and user."""

    wiring = staticmethod(connecting)
