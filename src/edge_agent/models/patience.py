"""Time limits of a stream, with one timer for all of it: a timer for each read would cost more than the read."""

import asyncio
from collections.abc import Awaitable
from typing import Literal, TypeVar

T = TypeVar("T")
Limit = Literal["stalled", "timeout"]


class OutOfPatience(Exception):
    """`limit`: whether one read stayed silent too long or the whole call took too long."""

    def __init__(self, limit: Limit, seconds: float) -> None:
        super().__init__(limit, seconds)
        self.limit: Limit = limit
        self.seconds = seconds


class Patience:
    """Waits for one thing after the other. Only waiting counts as silence: what a consumer does between two reads is
    its own time.

    stall: seconds one wait may last. total: seconds from now on for all of them. None: no limit. `stop` when done."""

    def __init__(self, *, stall: float | None, total: float | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._stall, self._total = stall, total
        self._ends = None if total is None else self._loop.time() + total
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None  # that waits right now
        self._since = 0.0
        self._over: OutOfPatience | None = None

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """What the awaitable gives, or OutOfPatience after cancelling it."""
        task = asyncio.current_task()
        cancels = task.cancelling() if task else 0
        self._task, self._since = task, self._loop.time()
        if self._timer is None:
            self._rearm()
        try:
            return await awaitable
        except asyncio.CancelledError:
            # Ours, unless someone else cancelled the task too: then theirs goes on.
            if task and self._over and task.uncancel() <= cancels:
                raise self._over from None
            raise
        finally:
            self._task = None

    def stop(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _rearm(self) -> None:
        silent_until = None if self._stall is None else self._since + self._stall
        due = [when for when in (silent_until, self._ends) if when is not None]
        if due:
            self._timer = self._loop.call_at(min(due), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self._task is None:
            # Nobody waits; a deadline that has passed is noticed by the next wait.
            self._timer = None
            return
        if self._ends is not None and self._total is not None and now >= self._ends:
            self._over = OutOfPatience("timeout", self._total)
        elif self._stall is not None and now >= self._since + self._stall:
            self._over = OutOfPatience("stalled", self._stall)
        if self._over:
            self._task.cancel()
        else:
            self._rearm()
