"""A boss with researchers, whose tools act on the counting tool server of the tests."""

import json
from typing import Any

import js
from workers import env

from edge_agent import Agent, Limits, ToolContext, subagent, tool
from edge_agent.subagent import Isolation


async def _post(path: str, context: ToolContext, **fields: Any) -> str:
    body = json.dumps({"key": context.idempotency_key, "run": context.run_id, **fields})
    init = js.JSON.parse(json.dumps({"method": "POST", "body": body}))
    return str(await (await js.fetch(f"{env.TOOL_SERVER_URL}{path}", init)).text())


@tool
async def charge(context: ToolContext, n: int) -> str:
    """Charge once; never to be repeated."""
    return await _post("/charge", context, n=n)


@tool(read_only=True)
async def lookup(context: ToolContext, n: int) -> str:
    """Look something up."""
    return await _post("/lookup", context, n=n)


@tool(requires_approval=True)
async def order(context: ToolContext, n: int) -> str:
    """Order something, once a person agrees."""
    return await _post("/transfer", context, n=n)


researcher = Agent(
    name="researcher",
    description="Looks things up.",
    model="openai-compatible/researcher",
    tools=[charge, lookup, order],
)
patient = {"description": "Takes its time.", "model": "openai-compatible/slow-text-900"}
asking = {"description": "Asks before it orders.", "model": "openai-compatible/ordering"}

profiles = {"patient": patient, "asking": asking}


def boss(name: str, isolation: Isolation) -> Agent:
    return Agent(
        name=name,
        model="openai-compatible/boss",
        tools=[subagent(researcher, profiles=profiles, isolation=isolation), lookup],
        limits=Limits(max_total_tokens=2_000_000),
    )


def hurried(name: str, isolation: Isolation) -> Agent:
    return Agent(
        name=name,
        model="openai-compatible/hurried",
        tools=[subagent(researcher, profiles=profiles, timeout=1.0, isolation=isolation)],
    )


agents = [
    boss("boss-object", "object"),
    boss("boss-inline", "inline"),
    hurried("hurried-object", "object"),
    hurried("hurried-inline", "inline"),
]
