"""The one place that starts the loop: an alarm runs one slice, and only one loop of a run goes at a time.

A slice that dies (crash, deploy, eviction) leaves its alarm, which rings again; the walk goes on from the log.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from edge_agent.core import keys
from edge_agent.core.errors import Closed, ConfigError, EdgeAgentError
from edge_agent.core.events import (
    Boundary,
    ErrorInfo,
    ModelAnswered,
    ModelFailed,
    ModelRefused,
    RecordedEvent,
    RunStarted,
    SubagentCompleted,
    SubagentFailed,
    Terminal,
    ToolRejected,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.ports import Alarm, Post
from edge_agent.core.signals import Cancelled, Suspend, Wait, Yield
from edge_agent.loop import close
from edge_agent.loop.forwarding import Forwarding, Show
from edge_agent.loop.hooking import at_the_end
from edge_agent.loop.outbox import Outbox
from edge_agent.loop.planned import whole
from edge_agent.loop.waiting import note_waiting
from edge_agent.loop.walk import Ports, Slice, Walk

TICK_MS = 1  # an alarm may ring this much early; a deadline within it has passed, or the driver would spin
TELL_EVERY = 0.25  # seconds between batches of events for the parent
MOST_STALLED = 10  # restarts since the last finished effect
MOST_RESTARTS = 1_000  # restarts in one life, reset by no effect
FINISHED = (ModelAnswered, ModelRefused, ToolResult, ToolRejected, SubagentCompleted, SubagentFailed, Boundary)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceBudget:
    seconds: float = 60.0
    effects: int = 40

    def begin(self, now: int) -> Slice:
        return Slice(until=now + int(self.seconds * 1000), most=self.effects)


class Driver:
    """`ports` is called at the beginning of each slice, so that a code error there is met like any other. Without a
    `post` nothing is sent; `show`: see Forwarding."""

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        alarm: Alarm,
        ports: Callable[[], Ports],
        *,
        post: Post | None = None,
        show: Show | None = None,
    ) -> None:
        self.run_id, self.journal, self.alarm, self._ports = run_id, journal, alarm, ports
        self.outbox = Outbox(journal.log, journal.clock, post)
        self._forwarding = Forwarding(journal, post, show)
        self.current: Ports | None = None
        self._next: int | None = None
        self._woken, self._news, self._at_work = asyncio.Event(), asyncio.Event(), False
        journal.on_sends = self._news.set

    # -- waking
    def wake(self, at: int | None = None) -> None:
        """Keeps the earliest time. Handlers always wake before they append, also while a slice runs: it may just have
        looked."""
        when = self.journal.clock.now() if at is None else at
        if at is None:
            self._woken.set()
        if self._next is None or when < self._next:
            self._next = when
            self.alarm.set(when)

    def cut(self, scope: str | None = None) -> None:
        """Ends the effects under way, or those of a step; the loop meets the cancel's record and obeys it."""
        if self.current:
            self.current.effects.cut(scope)

    # -- a slice
    async def ring(self, slice_: Slice) -> None:
        """What the alarm runs: a slice, and beside and after it what the run has to tell others, also after its end."""
        self._next = None
        self._woken.clear()
        self._at_work = True
        telling = asyncio.ensure_future(self._tell_beside())
        try:
            await self._work(slice_)
        finally:
            self._at_work = False
            self._news.set()
            await self._until_told_or_woken(telling)
        await self._until_told_or_woken(asyncio.ensure_future(self._tell()))
        for due in (self.outbox.due(), self._forwarding.due()):
            if due is not None:
                self.wake(due)

    async def _tell_beside(self) -> None:
        """What there is as a slice begins, and what comes while it works: sends at once, events in batches."""
        await self._tell()
        while self._at_work:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), TELL_EVERY)
            if self._at_work and (self._news.is_set() or self._forwarding.behind):
                self._news.clear()
                await self._tell()

    async def _tell(self) -> None:
        if self._forwarding.behind:
            await asyncio.gather(self._forwarding.pump(), self.outbox.pump())
        else:
            await self.outbox.pump()

    async def _until_told_or_woken(self, telling: asyncio.Future[None]) -> None:
        """A run that has something to do does not wait for others to listen: they are told beside its next slice."""
        woken = asyncio.ensure_future(self._woken.wait())
        await asyncio.wait((telling, woken), return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        woken.cancel()
        await asyncio.gather(telling, woken, return_exceptions=True)

    async def _work(self, slice_: Slice) -> None:
        """Never raises: a failure backs off and rings again, and counts as a restart."""
        if not self.journal.records or self.journal.refused or self.journal.ended:
            return
        if self._stuck():
            return
        self.journal.log.set_meta("slice", "open")
        try:
            await self._slice(slice_)
        except Closed:
            pass
        except Exception as error:  # noqa: BLE001 - the alarm must not raise: the platform would give up after six times
            self._back_off(error)
            return
        self.journal.log.set_meta("slice", "closed")

    async def _slice(self, slice_: Slice) -> None:
        if keys.life(0) not in self.journal.records:
            reason = "forked" if self.journal.created.forked_from else "created"
            self.journal.append("note", Draft(key=keys.life(0), event=RunStarted(reason=reason)))
        try:
            ports = self.current = self._ports()
        except ConfigError as error:
            cancelled = keys.cancel(self.journal.life) in self.journal.records
            end = close.cancelled(self.journal) if cancelled else close.failed(self.journal, close.why(error))
            close.close(self.run_id, self.journal, end)
            return
        try:
            while not self.journal.ended and await self._walk(ports, slice_):
                pass
        finally:
            self.current = None
            for tools in (ports.tools, *(others for _, others in ports.others.values())):
                await tools.close()

    async def _walk(self, ports: Ports, slice_: Slice) -> bool:
        """One walk from the top; True: another one at once."""
        try:
            walk = Walk(self.run_id, self.journal, ports, slice_)
            ending = await whole(walk)
            walk.frontier(keys.end(self.journal.life))
        except Suspend as suspended:
            return self._let_go(suspended.waits)
        except Yield:
            self.wake()
        except Cancelled:
            await self._end(ports, close.cancelled(self.journal))
        except Closed:
            raise
        except EdgeAgentError as error:
            await self._end(ports, close.failed(self.journal, close.why(error)))
        else:
            await self._end(ports, close.completed(self.journal, ending))
        return False

    async def _end(self, ports: Ports, end: Terminal) -> None:
        if on_run_end := ports.agent.hooks.on_run_end:
            await at_the_end(self.journal, ports.effects, keys.end(self.journal.life), lambda: on_run_end(end))
        close.close(self.run_id, self.journal, end)

    def _let_go(self, waits: Sequence[Wait]) -> bool:
        """One synchronous block: deadlines that have passed are written; if any wait is over, walk again; else wait."""
        journal, now = self.journal, self.journal.clock.now()
        for wait in waits:
            if wait.key not in journal.records and wait.until is not None and now + TICK_MS >= wait.until:
                journal.append("input", Draft(key=wait.key, event=wait.at_deadline), sends=wait.sends)
        if any(wait.key in journal.records for wait in waits) or keys.cancel(journal.life) in journal.records:
            return True
        until = min((wait.until for wait in waits if wait.until is not None), default=None)
        if until is not None:
            self.wake(until)
        note_waiting(journal, waits)
        return False

    # -- restarts
    def _stuck(self) -> bool:
        """Counts a slice that did not end by itself; ends the run when there were too many without getting on, or in
        all."""
        log = self.journal.log
        if log.meta("slice") != "open":
            return False
        finished = sum(_is_finished(record.event) for record in self.journal.in_order())
        got_on = str(finished) != log.meta("finished")
        stalled = 1 if got_on else int(log.meta("stalled") or 0) + 1
        restarts = int(log.meta("restarts") or 0) + 1
        for name, value in (("finished", finished), ("stalled", stalled), ("restarts", restarts)):
            log.set_meta(name, str(value))
        if stalled <= MOST_STALLED and restarts <= MOST_RESTARTS:
            return False
        last = log.meta("last_error") or "the object was ended each time without a word (out of memory, perhaps)"
        message = f"the run was restarted {stalled} times without getting on, {restarts} times in all; {last}"
        error = ErrorInfo(kind="restarts", code="restarts", message=message, remedy=close.RESUME)
        close.close(self.run_id, self.journal, close.failed(self.journal, error))
        return True

    def _back_off(self, error: Exception) -> None:
        said = self.journal.cleaned_text(f"{type(error).__name__}: {error}")
        self.journal.log.set_meta("last_error", said[:1_000])
        stalled = int(self.journal.log.meta("stalled") or 0)
        self.wake(self.journal.clock.now() + min(10_000, 250 * 2**stalled))


def _is_finished(event: RecordedEvent) -> bool:
    """An effect that came to its end, or a verdict. What was lost to a restart is neither."""
    if isinstance(event, ModelFailed):
        return event.error != "lost"
    if isinstance(event, ToolUnknown):
        return event.cause != "lost"
    return isinstance(event, FINISHED)
