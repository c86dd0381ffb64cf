"""A Durable Object on virtual time: one log, at most one instance, one alarm that outlives it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from edge_agent.core.events import RecordedEvent
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Journal
from edge_agent.core.listing import Listed
from edge_agent.core.ports import Log, Post
from edge_agent.loop.driver import Driver, SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.walk import Ports
from edge_agent.testing.faults import Faults, FaultyLog, Killed
from edge_agent.testing.memory import in_memory_log
from edge_agent.testing.virtual_time import BEGIN, Owner, VirtualClock, owner
from edge_agent.wire.forwarded import forwarded

T = TypeVar("T")
RESTART_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Instance:
    """What lives in memory, until it is killed."""

    log: FaultyLog
    hub: Hub
    journal: Journal
    driver: Driver
    inbox: Inbox


class SimulatedObject:
    """Runs in `in_virtual_time`. `ports` is called with the instance at the beginning of each slice.

    faults: when to die. vanish: what was under way at a death ends with it; else it ends unseen, as a request does that
    has left already. on_instance is called with each new instance. post: the way to the directory of runs and to other
    objects; without one nothing is sent.
    """

    def __init__(
        self,
        run_id: str,
        ports: Callable[[Instance], Ports],
        *,
        log: Log | None = None,
        faults: Faults | None = None,
        vanish: bool = True,
        slice_budget: SliceBudget | None = None,
        mask: Callable[[RecordedEvent], RecordedEvent] = lambda event: event,
        on_instance: Callable[[Instance], None] = lambda _: None,
        post: Post | None = None,
    ) -> None:
        self.run_id, self._ports, self._mask, self._on_instance = run_id, ports, mask, on_instance
        self.log, self.faults, self._vanish = log or in_memory_log(), faults or Faults(), vanish
        self._slice_budget, self._post = slice_budget or SliceBudget(), post
        self.clock = VirtualClock()
        self._instance: Instance | None = None
        self._owner = Owner()
        self._alarm: int | None = None
        self._changed = asyncio.Event()
        self.rings = 0

    # -- the instance
    @property
    def instance(self) -> Instance:
        """The one that lives, made where there is none."""
        if self._instance is None:
            self._owner = mine = Owner()
            log = FaultyLog(self.log, self.faults, lambda: self._died(mine))
            hub = Hub()
            listed = Listed(self.run_id) if self._post else None
            journal = Journal(log, self.clock, hub, self._mask, listed)
            alarm = _InstanceAlarm(self, log)
            driver = Driver(
                self.run_id,
                journal,
                alarm,
                lambda: self._ports(made),
                self._slice_budget,
                post=self._post,
                show=lambda record: forwarded(record, self.run_id),
            )
            made = self._instance = Instance(log, hub, journal, driver, Inbox(journal, driver))
            self._on_instance(made)
        return self._instance

    def kill(self) -> None:
        if self._instance:
            self._instance.log.kill()

    def _died(self, whose: Owner) -> None:
        self._instance = None
        if self._vanish:
            whose.cancel_all()

    # -- what comes from outside
    async def call(self, handler: Callable[[Inbox], T], *, again: bool = True) -> T:
        """A caller who tries again when the object dies under the call; without `again` one who meets Killed."""
        while True:
            try:
                return handler(self.instance.inbox)
            except Killed:
                if not again:
                    raise
                await asyncio.sleep(RESTART_SECONDS)

    # -- the alarm
    def set_alarm(self, at: int) -> None:
        self._alarm = at
        self._changed.set()

    async def until(self, done: Callable[[], bool]) -> None:
        """Drives the run until `done`, asked between slices. An alarm whose slice died rings again."""
        while not done():
            await self._due()
            self._alarm = None
            self.rings += 1
            if await self._slice_died() and self._alarm is None:
                self.set_alarm(self.clock.now() + int(RESTART_SECONDS * 1000))

    async def until_ended(self) -> None:
        await self.until(self.has_ended)

    async def until_told(self) -> None:
        """Until it has ended and everything it had to tell others is acknowledged."""
        await self.until(lambda: (self.has_ended() or self.log.erased()) and not self.log.outbox())

    def has_ended(self) -> bool:
        """Also by never having begun."""
        return self.instance.journal.ended is not None or self.instance.journal.refused

    async def _slice_died(self) -> bool:
        instance = self.instance
        token = owner.set(self._owner)
        task = asyncio.ensure_future(instance.driver.ring())
        owner.reset(token)
        try:
            await task
        except (Killed, asyncio.CancelledError):
            if not instance.log.dead:
                raise
        return instance.log.dead

    async def _due(self) -> None:
        while self._alarm is None or self._alarm > self.clock.now():
            self._changed.clear()
            pause = None if self._alarm is None else (self._alarm - BEGIN) / 1000 - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue


@dataclass(frozen=True, slots=True)
class _InstanceAlarm:
    """A dead instance sets no alarm."""

    simulated: SimulatedObject
    log: FaultyLog

    def set(self, at: int) -> None:
        if self.log.dead:
            raise Killed
        self.simulated.set_alarm(at)
