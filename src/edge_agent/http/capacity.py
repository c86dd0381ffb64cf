"""EDGE_AGENT_MAX_RUNS: how many runs of the deployment may be active at a time."""

from edge_agent.core.errors import Refusal
from edge_agent.http.ports import Deps

COME_BACK_SECONDS = 5


async def room_for_a_run(deps: Deps) -> None:
    """Raises Refusal 429 where as many runs are active as may be. Asks nobody where there is no cap.

    Active are those that have not ended, as far as they have told. Requests that are judged at the same moment do not
    see each other's runs, so a burst may go over the cap by as many as came at once; no end is ever lost, so no run
    counts for ever."""
    most = deps.settings.max_runs
    if most is None:
        return
    active = sum(part["active"] for part in await deps.directory.ask("active", {}))
    if active >= most:
        message = f"{active} runs are active, and EDGE_AGENT_MAX_RUNS is {most}. Wait until one ends, or cancel one."
        raise Refusal(429, "too_many_runs", message, retry_after=COME_BACK_SECONDS, limit=most, active=active)
