"""A run in this process: the same journal and driver, sqlite3 in memory, asyncio in place of the platform's alarm."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence

from edge_agent import cpython
from edge_agent.agent import Agent
from edge_agent.asking import Asker, OnApproval
from edge_agent.core.events import Event, RecordedEvent, RunCreated
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Journal
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.ports import Clock, Log, Record
from edge_agent.core.state import RunState, fold
from edge_agent.deployment import Deployment
from edge_agent.loop.driver import Driver
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.walk import Ports
from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec
from edge_agent.wire.http import HistoryTurn, StartRun
from edge_agent.wire.settings import Settings


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000


class AsyncioAlarm:
    """Rings when `ring` is awaited: the driver of an in-process run is whoever waits for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._changed = clock, asyncio.Event()
        self._at: int | None = None

    def set(self, at: int) -> None:
        self._at = at
        self._changed.set()

    async def due(self) -> None:
        """Returns when it is time to ring, and clears the alarm."""
        while True:
            self._changed.clear()
            pause = None if self._at is None else max(0.0, (self._at - self._clock.now()) / 1000)
            if pause == 0.0:
                self._at = None
                return
            try:
                await asyncio.wait_for(self._changed.wait(), pause)
            except TimeoutError:
                continue


class InProcessRun:
    """`ports` is called with the hub and the clock at the beginning of each slice. `mask`: see Journal.

    Give the `log` of an earlier run to go on with it."""

    def __init__(
        self,
        run_id: str,
        ports: Callable[[Hub, SystemClock], Ports],
        *,
        log: Log | None = None,
        mask: Callable[[RecordedEvent], RecordedEvent] = lambda event: event,
    ) -> None:
        self.run_id, self.clock, self.hub = run_id, SystemClock(), Hub()
        self.journal = Journal(log or SqlLog(in_memory(), codec), self.clock, self.hub, mask)
        self._alarm = AsyncioAlarm(self.clock)
        self.driver = Driver(run_id, self.journal, self._alarm, lambda: ports(self.hub, self.clock))
        self.inbox = Inbox(self.journal, self.driver)

    async def start(self, created: RunCreated) -> RunState:
        """Creates the run and drives it to its end."""
        self.inbox.create(created, fingerprint="", idempotent=False)
        return await self.until_ended()

    async def until_ended(self) -> RunState:
        """Drives the run; returns when it has its terminal record."""
        while not self.journal.ended:
            await self._alarm.due()
            await self.driver.ring()
        return self.state()

    def state(self) -> RunState:
        return fold(self.run_id, self.journal.in_order())


def _deployment(agent: Agent) -> Deployment:
    return Deployment([agent], Settings.from_env(os.environ), cpython.model, cpython.source)


async def run_agent(
    agent: Agent,
    task: str,
    *,
    history: Sequence[Turn] = (),
    metadata: JsonObject | None = None,
    on_approval: OnApproval | None = None,
) -> RunState:
    run, created = _prepared(agent, task, history, metadata, can_ask=on_approval is not None)
    return await _asking(run, created, on_approval)


async def _asking(run: InProcessRun, created: RunCreated, on_approval: OnApproval | None) -> RunState:
    if on_approval is None:
        return await run.start(created)
    asker = Asker(run.hub, run.inbox, on_approval)
    try:
        return await run.start(created)
    finally:
        asker.stop()


async def stream_agent(
    agent: Agent,
    task: str,
    *,
    history: Sequence[Turn] = (),
    metadata: JsonObject | None = None,
    on_approval: OnApproval | None = None,
) -> AsyncGenerator[Event]:
    run, created = _prepared(agent, task, history, metadata, can_ask=on_approval is not None)
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def tell(items: Sequence[Item]) -> None:
        for item in items:
            queue.put_nowait(item.event if isinstance(item, Record) else item)

    run.hub.follow(tell)
    work = asyncio.ensure_future(_asking(run, created, on_approval))
    work.add_done_callback(lambda _: queue.put_nowait(None))
    _detached.add(work)
    work.add_done_callback(_detached.discard)
    while (event := await queue.get()) is not None:
        yield event
    await work


_detached: set[asyncio.Task[RunState]] = (
    set()
)  # runs whose stream was left go on; asyncio itself keeps weak references only


def _prepared(
    agent: Agent, task: str, history: Sequence[Turn], metadata: JsonObject | None, *, can_ask: bool
) -> tuple[InProcessRun, RunCreated]:
    deployment = _deployment(agent)
    turns = tuple(HistoryTurn(role=turn.role, text=turn.text) for turn in history)
    created = deployment.configure(StartRun(input=task, history=turns, metadata=metadata))

    def ports(hub: Hub, clock: SystemClock) -> Ports:
        return deployment.ports(created, hub, clock, can_ask=can_ask)

    return InProcessRun(uuid.uuid4().hex, ports, mask=deployment.mask), created
