"""A tool of an MCP server as a `Tool`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from edge_agent.core.errors import InvalidArguments
from edge_agent.core.events import OnUnknown
from edge_agent.core.messages import JsonObject, ToolSpec
from edge_agent.core.tooling import Answers, ToolContext, ToolOutput
from edge_agent.tools.arguments import require_json
from edge_agent.tools.json_schema import SchemaCheck, parameters, schema_fault
from edge_agent.tools.mcp_connection import McpConnection
from edge_agent.tools.mcp_elicitation import needs_answer
from edge_agent.tools.mcp_import import types
from edge_agent.tools.mcp_results import tool_output
from edge_agent.tools.mcp_session import CallAnswer
from edge_agent.tools.mending import mended

_PAUSE = 0.25  # seconds before a call that its server has put off is made again


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
    max_output: None = None

    def check(self, arguments: JsonObject) -> None:
        require_json(arguments)
        if faults := self.arguments.faults(arguments):
            raise InvalidArguments("; ".join(faults))

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """Raises InvalidArguments, ToolError for an error the server answered with, Unreachable when nothing was run,
        OutcomeUnknown where the call was sent and may have run, NeedsSignIn and NeedsAnswer where a person is needed.
        A cancel reaches the server."""
        self.check(arguments)
        answers = context.answers
        while isinstance(answer := await self._called(arguments, context, answers), types.InputRequiredResult):
            if answer.input_requests:
                raise needs_answer(self.server, answer)
            await asyncio.sleep(_PAUSE)  # it asks for nothing but patience
            answers = (Answers(responses={}, request_state=answer.request_state),)
        return tool_output(answer, self.original, self.output)

    async def _called(self, arguments: JsonObject, context: ToolContext, answers: Sequence[Answers]) -> CallAnswer:
        return await self.connection.call(
            self.original,
            arguments,
            idempotency_key=context.idempotency_key,
            safe_to_repeat=self.safe_to_repeat,
            progress=context.progress,
            answers=answers,
            ask=context.ask,
        )


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
