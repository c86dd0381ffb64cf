"""Runs in this process: the same journal and driver, sqlite3 in memory, asyncio in place of the platform's alarm."""

import asyncio
import os
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from edge_agent import cpython
from edge_agent.agent import Agent
from edge_agent.asking import Asker, OnApproval
from edge_agent.core.errors import Refusal
from edge_agent.core.events import Event, RecordedEvent, RunCreated
from edge_agent.core.history import Compacted
from edge_agent.core.hub import Hub, Item
from edge_agent.core.journal import Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Clock, Log, Post, Record, Send, StoredFile
from edge_agent.core.state import RunState, fold
from edge_agent.deployment import Deployment
from edge_agent.given import GivenTurn, Task, carrying, start_of, turns_of
from edge_agent.kin_objects import receive
from edge_agent.loop.driver import Driver, SliceBudget
from edge_agent.loop.inbox import Inbox
from edge_agent.loop.kin import TO_RUN, turned_away
from edge_agent.loop.walk import Ports
from edge_agent.storage.skills import library_over
from edge_agent.storage.sql import in_memory
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import codec
from edge_agent.wire.forwarded import forwarded
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
    """`ports` is called with the hub and the clock at the beginning of each slice. `mask`: see Journal. `post`: the way
    to other runs.

    Give the `log` of an earlier run to go on with it."""

    def __init__(
        self,
        run_id: str,
        ports: Callable[[Hub, SystemClock], Ports],
        *,
        log: Log | None = None,
        mask: Callable[[RecordedEvent], RecordedEvent] = lambda event: event,
        post: Post | None = None,
    ) -> None:
        self.run_id, self.clock, self.hub = run_id, SystemClock(), Hub()
        self.journal = Journal(log or SqlLog(in_memory(), codec), self.clock, self.hub, mask)
        self._alarm = AsyncioAlarm(self.clock)
        self.driver = Driver(
            run_id,
            self.journal,
            self._alarm,
            lambda: ports(self.hub, self.clock),
            post=post,
            show=lambda record: forwarded(record, run_id),
        )
        self.inbox = Inbox(self.journal, self.driver)

    async def start(self, created: RunCreated, files: Sequence[StoredFile] = ()) -> RunState:
        """Creates the run and drives it to its end. `files`: what was sent along."""
        self.inbox.create(created, fingerprint="", idempotent=False, files=files)
        return await self.until_ended()

    async def until_ended(self) -> RunState:
        """Drives the run; returns when it has its terminal record, and others have heard what it had to tell them."""
        await self.until_told()
        return self.state()

    async def until_told(self) -> None:
        """Like until_ended, also for a run that never began."""
        journal = self.journal
        while not (journal.ended or journal.refused) or self.driver.outbox.due() is not None:
            await self._alarm.due()
            await self.driver.ring(SliceBudget().begin(self.clock.now()))

    def state(self) -> RunState:
        return fold(self.run_id, self.journal.in_order())


class LocalRuns:
    """A run in this process and its subagents, each with a log, a driver and an alarm of its own, as objects have.
    It is the `Post` between them. Without `on_approval` nobody can be asked."""

    def __init__(self, deployment: Deployment, on_approval: OnApproval | None = None) -> None:
        self._deployment, self._on_approval = deployment, on_approval
        self._runs: dict[str, InProcessRun] = {}
        self._askers: list[Asker] = []
        self._children: dict[str, asyncio.Task[None]] = {}

    def open(self, run_id: str, log: Log | None = None) -> InProcessRun:
        """The run with this id, made where there is none. Nothing is on record before it is created."""
        if run_id in self._runs:
            return self._runs[run_id]
        can_ask = self._on_approval is not None

        def ports(hub: Hub, clock: SystemClock) -> Ports:
            return self._deployment.ports(run.journal.created, hub, clock, can_ask=can_ask)

        run = self._runs[run_id] = InProcessRun(run_id, ports, log=log, mask=self._deployment.mask, post=self)
        if self._on_approval is not None:
            self._askers.append(Asker(run.hub, run.inbox, self._on_approval))
        return run

    async def start(self, run: InProcessRun, created: RunCreated, files: Sequence[StoredFile] = ()) -> RunState:
        """Drives it to its end, and its subagents to theirs."""
        try:
            state = await run.start(created, files)
            while self._children:
                await asyncio.gather(*self._children.values())
            return state
        finally:
            for asker in self._askers:
                asker.stop()
            for task in self._children.values():
                task.cancel()

    async def send(self, send: Send) -> None:
        """Runs are all there is to send to. The first thing a child hears begins its work."""
        run_id = send.destination.removeprefix(TO_RUN)
        known = run_id in self._runs
        run = self.open(run_id)
        try:
            receive(run.inbox, send.method, send.arguments)
        except Refusal as no:  # which is an answer as well
            if told := turned_away(send, no.message):
                await self.send(told)
        if not known:
            task = self._children[run_id] = asyncio.ensure_future(run.until_told())
            task.add_done_callback(lambda _: self._children.pop(run_id, None))


def _deployment(agent: Agent) -> Deployment:
    """With a library of skills of its own, gone after the run."""
    settings, library = Settings.from_env(os.environ), library_over(in_memory(), SystemClock())
    return Deployment([agent], settings, cpython.model, cpython.source, cpython.fetcher, library=library)


async def compact_for(agent: Agent, history: Sequence[GivenTurn], *, force: bool) -> Compacted:
    return await _deployment(agent).compact(turns_of(history), force=force)


async def run_agent(
    agent: Agent,
    task: Task,
    *,
    history: Sequence[GivenTurn] = (),
    metadata: JsonObject | None = None,
    on_approval: OnApproval | None = None,
) -> RunState:
    asked, deployment = start_of(task, history, metadata), _deployment(agent)
    runs = LocalRuns(deployment, on_approval)
    state = await runs.start(runs.open(uuid.uuid4().hex), deployment.configure(asked), asked.files)
    compacted = state.compacted_history
    return replace(state, compacted_history=carrying(compacted, asked.files)) if compacted else state


async def stream_agent(
    agent: Agent,
    task: Task,
    *,
    history: Sequence[GivenTurn] = (),
    metadata: JsonObject | None = None,
    on_approval: OnApproval | None = None,
) -> AsyncGenerator[Event]:
    asked, deployment = start_of(task, history, metadata), _deployment(agent)
    created, runs = deployment.configure(asked), LocalRuns(deployment, on_approval)
    run = runs.open(uuid.uuid4().hex)
    queue: asyncio.Queue[Event | None] = asyncio.Queue()

    def tell(items: Sequence[Item]) -> None:
        for item in items:
            queue.put_nowait(item.event if isinstance(item, Record) else item)

    run.hub.follow(tell)
    work = asyncio.ensure_future(runs.start(run, created, asked.files))
    work.add_done_callback(lambda _: queue.put_nowait(None))
    _detached.add(work)
    work.add_done_callback(_detached.discard)
    while (event := await queue.get()) is not None:
        yield event
    await work


# Runs whose stream was left go on; asyncio itself keeps weak references only.
_detached: set[asyncio.Task[RunState]] = set()
