"""Timers that are over when they are cancelled.

The runtime's event loop leaves the JavaScript timer of a cancelled `call_later` running until its time. Each of them
keeps an idle object from hibernating: a run that waited for a person stayed in memory for the minute that its model
might have been silent, and is let go after ten seconds with this (both measured, workerd 1.20261117).
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any, cast

import js
from pyodide.ffi import create_once_callable

SOON = 0.05  # seconds; a shorter one keeps nobody up, and the loop has a faster way for those


class _Timer(asyncio.Handle):
    """Ends its JavaScript timer with itself. `timer`, `called`: that timer and what it calls."""

    timer: Any = None
    called: Any = None

    def cancel(self) -> None:
        if not self.cancelled() and self.called is not None:
            js.clearTimeout(self.timer)
            self._gone()
        super().cancel()

    def run(self) -> None:
        self.called = None  # it has been called, which ends it
        if not self.cancelled():
            self._run()

    def _gone(self) -> None:
        called, self.called = self.called, None
        called.destroy()


def end_cancelled_timers() -> None:
    """Makes the running loop do so, from now on; a second time changes nothing."""
    loop = cast(Any, asyncio.get_running_loop())
    original: Callable[..., asyncio.Handle] = loop.call_later
    if getattr(original, "ends_cancelled_timers", False):
        return

    def call_later(
        delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if delay < SOON:
            return original(delay, callback, *args, context=context)
        handle = _Timer(callback, args, loop, context)
        handle.called = create_once_callable(handle.run)
        handle.timer = js.setTimeout(handle.called, delay * 1000)
        return handle

    call_later.ends_cancelled_timers = True  # pyright: ignore[reportFunctionMemberAccess]  (functions have attributes)
    loop.call_later = call_later
