"""The hibernatable WebSockets of a run: one frame is one event or an array of them."""

from collections.abc import Iterable, Iterator
from typing import Any

import js
from pyodide.ffi import JsException, to_js

FRAME = 256_000  # characters; the platform takes 1 MiB a message
NORMAL = 1000
OPEN = 1


class Sockets:
    """Survives hibernation with the object: the platform keeps the sockets, tagged with the id of their run, and a new
    instance finds them again."""

    def __init__(self, ctx: Any, run_id: str) -> None:
        self._ctx, self._run_id = ctx, run_id
        self._open: list[Any] | None = None

    def accept(self, *, hibernatable: bool) -> tuple[Any, Any]:
        """(the client's end, ours).

        One that is closed at once need not hibernate, and then its connection ends at once too: that of a hibernatable
        one stays open after a close of ours until the client goes (measured, workerd 1.20261117)."""
        client, server = js.WebSocketPair.new().object_values()
        if not hibernatable:
            server.accept()
            return client, server
        self._ctx.acceptWebSocket(server, to_js([self._run_id]))
        self._ctx.setWebSocketAutoResponse(js.WebSocketRequestResponsePair.new("ping", "pong"))
        return client, server

    def add(self, socket: Any) -> None:
        self._known().append(socket)

    def send(self, events: Iterable[str]) -> None:
        sockets = self._known()
        if not sockets:
            return
        for frame in frames(events):
            for socket in sockets:
                send(socket, frame)

    def close(self) -> None:
        """After the terminal record."""
        for socket in self._known():
            close(socket, NORMAL, "the run has ended")
        self._open = []

    def forget(self, closing: Any) -> None:
        """A closing socket is still listed by the platform; one that is open is kept."""
        self._open = [socket for socket in self._found() if socket != closing]

    def _known(self) -> list[Any]:
        if self._open is None:
            self._open = self._found()
        return self._open

    def _found(self) -> list[Any]:
        return [socket for socket in self._ctx.getWebSockets(self._run_id) if socket.readyState == OPEN]


def run_of(ctx: Any, socket: Any) -> str:
    """The id of the run that a hibernatable socket follows."""
    return str(ctx.getTags(socket)[0])


def frames(events: Iterable[str]) -> Iterator[str]:
    """Arrays of events, none much longer than FRAME."""
    batch: list[str] = []
    size = 0
    for event in events:
        batch.append(event)
        size += len(event)
        if size > FRAME:
            yield f"[{','.join(batch)}]"
            batch, size = [], 0
    if batch:
        yield f"[{','.join(batch)}]"


def send(socket: Any, text: str) -> None:
    """A socket that has just been closed is no fault of the run."""
    try:
        socket.send(text)
    except JsException:
        return


def close(socket: Any, code: int, reason: str) -> None:
    try:
        socket.close(code, reason)
    except JsException:
        return
