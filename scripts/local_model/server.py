"""Start the server and wait until it answers."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from scripts.local_model.cache import LocalModelError, Say, cache_folder
from scripts.local_model.environment import LINES_SHOWN, ensure_engine

MODEL_NAME = "qwen2.5-coder-instruct"  # what the server calls it, whichever size runs
HOST = "127.0.0.1"
ENGINE = Path(__file__).with_name("engine.py")
PATIENCE = 180.0  # seconds to load the model; a busy machine can take long
LOG_KEPT = 7 * 86_400.0


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def start_server(
    model: Path, port: int, say: Say = tell, *, alias: str = MODEL_NAME, environ: Mapping[str, str] = os.environ
) -> subprocess.Popen[bytes]:
    """Serve the model on loopback and return once it answers. Raises `LocalModelError`.

    The server ends with this process, or a second or two after it.
    """
    if _taken(port):
        raise LocalModelError(f"port {port} is in use")
    python = ensure_engine(say, environ=environ)
    log = _log_file(cache_folder(environ), port)
    say(f"loading {model.name} (log: {log})")
    options = ["--model", str(model), "--port", str(port), "--alias", alias, "--parent", str(os.getpid())]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, ENGINE, *options], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_it_answers(process, port, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0


def _log_file(folder: Path, port: int) -> Path:
    for log in folder.glob("server-*.log"):
        if log.stat().st_mtime < time.time() - LOG_KEPT:
            log.unlink(missing_ok=True)
    return folder / f"server-{port}.log"


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _healthy(port):
        if process.poll() is not None:
            raise LocalModelError(f"the model's server ended {_how(process.returncode)}:\n{_tail(log)}")
        if time.monotonic() > deadline:
            raise LocalModelError(f"the model's server does not answer after {PATIENCE:.0f} s:\n{_tail(log)}")
        time.sleep(0.1)


def _how(code: int) -> str:
    lacks = " (llama.cpp's wheel needs a processor with AVX2)" if code == -signal.SIGILL else ""
    return f"with {code}{lacks}"


def _healthy(port: int) -> bool:
    """Ask llama.cpp, past any proxy; it says 503 while it loads."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES_SHOWN:])
