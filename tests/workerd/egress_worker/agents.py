"""Agents that reach the outside, whose rules EDGE_AGENT_EGRESS sets."""

from edge_agent import Agent, ToolContext, tool

HEADERS = {
    "authorization": "Bearer credential-4711",
    "cookie": "session=credential-4711",
    "x-api-key": "credential-4711",
}


@tool(read_only=True)
async def ask_with_credentials(context: ToolContext, url: str) -> str:
    """Fetch with headers that hold a credential."""
    answer = await context.fetch(url, headers=HEADERS)
    return f"{answer.status} {answer.text}"


@tool
async def post(context: ToolContext, url: str) -> str:
    """Send something."""
    return (await context.fetch(url, method="POST", content=b"body-4711")).text


agents = [Agent(name="reader", tools=[ask_with_credentials, post])]
