"""npm's @modelcontextprotocol/server-everything, the reference server of the protocol, as a process of its own."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
READY_SECONDS = 60.0


def why_not() -> str | None:
    """Why it cannot be started here, for a skipped test; None when it can."""
    if not INDEX.exists():
        return "node_modules has no @modelcontextprotocol/server-everything: run `make setup`"
    return None if _node() else "there is no node"


def _node() -> str | None:
    own = ROOT / "node_modules" / ".bin" / "node"
    return str(own) if own.exists() else shutil.which("node")


@contextmanager
def everything(port: int = 0) -> Generator[tuple[str, int]]:
    """(its url, its port), a free one unless given; ended when the context is left. Blocks until it listens."""
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = [_node() or "node", str(INDEX), "streamableHttp"]
    environment = {**os.environ, "PORT": str(port)}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}/mcp", port
    finally:
        process.kill()
        process.wait()


def _until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise AssertionError(f"server-everything ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=5).close()
        except urllib.error.HTTPError:
            return  # it wants a session, so it is there
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"server-everything did not listen within {READY_SECONDS:.0f} s")
