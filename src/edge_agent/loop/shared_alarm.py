"""The one alarm of an object, shared by the runs that lie in it: those that are due ring side by side.

A run that is woken while others are at work begins at once, in the same handler: a parent does not wait for the slices
of its children. All slices of a handler share one budget. Where it is used up, whoever still begins (to meet a cancel
or a deadline, while another waits for a long answer) comes no further than to its next effect. Where nobody is at work
any more the handler ends, and the next one has a new budget.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from edge_agent.core import keys
from edge_agent.core.ports import Alarm, Alarms, Clock
from edge_agent.loop.driver import TICK_MS, SliceBudget
from edge_agent.loop.walk import Slice

Ring = Callable[[str, Slice], Awaitable[None]]
LONGEST_PAUSE = 3_600.0  # seconds; a timer of the runtime that is to last for more than 24 days rings at once
AGAIN_MS = 1_000  # until one begins again that has met a used up budget while others are at work


class SharedAlarm:
    """`own`: the id of the object's own run. `platform`: the alarm that the object has. `kept`: what outlives this
    instance of when the other runs are to be woken; nothing is kept of the object's own run."""

    def __init__(
        self, own: str, platform: Alarm, kept: Alarms, clock: Clock, slice_budget: SliceBudget | None = None
    ) -> None:
        self._own, self._platform, self._kept, self._clock = own, platform, kept, clock
        self._budget = slice_budget or SliceBudget()
        self._slice: Slice | None = None
        self._times: dict[str, int] = {}
        self._at_work: dict[str, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self._set_to: int | None = None
        self._rang_before = False

    def of(self, run_id: str) -> Alarm:
        return _AlarmOfOne(self, run_id)

    def is_at_work(self, run_id: str) -> bool:
        return run_id in self._at_work

    def set(self, run_id: str, at: int) -> None:
        """While others are at work a time to come is told to the platform only when they have ended: it would take the
        place of the alarm in flight, which brings them back after a crash."""
        now, others_at_work = self._clock.now(), self._at_work.keys() - {run_id}
        if run_id in self._at_work and others_at_work and self._slice and self._slice.spent(now):
            at = max(at, now + AGAIN_MS)
        self._times[run_id] = at
        if keys.within_object(run_id):
            self._kept.set(run_id, at)
        self._changed.set()
        if at <= now or not others_at_work:
            self._tell_platform()

    def _tell_platform(self) -> None:
        earliest = min(self._times.values())
        if earliest != self._set_to:
            self._set_to = earliest
            self._platform.set(earliest)

    async def ring(self, ring: Ring) -> None:
        """What the platform's alarm runs. `ring`: a slice of a run; it must not raise."""
        self._set_to = None
        slice_ = self._slice = self._budget.begin(self._clock.now())
        if not self._rang_before:
            self._recall()
        self._begin(ring, slice_)
        while self._at_work:
            await self._something_happens()
            if self._at_work:
                self._begin(ring, slice_)
        if self._times:
            self._tell_platform()

    def _recall(self) -> None:
        """A new instance does not know whom the alarm is for. The object's own run may ring in vain."""
        self._rang_before = True
        self._times = {self._own: self._clock.now(), **self._kept.times(), **self._times}

    def _begin(self, ring: Ring, slice_: Slice) -> None:
        """With whoever is due and not at work."""
        now = self._clock.now() + TICK_MS
        for run_id in [run_id for run_id, at in self._resting().items() if at <= now]:
            del self._times[run_id]
            self._at_work[run_id] = asyncio.ensure_future(self._rung(ring, run_id, slice_))

    async def _rung(self, ring: Ring, run_id: str, slice_: Slice) -> None:
        await ring(run_id, slice_)
        if keys.within_object(run_id) and run_id not in self._times:
            self._kept.clear(run_id)

    async def _something_happens(self) -> None:
        """A slice ends, a run is woken, or the time of one has come."""
        self._changed.clear()
        changed, at_work = asyncio.ensure_future(self._changed.wait()), self._at_work.values()
        next_one = min(self._resting().values(), default=None)
        pause = None if next_one is None else min(LONGEST_PAUSE, max(0, next_one - self._clock.now()) / 1000)
        await asyncio.wait((changed, *at_work), timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        for run_id in [run_id for run_id, task in self._at_work.items() if task.done()]:
            self._at_work.pop(run_id).result()

    def _resting(self) -> dict[str, int]:
        """When those that are not at work are to be woken."""
        return {run_id: at for run_id, at in self._times.items() if run_id not in self._at_work}


@dataclass(frozen=True, slots=True)
class _AlarmOfOne:
    shared: SharedAlarm
    run_id: str

    def set(self, at: int) -> None:
        self.shared.set(self.run_id, at)
