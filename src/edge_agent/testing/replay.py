"""Replay of an exported log in a test: does the agent of today still do what it did in that run?

async def test_the_agent_still_asks_what_it_asked() -> None:
assert await replay(agent, Path("tests/logs/refund.ndjson").read_text()) is None
"""

import os

from edge_agent import cpython
from edge_agent.agent import Agent
from edge_agent.core.difference import Difference
from edge_agent.deployment import Deployment
from edge_agent.wire import export
from edge_agent.wire.settings import Settings


async def replay(agent: Agent, log: str | bytes) -> Difference | None:
    """The first difference between what the agent asks for and what the log (GET /v1/runs/{id}/log) holds; None where
    there is none. No model, tool or hook is called, and no server is connected to.

    Raises Refusal for what is no log, and for the log of an agent of another name."""
    deployment = Deployment([agent], Settings.from_env(os.environ), cpython.model, cpython.source)
    return await deployment.replay(export.read(log))
