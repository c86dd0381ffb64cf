"""Serve the Worker in the real runtime: `wrangler dev`, started, watched, killed and stopped.

For `make dev` and for the tests:

    with serve(state=tmp_path, variables={"EDGE_AGENT_TOKEN": "t"}) as server:
        httpx2.get(f"{server.url}/healthz")
        server.kill_runtime()          # kill -9 of the workerd that runs the Worker; wrangler starts another
        server.wait_until_ready()

Several servers run side by side: each takes free ports for itself and keeps all it writes under its `state`
folder. Two with the same state must follow one another.

By hand: `python3 -m scripts.serve --port 8787 --state DIR [--var NAME=VALUE ...] [--live]`.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from scripts.project import lay_out
from scripts.stage import ROOT

NODE_MODULES = ROOT / "node_modules"
HOST = "127.0.0.1"
READY_SECONDS = 120.0
STOP_SECONDS = 10.0
FREED_SECONDS = 2.0  # what was killed just now may hold its port for a moment


class ServeError(Exception):
    """The server did not come up, or is gone; the message ends with what wrangler said last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running `wrangler dev`."""

    url: str
    port: int
    state: Path
    log: Path
    process: subprocess.Popen[bytes]
    ready_path: str

    def wait_until_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until the Worker answers with a status below 500; raise `ServeError` when it does not."""
        deadline = time.monotonic() + seconds
        last = "no answer"
        while time.monotonic() < deadline:
            if (code := self.process.poll()) is not None:
                raise ServeError(f"wrangler ended with {code}\n{self.log_tail()}\n{self.fault()}".rstrip())
            status, last = _get(self.url + self.ready_path, timeout=max(1.0, deadline - time.monotonic()))
            if 0 < status < 500:  # noqa: PLR2004 - the class of server errors
                return
            time.sleep(0.1)
        raise ServeError(f"{self.url}{self.ready_path} not ready after {seconds:.0f} s: {last}\n{self.log_tail()}")

    def runtime_pid(self, seconds: float = READY_SECONDS) -> int:
        """Return the process id of the workerd that runs the Worker (wrangler runs another one as a proxy)."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # Only the proxy listens at the public port; the Worker's own takes any (entry=127.0.0.1:0).
            pids = [pid for pid, args in self._workerds() if f"entry={HOST}:{self.port}" not in args]
            if len(pids) == 1:
                return pids[0]
            time.sleep(0.05)
        raise ServeError(f"no workerd runs the Worker\n{self.log_tail()}")

    def kill_runtime(self) -> int:
        """`kill -9` the workerd that runs the Worker; wrangler starts another. Return the id of the killed."""
        pid = self.runtime_pid()
        os.kill(pid, signal.SIGKILL)
        return pid

    def kill(self) -> None:
        """`kill -9` everything at once, as a power cut would. Serve again with the same state to go on."""
        self._signal_group(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End wrangler and all it started."""
        self._signal_group(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.kill()

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines of wrangler's log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

    def fault(self) -> str:
        """Return what the Worker's Python raised and where, of a Worker that could not be loaded; else nothing."""
        return python_fault(self.log.read_text(encoding="utf-8", errors="replace"))

    def _workerds(self) -> Iterator[tuple[int, str]]:
        listing = subprocess.run(
            ["ps", "-axww", "-o", "pid=,pgid=,args="], capture_output=True, text=True, check=True
        ).stdout
        for line in listing.splitlines():
            pid, group, args = line.split(maxsplit=2)
            if int(group) == self.process.pid and "/workerd serve " in args:
                yield int(pid), args

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


@contextmanager
def serve(
    *,
    state: Path,
    port: int = 0,
    variables: Mapping[str, str] | None = None,
    live: bool = False,
    overlay: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    ready_path: str = "/healthz",
    ready_seconds: float = READY_SECONDS,
    progress: Callable[[str], None] = lambda _: None,
) -> Generator[Server]:
    """Serve until the block ends. `variables` reach the Worker as secrets do: not by the command line.

    `state` keeps the objects' storage (kept between servers), the log and the laid out project; one that is in use
    raises `ServeError`, and so does a `port` that is taken, 0 takes a free one; `live`, `overlay`, `settings`: see
    `scripts.project.lay_out`. Run `make setup` before.
    """
    if port:
        require_free(port)
    with _alone_with(state):
        project = state / "project"
        config = lay_out(project, live=live, variables=variables, overlay=overlay, settings=settings)
        port = port or free_port()
        progress(f"==> starting workerd at http://{HOST}:{port} (log: {state / 'wrangler.log'})")
        server = _start(state, config, port, ready_path)
        with _ended_with_us(server):
            start = time.monotonic()
            server.wait_until_ready(ready_seconds)
            progress(f"    the Worker answered after {time.monotonic() - start:.1f} s")
            yield server


@contextmanager
def _alone_with(state: Path) -> Generator[None]:
    """Raise `ServeError` while another process serves this state: two runtimes would write to the same databases."""
    elsewhere = "take another one: STATE=folder make dev (or --state)"
    try:
        state.mkdir(parents=True, exist_ok=True)
        lock = (state / "lock").open("w")
    except OSError as error:
        raise ServeError(f"the folder {state} cannot be written to ({error.strerror}); {elsewhere}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServeError(f"the folder {state} is in use by another server; {elsewhere}") from None
        yield


@contextmanager
def _ended_with_us(server: Server) -> Generator[None]:
    """Stop the server when the block ends, and also when `kill -9` ends this process: a shell that waits for the end
    of its input then kills what else would keep the port, and the state, for ever."""
    script = ["sh", "-c", 'read -r _; kill -s KILL -- "-$0"', str(server.process.pid)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True) as watch:
        try:
            yield
        finally:
            server.stop()
            watch.kill()


def python_fault(log: str) -> str:
    """Return the last error in a log of wrangler that kept the Worker from being loaded, and where; else nothing."""
    found = re.findall(r"((?:^ {4}.+\n)+)^  (\S.*(?:\n  \S.*)*)\n\s*\n {4}at ", log, re.MULTILINE)
    if not found:
        return ""
    frames, error = found[-1]
    frame = re.findall(r'File "/session/metadata/(?!edge_agent/)(.+)", line (\d+)', frames)[-1:]
    where = "".join(f"{'' if (ROOT / path).is_file() else 'src/'}{path}:{line}: " for path, line in frame)
    return f"==> the Worker cannot be loaded: {where}{error}"


def free_port() -> int:
    """Return a port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def port_number(text: str) -> int:
    """Return the port that a command line names, for argparse."""
    if text.isdecimal() and int(text) < 65536:  # noqa: PLR2004 - ports have 16 bits
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 1 to 65535, e.g. PORT=8788 make dev")


def require_free(port: int, grace: float = FREED_SECONDS) -> None:
    """Raise `ServeError` when the port cannot be had: another server's answers would be taken for ours."""
    deadline = time.monotonic() + grace
    while (fault := _fault_of(port)) and time.monotonic() < deadline:
        time.sleep(0.1)
    if fault == errno.EADDRINUSE:
        raise ServeError(f"port {port} is taken by another program; choose another one: {_other_port(port)}")
    if fault:
        raise ServeError(f"port {port} cannot be had ({os.strerror(fault)}); choose another one: {_other_port(port)}")


def _fault_of(port: int) -> int | None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that linger hold no port
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return error.errno
    return None


def _other_port(port: int) -> str:
    return f"PORT={port + 1 if port >= 1024 else 8787} make dev (or --port)"  # noqa: PLR2004 - below: for root alone


def end_on_signals() -> None:
    """Make SIGINT and SIGTERM raise KeyboardInterrupt, once: what ends then is not to be interrupted again."""
    for number in (signal.SIGINT, signal.SIGTERM):  # SIGINT too: a shell in the background has it ignored
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


def _start(state: Path, config: Path, port: int, ready_path: str) -> Server:
    node = NODE_MODULES / "node" / "bin" / "node"
    if not node.is_file():
        raise ServeError("nothing is set up: run make setup")
    command = [str(node), str(NODE_MODULES / "wrangler/bin/wrangler.js"), "dev"]
    command += [f"--config={config.resolve()}", f"--ip={HOST}", f"--port={port}"]
    command += [f"--inspector-port={free_port()}", f"--persist-to={(state / 'storage').resolve()}"]
    log = state / "wrangler.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=config.parent,
            env=quiet_environment(state.resolve()),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, to be killed as one
        )
    return Server(url=f"http://{HOST}:{port}", port=port, state=state, log=log, process=process, ready_path=ready_path)


def quiet_environment(state: Path) -> dict[str, str]:
    """Return an environment for wrangler in which it keeps to `state`, calls nobody and sees no account."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CLOUDFLARE_", "CF_", "WRANGLER_", "EDGE_AGENT_"))}
    return kept | {
        "PATH": f"{NODE_MODULES / 'node' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "MINIFLARE_WORKERD_PATH": str(ROOT / "scripts" / "workerd_wrapper"),
        "CLOUDFLARE_CF_FETCH_ENABLED": "false",  # else it asks a Cloudflare host where this machine stands
        "WRANGLER_HIDE_BANNER": "true",  # and with it the look for updates
        "WRANGLER_SEND_METRICS": "false",
        "WRANGLER_SEND_ERROR_REPORTS": "false",
        "WRANGLER_WRITE_LOGS": "false",
        "WRANGLER_LOG_PATH": str(state / "logs"),
        "WRANGLER_CACHE_DIR": str(state / "cache"),
        "WRANGLER_REGISTRY_PATH": str(state / "registry"),  # servers side by side do not see each other
    }


def _get(url: str, timeout: float) -> tuple[int, str]:
    """Return the status of a GET (0 where none came) and what to say about it."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as response:  # noqa: S310 - it is our own http address
            return response.status, "ready"
    except urllib.error.HTTPError as error:
        return error.code, f"status {error.code}: {error.read(2000).decode(errors='replace')}"
    except OSError as error:
        return 0, str(error)


def main() -> None:
    """Serve by hand until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description="Serve the Worker in workerd.")
    parser.add_argument("--port", type=port_number, default=8787)
    parser.add_argument("--state", type=Path, default=Path(".edge-agent/state"))
    parser.add_argument("--var", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--live", action="store_true", help="reload when a source changes")
    parser.add_argument("--ready-path", default="/healthz")
    options = parser.parse_args()
    end_on_signals()
    try:
        _serve_by_hand(options)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    except ServeError as error:
        sys.exit(f"the server is not up: {error}")


def _serve_by_hand(options: argparse.Namespace) -> None:
    with serve(
        state=options.state,
        port=options.port,
        variables=dict(pair.split("=", 1) for pair in options.var),
        live=options.live,
        ready_path=options.ready_path,
        progress=print,
    ) as server:
        print(f"ready: {server.url}", flush=True)
        server.process.wait()


if __name__ == "__main__":
    main()
