"""Logs in tests: make one, keep it as a file, and see later whether the agent still does what it did then.

Path("tests/logs/refund.ndjson").write_text(await record(agent, "Refund order 7."))

async def test_the_agent_still_asks_what_it_asked() -> None:
assert await replay(agent, Path("tests/logs/refund.ndjson").read_text()) is None
"""

import os
import uuid

from edge_agent import cpython
from edge_agent.agent import Agent
from edge_agent.core.difference import Difference
from edge_agent.deployment import Deployment
from edge_agent.in_process import LocalRuns
from edge_agent.testing.memory import in_memory_log
from edge_agent.wire import export
from edge_agent.wire.http import StartRun
from edge_agent.wire.settings import Settings


async def record(agent: Agent, task: str) -> str:
    """Runs the agent in this process and returns the log of the run, as GET /v1/runs/{id}/log would export it.

    Nobody can be asked: a call that needs an approval is denied."""
    deployment, log = _deployment(agent), in_memory_log()
    created = deployment.configure(StartRun(input=task))
    runs = LocalRuns(deployment)
    run = runs.open(uuid.uuid4().hex, log)
    await runs.start(run, created)
    return "".join(f"{line}\n" for line in export.lines(run.run_id, run.journal.in_order(), log.files()))


async def replay(agent: Agent, log: str | bytes) -> Difference | None:
    """The first difference between what the agent asks for and what an exported log holds; None where there is none.
    No model, tool or hook is called, and no server is connected to.

    Raises Refusal for what is no log, and for the log of an agent of another name."""
    return await _deployment(agent).replay(export.read(log))


def _deployment(agent: Agent) -> Deployment:
    return Deployment([agent], Settings.from_env(os.environ), cpython.model, cpython.source, cpython.fetcher)
