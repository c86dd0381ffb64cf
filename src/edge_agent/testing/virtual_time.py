"""Virtual time: a pause of a day takes no time, and nothing depends on how fast the machine is."""

import asyncio
import selectors
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
BEGIN = 1_700_000_000_000  # ms since the epoch: when virtual time begins

owner: ContextVar["Owner | None"] = ContextVar("owner", default=None)


class Owner:
    """Whoever began the tasks of a context, and may have to end them all at once, as a kill does."""

    def __init__(self) -> None:
        self.tasks: WeakSet[asyncio.Task[Any]] = WeakSet()

    def cancel_all(self) -> None:
        """All but the one that runs now."""
        current = asyncio.current_task()
        for task in list(self.tasks):
            if task is not current:
                task.cancel()


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: where nothing is ready, time jumps to the next thing that is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("stuck: every task waits, and nothing will ever happen again")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only when nothing else can happen."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)
        self.set_task_factory(_owned)

    def time(self) -> float:
        return self._jumping.now


def _owned(loop: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context)
    whose = owner.get() if context is None else context.get(owner)
    if whose is not None:
        whose.tasks.add(task)
    return task


class VirtualClock:
    """The `Clock` of the running loop's virtual time."""

    def now(self) -> int:
        return BEGIN + int(asyncio.get_running_loop().time() * 1000 + 1e-6)


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Runs `main` to its end. Raises RuntimeError where everything waits for ever.

    What it left behind is ended without a word, as a process would end it."""
    loop = VirtualTimeLoop()
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_end_what_is_left())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _end_what_is_left() -> None:
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
