"""Runs that wait for a login: told when it is done, each by itself, again until it has heard."""

from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject
from edge_agent.login_waiters import Waiters
from edge_agent.storage.mcp_connections import SqlConnection
from edge_agent.storage.sql import in_memory
from tests.unit.http_fakes import StoppedClock


class Runs:
    """Runs that answer as `faults` says."""

    def __init__(self, **faults: Exception) -> None:
        self.faults, self.answered = faults, list[str]()

    async def call(self, run_id: str, method: str, payload: JsonObject) -> JsonObject:
        if run_id in self.faults:
            raise self.faults[run_id]
        assert (method, payload) == ("answer", {"question_id": "q", "answer": "signed in"})
        self.answered.append(run_id)
        return {}


async def undone() -> bool:
    return False


async def waiting(runs: Runs, *names: str) -> Waiters:
    waiters = Waiters(SqlConnection(in_memory()), runs, StoppedClock())
    for name in names:
        await waiters.wait(name, "q", 60, undone)
    return waiters


async def test_nobody_is_told_before_the_login_is_done_and_everybody_once_after_it() -> None:
    runs = Runs()
    waiters = await waiting(runs, "one", "two")
    assert (await waiters.tell(), runs.answered) == (None, [])
    waiters.release()
    assert (await waiters.tell(), sorted(runs.answered)) == (None, ["one", "two"])
    assert (await waiters.tell(), len(runs.answered)) == (None, 2)


async def test_a_run_that_cannot_be_told_holds_nobody_up_and_is_told_again_later() -> None:
    runs = Runs(broken=ZeroDivisionError("a fault of ours"), away=Refusal(503, "unavailable", "away"))
    waiters = await waiting(runs, "away", "broken", "well")
    due = waiters.release()
    assert (await waiters.tell(), runs.answered) == (due + 1_000, ["well"])


async def test_a_run_that_asks_no_more_is_not_told_again() -> None:
    runs = Runs(over=Refusal(409, "not_waiting", "over"), gone=Refusal(404, "unknown_run", "gone"))
    waiters = await waiting(runs, "over", "gone")
    waiters.release()
    assert await waiters.tell() is None


async def test_a_login_that_is_finished_while_a_run_looks_for_it_is_told_to_the_run() -> None:
    runs = Runs()
    waiters = await waiting(runs)

    async def looked_up_too_early() -> bool:
        waiters.release()
        return False

    assert await waiters.wait("one", "q", 60, looked_up_too_early) is None
    assert (await waiters.tell(), runs.answered) == (None, ["one"])


async def test_a_login_that_is_done_already_is_due_at_once() -> None:
    runs = Runs()
    waiters = await waiting(runs)

    async def done() -> bool:
        return True

    assert await waiters.wait("one", "q", 60, done) == StoppedClock().now()
    assert (await waiters.tell(), runs.answered) == (None, ["one"])
