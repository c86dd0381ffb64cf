"""The environment llama.cpp lives in: an own one, so that the development environment stays small."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.local_model.cache import LocalModelError, Say, Unavailable, cache_folder, lock, sha256_of

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "local-model.txt"
LINES_SHOWN = 15


def ensure_engine(say: Say, *, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the Python of an environment that holds llama.cpp, made if need be. Raises `LocalModelError`."""
    cache = cache_folder(environ)
    folder = cache / f"venv-{sha256_of(REQUIREMENTS)[:12]}"
    python, ready = folder / "bin" / "python", folder / "ready"
    with lock(folder.with_suffix(".lock"), "llama.cpp", say):
        if ready.exists() and python.exists():
            return python
        say(f"installing llama.cpp (xllamacpp, 34 MB) into {folder}")
        try:
            run(sys.executable, "-m", "venv", "--clear", str(folder))
            pip(python, "install", "--require-hashes", "--only-binary=:all:", "-r", str(REQUIREMENTS))
        except Unavailable as error:
            raise LocalModelError(f"llama.cpp cannot be installed: {error}") from error
        ready.touch()
    return python


def pip(python: Path, *arguments: str) -> None:
    run(str(python), "-m", "pip", "--quiet", "--no-input", "--disable-pip-version-check", *arguments)


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unavailable("\n".join([f"`{' '.join(command)}` ended with {done.returncode}", *lines[-LINES_SHOWN:]]))
