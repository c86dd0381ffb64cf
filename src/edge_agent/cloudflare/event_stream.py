"""A response body that is pulled: server-sent events, or any text made piece by piece.

A pull source with cancel, never a TransformStream: a writer of that hangs for ever, silently, when the client goes
away (measured).
"""

import asyncio
from collections.abc import Callable
from typing import Any

import js
from pyodide.ffi import create_proxy

from edge_agent.cloudflare.javascript import js_object

QUIET_SECONDS = 15.0
STILL_THERE = ": the run goes on\n\n"
CHUNK = 256_000  # characters given to the client at a time


class EventStream:
    """What is written waits here until the client takes it; `on_gone` is called once, when either side has ended it."""

    def __init__(self, on_gone: Callable[[], None]) -> None:
        self._pieces: list[str] = []
        self._more = asyncio.Event()
        self._ended = False
        self._on_gone = on_gone
        self._pull, self._cancel = create_proxy(self._give), create_proxy(self._gone)
        source = js_object({"pull": self._pull, "cancel": self._cancel})
        self.body: Any = js.ReadableStream.new(source)
        self._encoder = js.TextEncoder.new()

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self._more.set()

    def end(self) -> None:
        self._ended = True
        self._more.set()

    async def _give(self, controller: Any) -> None:
        if not self._pieces and not self._ended:
            try:
                await asyncio.wait_for(self._more.wait(), QUIET_SECONDS)
            except TimeoutError:
                controller.enqueue(self._encoder.encode(STILL_THERE))
                return
        self._more.clear()
        text, self._pieces = "".join(self._pieces), []
        if text:
            controller.enqueue(self._encoder.encode(text))
        if self._ended:
            controller.close()
            self._gone()

    def _gone(self, reason: Any = None) -> None:  # noqa: ARG002  (the platform passes it)
        self._ended = True
        self._more.set()
        self._on_gone()
        asyncio.get_running_loop().call_soon(self._forget)

    def _forget(self) -> None:
        """The proxies keep each other alive until they are destroyed; not while one of them is being called."""
        for proxy in (self._pull, self._cancel):
            proxy.destroy()
