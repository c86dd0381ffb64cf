"""A Durable Object on virtual time: the logs of its runs, at most one instance, one alarm that outlives it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from edge_agent.core import keys
from edge_agent.core.events import RecordedEvent
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Journal
from edge_agent.core.listing import Listed
from edge_agent.core.ports import Alarm, Log, Post
from edge_agent.loop.driver import Driver, SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.shared_alarm import SharedAlarm
from edge_agent.loop.walk import Ports, Slice
from edge_agent.storage.alarms import SqlAlarms
from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.testing.faults import Faults, FaultyLog, Killed
from edge_agent.testing.virtual_time import BEGIN, Owner, VirtualClock, owner
from edge_agent.wire import codec
from edge_agent.wire.forwarded import forwarded

T = TypeVar("T")
RESTART_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Instance:
    """What lives in memory of a run, until its object is killed."""

    log: FaultyLog
    hub: Hub
    journal: Journal
    driver: Driver
    inbox: Inbox


class SimulatedRun:
    """A run in its own object or in that of another. `faults`: which of its appends kill the object."""

    def __init__(
        self,
        run_id: str,
        lies_in: "SimulatedObject",
        log: Log,
        faults: Faults | None,
        on_instance: Callable[[Instance], None],
    ) -> None:
        self.run_id, self.log, self.faults, self.rings = run_id, log, faults or Faults(), 0
        self._object, self._on_instance = lies_in, on_instance
        self._instance: Instance | None = None

    # -- the instance
    @property
    def instance(self) -> Instance:
        """The one that lives, made where there is none."""
        if self._instance is None:
            self._instance = self._object.instance_of(self)
            self._on_instance(self._instance)
        return self._instance

    def kill(self) -> None:
        """With everything else in the object."""
        self._object.die()

    def lose_instance(self) -> None:
        if self._instance:
            self._instance.log.kill()
        self._instance = None

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

    def has_ended(self) -> bool:
        """Also by never having begun, or by a deletion."""
        journal = self.instance.journal
        return journal.ended is not None or journal.refused or journal.erased


class SimulatedObject(SimulatedRun):
    """An object with its own run, and those of inline subagents. Runs in `in_virtual_time`. `ports` is called with the
    instance at the beginning of each slice.

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
        self._sql = in_memory()
        super().__init__(run_id, self, log or SqlLog(self._sql, codec), faults, on_instance)
        self._ports, self._mask, self._vanish = ports, mask, vanish
        self._slice_budget, self._post = slice_budget, post
        self.clock = VirtualClock()
        self._runs: dict[str, SimulatedRun] = {run_id: self}
        self._process: _Process | None = None
        self._alarm: int | None = None
        self._changed = asyncio.Event()

    # -- its runs
    def inline(self, run_id: str, faults: Faults, on_instance: Callable[[Instance], None]) -> SimulatedRun:
        """The run of an inline subagent, there from the first time that somebody asks for it."""
        if run_id not in self._runs:
            log = SqlLog(self._sql, codec, keys.within_object(run_id))
            self._runs[run_id] = SimulatedRun(run_id, self, log, faults, on_instance)
        return self._runs[run_id]

    def instance_of(self, run: SimulatedRun) -> Instance:
        process = self._living()
        log, hub = FaultyLog(run.log, run.faults, self.die), Hub()
        journal = Journal(log, self.clock, hub, self._mask, Listed(run.run_id) if self._post else None)
        driver = Driver(
            run.run_id,
            journal,
            _LivingAlarm(process, process.alarm.of(run.run_id)),
            lambda: self._ports(made),
            post=self._post,
            show=lambda record: forwarded(record, run.run_id),
        )
        made = Instance(log, hub, journal, driver, Inbox(journal, driver))
        return made

    def _living(self) -> "_Process":
        if self._process is None:
            alarm = SharedAlarm(self.run_id, self, SqlAlarms(self._sql), self.clock, self._slice_budget)
            self._process = _Process(alarm)
        return self._process

    def die(self) -> None:
        """With all of its runs."""
        process, self._process = self._process, None
        if process is None:
            return
        process.dead = True
        for run in self._runs.values():
            run.lose_instance()
        if self._vanish:
            process.owner.cancel_all()

    # -- the alarm
    def set(self, at: int) -> None:
        if at <= 0:
            raise ValueError(f"{at} is no time for an alarm: workerd refuses it")
        self._alarm = at
        self._changed.set()

    async def until(self, done: Callable[[], bool]) -> None:
        """Drives the runs until `done`, asked between slices. An alarm whose slice died rings again."""
        while not done():
            await self._due()
            self._alarm = None
            if await self._slices_died() and self._alarm is None:
                self.set(self.clock.now() + int(RESTART_SECONDS * 1000))

    async def until_ended(self) -> None:
        await self.until(self.has_ended)

    async def until_told(self) -> None:
        """Until it has ended and everything it had to tell others is acknowledged."""
        await self.until(lambda: self.has_ended() and not self.log.outbox())

    async def _slices_died(self) -> bool:
        process = self._living()
        token = owner.set(process.owner)
        task = asyncio.ensure_future(process.alarm.ring(self._ring))
        owner.reset(token)
        try:
            await task
        except (Killed, asyncio.CancelledError):
            if not process.dead:
                raise
        return process.dead

    async def _ring(self, run_id: str, slice_: Slice) -> None:
        run = self._runs[run_id]
        run.rings += 1
        await run.instance.driver.ring(slice_)

    async def _due(self) -> None:
        while self._alarm is None or self._alarm > self.clock.now():
            self._changed.clear()
            pause = None if self._alarm is None else (self._alarm - BEGIN) / 1000 - asyncio.get_running_loop().time()
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue


@dataclass(slots=True)
class _Process:
    """What a kill takes all at once."""

    alarm: SharedAlarm
    owner: Owner = field(default_factory=Owner)
    dead: bool = False


@dataclass(frozen=True, slots=True)
class _LivingAlarm:
    """A dead instance sets no alarm."""

    process: _Process
    alarm: Alarm

    def set(self, at: int) -> None:
        if self.process.dead:
            raise Killed
        self.alarm.set(at)
