"""A call of a tool as it goes to an MCP server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edge_agent.core.messages import JsonObject
from edge_agent.core.tooling import Answers
from edge_agent.tools.mcp_elicitation import responses
from edge_agent.tools.mcp_import import types

IDEMPOTENCY_KEY = "edge-agent/idempotency-key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`tool` by the server's own name. `answers`: what a person has said to the server, where the call is made again
    for that."""

    tool: str
    arguments: JsonObject
    idempotency_key: str
    answers: Sequence[Answers]

    def request(self, *, with_answers: bool) -> types.CallToolRequest:
        """Answers go along in the newer generation only; the older one asks for them."""
        given, state = responses(self.answers) if with_answers else (None, None)
        meta: Any = {IDEMPOTENCY_KEY: self.idempotency_key}
        params = types.CallToolRequestParams(
            name=self.tool, arguments=self.arguments, input_responses=given, request_state=state, _meta=meta
        )
        return types.CallToolRequest(params=params)
