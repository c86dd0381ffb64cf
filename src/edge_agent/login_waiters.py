"""The runs that wait for one login to an MCP server: each is told when it is done, until it has
taken it or asks no more."""

import logging
from collections.abc import Awaitable, Callable

from edge_agent.core.errors import Refusal
from edge_agent.core.ports import Clock
from edge_agent.forking import Objects
from edge_agent.storage.mcp_connections import SqlConnection, Waiter

_log = logging.getLogger("edge_agent.logins")
_LONGEST_PAUSE_MS = 60_000
_DOUBLINGS = 6
_OVER = (404, 409, 410)  # a run that does not ask any more


class Waiters:
    def __init__(self, shelf: SqlConnection, runs: Objects, clock: Clock) -> None:
        self._shelf, self._runs, self._clock = shelf, runs, clock

    async def wait(
        self, run_id: str, question_id: str, seconds: int, is_done: Callable[[], Awaitable[bool]]
    ) -> int | None:
        """Returns when `tell` is due, where the login is done already. One that is finished while that is looked up
        finds the run among those who wait."""
        now = self._clock.now()
        self._shelf.wait(run_id, question_id, now + seconds * 1_000, now)
        return self.release() if await is_done() else None

    def release(self) -> int:
        """The login is done. Returns when `tell` is due."""
        now = self._clock.now()
        self._shelf.release(now)
        return now

    async def tell(self) -> int | None:
        """Answers the questions of those who were released. Returns when it is due again, if it is."""
        for waiter in self._shelf.due(self._clock.now()):
            if await self._answered(waiter):
                self._shelf.told(waiter)
            else:
                pause = min(_LONGEST_PAUSE_MS, 1_000 * 2 ** min(waiter.tries, _DOUBLINGS))
                self._shelf.postpone(waiter, self._clock.now() + pause)
        return self._shelf.next_due()

    async def _answered(self, waiter: Waiter) -> bool:
        answer = {"question_id": waiter.question_id, "answer": "signed in"}
        try:
            await self._runs.call(waiter.run_id, "answer", answer)
        except Refusal as no:
            return no.status in _OVER
        except Exception:  # noqa: BLE001 - those behind it are told all the same, and this one again
            _log.exception("A run could not be told of a login.")
            return False
        return True
