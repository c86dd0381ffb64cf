"""What an agent can do: functions of its author and tools of MCP servers, behind the `Tools` port."""
