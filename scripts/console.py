"""What set-up prints, and how it runs other programs: one place, so that every step looks the same."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

# What of pip's and npm's output is worth a line: what is fetched and how large. What goes wrong is told at the end.
SHOWN = ("Downloading ", "Using cached ", "added ")


class SetupError(Exception):
    """Something is missing; the message says what, and the way out."""


class CommandError(Exception):
    """A program failed; `output` is all it printed."""

    def __init__(self, command: Sequence[str], code: int, output: str) -> None:
        super().__init__(f"{Path(command[0]).name} ended with {code}")
        self.output = output


def say(text: str) -> None:
    """Print one line, at once."""
    print(text, flush=True)


@contextmanager
def step(title: str) -> Generator[None]:
    """Frame a step of set-up: its title before, the time it took after."""
    say(f"==> {title}")
    start = time.monotonic()
    yield
    say(f"    done in {time.monotonic() - start:.1f} s")


def run_shown(command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
    """Run a program and show the telling lines of what it prints; raise `CommandError` when it fails."""
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None  # noqa: S101 - for the type checker: PIPE was asked for
        for line in process.stdout:
            lines.append(line)
            if line.strip().startswith(SHOWN):
                say(f"    {line.strip()}")
    if process.returncode:
        sys.stdout.flush()
        raise CommandError(command, process.returncode, "".join(lines))
