"""A tool of an MCP server as a `Tool`."""

from dataclasses import dataclass

from edge_agent.core.errors import InvalidArguments, ToolError
from edge_agent.core.events import OnUnknown
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import ToolContext, ToolOutput
from edge_agent.tools.arguments import require_json
from edge_agent.tools.json_schema import SchemaCheck, parameters, schema_fault
from edge_agent.tools.mcp_connection import McpConnection
from edge_agent.tools.mcp_import import types
from edge_agent.tools.mcp_results import tool_output
from edge_agent.tools.mending import mended


@dataclass(frozen=True, slots=True, kw_only=True)
class McpTool:
    """`original` is the server's own name. Its promises (read-only, idempotent) are the server's word."""

    spec: ToolSpec
    server: str
    original: str
    timeout: float
    read_only: bool
    safe_to_repeat: bool
    arguments: SchemaCheck
    output: SchemaCheck | None
    connection: McpConnection
    on_unknown: OnUnknown = "report"
    requires_approval: bool = False

    def check(self, arguments: JsonObject) -> None:
        require_json(arguments)
        if faults := self.arguments.faults(arguments):
            raise InvalidArguments("; ".join(faults))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Raises InvalidArguments, ToolError for an error the server answered with, Unreachable when nothing was run,
        and OutcomeUnknown where the call was sent and may have run. A cancel reaches the server."""
        self.check(arguments)
        answer = await self.connection.call(
            self.original,
            arguments,
            idempotency_key=context.idempotency_key,
            safe_to_repeat=self.safe_to_repeat,
            progress=context.progress,
        )
        if isinstance(answer, types.InputRequiredResult):
            raise ToolError(
                f"{self.server} asks for something only a person can give, which this agent does not pass on."
            )
        return tool_output(answer, self.original, self.output)


def mcp_tool(tool: types.Tool, name: str, connection: McpConnection) -> McpTool:
    """`name` is the one models call it by."""
    hints = tool.annotations or types.ToolAnnotations()
    read_only = hints.read_only_hint is True
    told, output = mended(tool.input_schema), tool.output_schema
    return McpTool(
        spec=ToolSpec(
            name=name,
            description=tool.description or tool.title or f"{tool.name} of {connection.name}",
            parameters=parameters(told),
        ),
        server=connection.name,
        original=tool.name,
        timeout=connection.server.timeout,
        read_only=read_only,
        safe_to_repeat=read_only or hints.idempotent_hint is True,
        arguments=SchemaCheck(told),
        output=SchemaCheck(output) if output is not None and not schema_fault(output) else None,
        connection=connection,
    )
