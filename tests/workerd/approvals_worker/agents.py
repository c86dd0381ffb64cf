"""Agents that ask before they act. Their tools act on the counting tool server of the tests."""

import json

import js
from workers import env

from edge_agent import Agent, ToolContext, subagent, tool


async def _post(path: str, context: ToolContext, n: int) -> str:
    body = json.dumps({"key": context.idempotency_key, "run": context.run_id, "n": n})
    init = js.JSON.parse(json.dumps({"method": "POST", "body": body}))
    return str(await (await js.fetch(f"{env.TOOL_SERVER_URL}{path}", init)).text())


@tool
async def charge(context: ToolContext, n: int) -> str:
    """Charge once; never to be repeated."""
    return await _post("/charge", context, n)


@tool
async def transfer(context: ToolContext, n: int) -> str:
    """Move money."""
    return await _post("/transfer", context, n)


@tool(read_only=True)
async def lookup(context: ToolContext, n: int) -> str:
    """Look something up."""
    return await _post("/lookup", context, n)


strict = Agent(name="strict", tools=[charge, transfer, lookup], approval="ask-writes")

agents = [
    Agent(
        name="clerk",
        tools=[charge, transfer, lookup],
        approval="ask-writes",
        approval_modes=("autopilot", "ask-writes", "ask-all", "read-only"),
    ),
    strict,
    Agent(name="boss", tools=[subagent(strict, isolation="inline")]),
]
