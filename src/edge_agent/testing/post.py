"""Other objects, and the network between: it loses, doubles and delays what a run sends."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import Context
from typing import Literal

from edge_agent.core.listing import SHARDS, shard_of
from edge_agent.core.messages import JsonObject
from edge_agent.core.ports import Clock, Send
from edge_agent.storage.directory import SqlDirectory
from edge_agent.storage.sql import in_memory

Trouble = Literal["none", "lost", "unanswered", "doubled", "late"]
Receiver = Callable[[Send], Awaitable[None]]
LATE_SECONDS = 90.0  # later than any repeat


class SimulatedPost:
    """A `Post` to receivers by destination, given by name or by a function of it. `troubles` are used up one a try;
    after the last there are none.

    lost: it never arrives. unanswered: it arrives, its acknowledgement does not. doubled: it arrives twice. late: the
    sender hears nothing, and it arrives after its own repeats."""

    def __init__(
        self, receivers: Mapping[str, Receiver] | Callable[[str], Receiver], troubles: Iterable[Trouble] = ()
    ) -> None:
        self._receiver = receivers if callable(receivers) else receivers.__getitem__
        self._troubles = iter(troubles)
        self.tries: list[Send] = []
        self._under_way: set[asyncio.Task[None]] = set()

    async def send(self, send: Send) -> None:
        self.tries.append(send)
        receive, trouble = self._receiver(send.destination), next(self._troubles, "none")
        if trouble == "late":
            # In a context of its own: what is under way arrives, also when its sender dies.
            late = asyncio.get_running_loop().create_task(_later(receive, send), context=Context())
            self._under_way.add(late)
            late.add_done_callback(self._under_way.discard)
        elif trouble != "lost":
            await receive(send)
        if trouble == "doubled":
            await receive(send)
        if trouble in ("lost", "unanswered", "late"):
            raise ConnectionError(trouble)

    async def settled(self) -> None:
        """Returns when everything that is late has arrived."""
        while self._under_way:
            await asyncio.gather(*self._under_way)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is late."""
        return not self._under_way


async def _later(receive: Receiver, send: Send) -> None:
    """Whether it is heard, nobody is told: its sender has tried again long ago."""
    await asyncio.sleep(LATE_SECONDS)
    with contextlib.suppress(ConnectionError):
        await receive(send)


class MemoryDirectory:
    """The directory of runs, all of its shards, by the very code that keeps the durable one.

    `receive` is what a SimulatedPost takes for the destination DIRECTORY."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.shards = [SqlDirectory(in_memory()) for _ in range(SHARDS)]

    async def ask(self, method: str, payload: JsonObject) -> Sequence[JsonObject]:
        """The answer of each shard."""
        return [shard.answer(method, payload, self._clock.now()) for shard in self.shards]

    async def receive(self, send: Send) -> None:
        shard = self.shards[shard_of(send.arguments["run_id"])]
        shard.answer(send.method, send.arguments, self._clock.now())
