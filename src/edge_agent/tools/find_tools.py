"""`find_tools`, the built-in tool of a round that does not offer all tools."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import Field

from edge_agent.core.tooling import FIND_TOOLS, Found, Tool, ToolOutput
from edge_agent.tools.functions import FunctionTool, function_tool
from edge_agent.tools.tool_search import DEFAULT, MOST, search_tools

_SHOWN = 200  # characters of a description


def find_tools_tool(catalogue: Callable[[], Sequence[Tool]]) -> FunctionTool[..., Any]:
    """`catalogue`: every tool there is to be found, as it is when the tool is called."""

    async def find_tools(query: str, server: str = "", limit: Annotated[int, Field(ge=1, le=MOST)] = DEFAULT) -> Any:
        """Find tools by what they do. You are shown only a few of all tools; those found can be called next.

        Args:
            query: A few words of what the tool is to do.
            server: Only tools of this server; empty for all.
            limit: How many tools to find at most.
        """
        tools = catalogue()
        found = search_tools(tools, query, server=server or None, limit=limit)
        if not found:
            return ToolOutput(text=_nothing(query, tools))
        lines = [f"- {tool.spec.name}: {_shortened(tool.spec.description)}" for tool in found]
        return ToolOutput(
            text="\n".join(["These can be called now:", *lines]),
            found=Found(query=query, names=tuple(tool.spec.name for tool in found)),
        )

    return function_tool(
        find_tools,
        name=FIND_TOOLS,
        description=None,
        timeout=30,
        read_only=True,
        idempotent=True,
        on_unknown="report",
        built_in=True,
    )


def _nothing(query: str, tools: Sequence[Tool]) -> str:
    servers = Counter(tool.server for tool in tools if tool.server)
    there = ", ".join(f"{name} ({count} tools)" for name, count in servers.items())
    return f"No tool fits {query[:100]!r}. Try other words" + (f", or one of the servers: {there}." if there else ".")


def _shortened(description: str) -> str:
    flat = " ".join(description.split())
    return flat if len(flat) <= _SHOWN else f"{flat[: _SHOWN - 1]}…"
