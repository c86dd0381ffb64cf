"""A child tells its parent what it records, as it happens: in batches, in order, from where the parent last heard."""

import asyncio
import itertools
from collections.abc import Callable

from edge_agent.core.journal import Journal
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Post, Record
from edge_agent.loop import kin
from edge_agent.loop.outbox import PATIENCE, pause_ms

MOST_EVENTS = 50  # in one batch
_TOLD = "told"  # the word beside the log: the seq the parent has acknowledged

Show = Callable[[Record], JsonObject]


class Forwarding:
    """`show`: a record as the parent's followers see it, with its `seq`. Without it, without a post or a parent nothing
    is told. What is told is no part of the run: a parent that cannot be reached costs the child nothing but tries."""

    def __init__(self, journal: Journal, post: Post | None, show: Show | None) -> None:
        self._journal, self._post, self._show = journal, post, show
        self._told: int | None = None
        self._tries, self._not_before = 0, 0
        self._telling = asyncio.Lock()

    @property
    def behind(self) -> bool:
        """Whether there is something the parent has not heard."""
        journal = self._journal
        if self._post is None or self._show is None or not journal.records or journal.refused or journal.erased:
            return False
        return journal.created.parent is not None and self._acknowledged() < len(journal.records)

    def due(self) -> int | None:
        """When the next try is due (ms since the epoch)."""
        return max(self._not_before, self._journal.clock.now()) if self.behind else None

    async def pump(self) -> None:
        """Until the parent has heard everything, or does not answer. May be cancelled, which is no failure."""
        async with self._telling:
            while self.behind and self._not_before <= self._journal.clock.now():
                try:
                    await self._tell_some()
                except Exception:  # noqa: BLE001 - whatever it was, it is tried again
                    self._not_before = self._journal.clock.now() + pause_ms(self._tries)
                    self._tries += 1
                else:
                    self._tries = 0

    async def _tell_some(self) -> None:
        parent, show, post = self._journal.created.parent, self._show, self._post
        if parent is None or show is None or post is None:
            return
        told = self._acknowledged()
        batch = list(itertools.islice(self._journal.records.values(), told, told + MOST_EVENTS))
        events = kin.events(parent, [show(record) for record in batch], self._journal.spent)
        await asyncio.wait_for(post.send(events), PATIENCE)
        self._told = batch[-1].seq
        self._journal.log.set_meta(_TOLD, str(self._told))

    def _acknowledged(self) -> int:
        if self._told is None:
            self._told = int(self._journal.log.meta(_TOLD) or 0)
        return self._told
