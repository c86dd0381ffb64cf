"""What a run has to tell other objects: sent at least once until it is acknowledged, also after the run's end."""

import asyncio

from edge_agent.core.ports import Clock, Log, Post, Unsent

PATIENCE = 10.0  # seconds for one try
LONGEST_PAUSE_MS = 60_000
_DOUBLINGS = 6  # of a second: more would be cut to the longest pause anyway


class Outbox:
    """Over the rows that the log keeps. Acknowledgements are no history."""

    def __init__(self, log: Log, clock: Clock, post: Post | None) -> None:
        self._log, self._clock, self._post = log, clock, post
        self._pumping = asyncio.Lock()

    def due(self) -> int | None:
        """When the next try is due (ms since the epoch, not in the past); None where there is nothing to send, or no
        way to send it."""
        if self._post is None:
            return None
        earliest = min((unsent.due for unsent in self._log.outbox()), default=None)
        return None if earliest is None else max(earliest, self._clock.now())

    async def pump(self) -> None:
        """Tries everything that is due once, side by side. A second pump waits for the first, or it would send the
        same again."""
        if self._post is None:
            return
        async with self._pumping:
            now = self._clock.now()
            due = [unsent for unsent in self._log.outbox() if unsent.due <= now]
            await asyncio.gather(*(self._try(self._post, unsent) for unsent in due))

    async def _try(self, post: Post, unsent: Unsent) -> None:
        try:
            await asyncio.wait_for(post.send(unsent.send), PATIENCE)
        except Exception:  # noqa: BLE001 - whatever it was: whether it arrived is not known, so it is sent again
            self._log.postpone(unsent.send.key, self._clock.now() + pause_ms(unsent.tries))
        else:
            self._log.acknowledge(unsent.send.key)


def pause_ms(tries: int) -> int:
    """Until the next try, after so many before the one that was in vain."""
    return min(LONGEST_PAUSE_MS, 1_000 * 2 ** min(tries, _DOUBLINGS))
