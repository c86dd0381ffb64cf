"""`@tool`: a typed function becomes something a model can call.

@tool(read_only=True)
async def forecast(city: str, days: int = 1) -> Forecast:
    '''Look up the weather forecast.

    Args:
        city: Name of the city, in English.
        days: How many days ahead, at most 7.
    '''
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from edge_agent.core.errors import ToolError
from edge_agent.core.events import OnUnknown
from edge_agent.core.tooling import ToolContext, ToolFile, ToolOutput
from edge_agent.tools.functions import FunctionTool, function_tool
from edge_agent.tools.mcp_server import McpServer

__all__ = ["FunctionTool", "McpServer", "ToolContext", "ToolError", "ToolFile", "ToolOutput", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = 30,
    read_only: bool = False,
    idempotent: bool = False,
    on_unknown: OnUnknown = "report",
    requires_approval: bool = False,
    max_output: int | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = 30,
    read_only: bool = False,
    idempotent: bool = False,
    on_unknown: OnUnknown = "report",
    requires_approval: bool = False,
    max_output: int | None = None,
) -> Any:
    """Make a tool of a typed function, async or plain. A plain one blocks the run while it works: keep it short.

    The name, the description and those of the parameters come from the function and its docstring, the input schema
    from its annotations. The return annotation is checked too, and the checked value is what the model sees: text as
    it is, anything else as JSON, nothing as "done". Return a ToolOutput for files, or to say that the tool failed;
    raise ToolError (or anything) for the latter as well. A first parameter annotated ToolContext gets the context of
    the call; the model does not see it.

    timeout: seconds, after which the call is cancelled.
    read_only, idempotent: promises; either lets a call that was lost in a crash run again. Without them its outcome is
    unknown, and on_unknown says what follows: report (tell the model), ask (a person), retry, fail (the run).
    requires_approval: a person is asked before each call, whatever the mode; rules of the agent come first.
    max_output: characters of a result that the model sees, where that is to be less than the 20 000 of every tool.
    Raises ConfigError where the definition cannot work.
    """

    def made(defined: Callable[..., Any]) -> FunctionTool[..., Any]:
        return function_tool(
            defined,
            name=name,
            description=description,
            timeout=timeout,
            read_only=read_only,
            idempotent=idempotent,
            on_unknown=on_unknown,
            requires_approval=requires_approval,
            max_output=max_output,
        )

    return made if function is None else made(function)
