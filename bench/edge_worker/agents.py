"""The agent of the measurements: one tool that costs nothing."""

from edge_agent import Agent, Limits, tool

LINE = "The ledger of the harbour lists nets, ropes, two anchors and a barge with its papers. "


@tool(read_only=True)
async def read(number: int) -> str:
    """Read a page."""
    return f"Page {number}. {LINE * 3}"


agents = [Agent(name="reader", tools=[read], limits=Limits(max_steps=2_000, max_tool_calls=None))]
