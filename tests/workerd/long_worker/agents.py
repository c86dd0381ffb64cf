"""An agent whose runs outgrow the window of their model."""

from edge_agent import Agent, tool

LINE = "The ledger of the harbour lists nets, ropes, two anchors and a barge with its papers. "


@tool(read_only=True)
async def read(number: int) -> str:
    """Read a page of the ledger: 3 KB."""
    return f"Page {number}. {LINE * 36}"


agents = [Agent(name="reader", instructions="Read the ledger page by page.", tools=[read])]
