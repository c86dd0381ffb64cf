"""Fill python_modules/ with the Worker's packages from PyPI alone, as `pywrangler sync` does with more.

PyPI has wheels for this platform of all that is native but for the packages in scripts/stand_ins, which are
left out of the download and copied in from there. `pywrangler deploy` fills the folder again by itself, with
the real ones from Pyodide's index; nothing made here is ever deployed.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.console import run_shown

STAND_INS = {"rpds-py": "rpds"}  # distribution: the module that stands in for it

# Python 3.14 of Pyodide 314, which compatibility_date in wrangler.toml selects.
PLATFORM = (
    "--python-version=3.14",
    "--implementation=cp",
    "--abi=cp314",
    "--abi=none",
    "--platform=pyemscripten_2026_0_wasm32",
    # httpx2-jsfetch asks for 3.12 or newer, and pip compares that with the Python that runs it.
    "--ignore-requires-python",
)


def vendor(python: Path, lock: Path, stand_ins: Path, target: Path) -> None:
    """Install `lock` but for the stand-ins with `python`'s pip, and put it in place of `target`."""
    draft = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    pip += ["--only-binary=:all:", "--require-hashes", *PLATFORM, f"--target={draft}"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.writelines(_without_stand_ins(lock.read_text(encoding="utf-8")))
        wanted.flush()
        run_shown([*pip, f"--requirement={wanted.name}"])
    for module in STAND_INS.values():
        shutil.copytree(stand_ins / module, draft / module, ignore=shutil.ignore_patterns("__pycache__"))
    (draft / "pyvenv.cfg").touch()  # wrangler takes the folder for a virtual environment by this
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)


def _without_stand_ins(lock: str) -> Iterator[str]:
    """Yield the lines of a hashed requirements file that do not belong to a package with a stand-in."""
    keep = True
    for line in lock.splitlines(keepends=True):
        if name := re.match(r"[A-Za-z0-9._-]+(?===)", line):
            keep = name[0] not in STAND_INS
        if keep:
            yield line
