"""A Worker that is killed and served again, always at the same port and on the same state."""

from collections.abc import Mapping
from pathlib import Path

from scripts.serve import Server, serve


class Stand:
    def __init__(self, state: Path, overlay: Path, variables: Mapping[str, str]) -> None:
        self._state, self._overlay, self._variables = state, overlay, variables
        self._port = 0
        self._open()

    def _open(self) -> None:
        self._serving = serve(state=self._state, port=self._port, overlay=self._overlay, variables=self._variables)
        self.server: Server = self._serving.__enter__()
        self._port = self.server.port

    def kill_runtime(self) -> None:
        self.server.kill_runtime()

    def kill_everything(self) -> None:
        self.server.kill()
        self._serving.__exit__(None, None, None)
        self._open()

    def close(self) -> None:
        self._serving.__exit__(None, None, None)
