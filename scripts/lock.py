"""Resolve pyproject.toml anew into requirements/, and package.json into package-lock.json (`make lock`).

Needs `uv` (in .venv after set-up) and npm. All files hold hashes and no address.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".venv" / "bin" / "uv"
HEADER = "# Made by `make lock` from pyproject.toml; not to be edited.\n"
COMMON = ("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate", "--quiet")
# wasm32-pyodide2025 gives sys_platform "emscripten", which is what the markers of the packages ask.
WORKER = ("--python-platform=wasm32-pyodide2025", "--python-version=3.14")
DEV = ("--extra=cli", "--group=dev", "--universal", "--python-version=3.11")


def main(uv: str) -> None:
    """Write the lock files; the development tools keep to the versions the Worker runs."""
    worker = _compile(uv, *WORKER)
    (ROOT / "requirements/worker.txt").write_text(HEADER + worker)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(re.findall(r"^[\w.-]+==[\w.]+", worker, re.MULTILINE)))
        constraints.flush()
        (ROOT / "requirements/dev.txt").write_text(HEADER + _compile(uv, *DEV, f"--constraint={constraints.name}"))

    subprocess.run(["npm", "install", "--package-lock-only", "--loglevel=error"], cwd=ROOT, check=True)
    path = ROOT / "package-lock.json"
    path.write_text(without_addresses(path.read_text()))


def without_addresses(lock: str) -> str:
    """The setting of npm leaves out where packages come from, but not where their authors take donations."""
    content = json.loads(lock)
    for package in content["packages"].values():
        package.pop("funding", None)
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _compile(uv: str, *options: str) -> str:
    command = [uv, "pip", "compile", "pyproject.toml", *options, *COMMON]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(UV))
