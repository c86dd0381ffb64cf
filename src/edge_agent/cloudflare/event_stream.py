"""A response body that is pulled: server-sent events, or any text made piece by piece.

A pull source with cancel, never a TransformStream: a writer of that hangs for ever, silently, when the client goes
away (measured). A pull waits as a bare promise, and all of them share one timer: with a task and a timer each they were
half of what the event loop did in a run that is followed (measured).
"""

import asyncio
from collections.abc import Callable
from typing import Any

import js
from pyodide.ffi import create_proxy

from edge_agent.cloudflare.javascript import js_object

QUIET_SECONDS = 15.0
STILL_THERE = ": the run goes on\n\n"


class EventStream:
    """What is written waits here until the client takes it; `on_gone` is called once, when either side has ended it."""

    def __init__(self, on_gone: Callable[[], None]) -> None:
        self._pieces: list[str] = []
        self._ended = False
        self._on_gone = on_gone
        self._controller: Any = None
        self._waiting: Any = None  # the promise of a pull for which there is nothing yet, with its resolver
        self._encoder = js.TextEncoder.new()
        self._loop = asyncio.get_running_loop()
        self._given = self._loop.time()
        self._timer = self._loop.call_later(QUIET_SECONDS, self._look)
        self._pull, self._cancel = create_proxy(self._give), create_proxy(self._gone)
        self.body: Any = js.ReadableStream.new(js_object({"pull": self._pull, "cancel": self._cancel}))  # pulls at once

    def write(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._answer()

    def end(self) -> None:
        self._ended = True
        self._answer()

    def _give(self, controller: Any) -> Any:
        self._controller, self._waiting = controller, js.Promise.withResolvers()
        promise = self._waiting.promise
        self._answer()
        return promise

    def _answer(self) -> None:
        """Gives what there is to the pull that waits, if one does."""
        if self._waiting is None or not (self._pieces or self._ended):
            return
        waiting, self._waiting = self._waiting, None
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._controller.enqueue(self._encoder.encode(text))
            self._given = self._loop.time()
        if self._ended:
            self._controller.close()
            self._gone()
        waiting.resolve()

    def _look(self) -> None:
        """One timer for all of the stream, set anew to when the present silence will have lasted too long."""
        now = self._loop.time()
        silent = now >= self._given + QUIET_SECONDS
        if silent and self._waiting is not None:
            self.write(STILL_THERE)
        again = (now if silent else self._given) + QUIET_SECONDS
        self._timer = self._loop.call_at(again, self._look)

    def _gone(self, reason: Any = None) -> None:  # noqa: ARG002  (the platform passes it)
        self._ended, self._waiting = True, None
        self._timer.cancel()
        self._loop.call_soon(self._leave)

    def _leave(self) -> None:
        """The proxies keep each other alive until they are destroyed; not while one of them is being called."""
        self._on_gone()
        for proxy in (self._pull, self._cancel):
            proxy.destroy()
