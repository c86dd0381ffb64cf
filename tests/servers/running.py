"""The servers of the tests as processes of their own, so that they outlive whatever the test kills."""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from scripts.serve import free_port

ROOT = Path(__file__).parents[2]
READY_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server at `url`; `log` is what it says it saw."""

    url: str

    def log(self) -> list[dict[str, Any]]:
        return httpx2.get(f"{self.url}/_log", timeout=30).json()


@contextmanager
def running(script: str, *arguments: str) -> Generator[Running]:
    """Starts tests/servers/<script> on a free port and ends it by its pid."""
    port = free_port()
    module = f"tests.servers.{script.removesuffix('.py')}"
    with running_command([sys.executable, "-m", module, "--port", str(port), *arguments], port):
        yield Running(f"http://127.0.0.1:{port}")


@contextmanager
def running_command(command: Sequence[str], port: int) -> Generator[None]:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=ROOT)
    try:
        _until_it_answers(process, f"http://127.0.0.1:{port}/health")
        yield
    finally:
        process.kill()
        process.wait()


def _until_it_answers(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server of {url} ended with {process.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"{url} did not answer within {READY_SECONDS:.0f} s")
