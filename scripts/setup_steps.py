"""The steps of set-up, in order: what each is made from, what it makes, and how.

    .venv/            development tools          from requirements/dev.txt
    node_modules/     wrangler, workerd, Node    from package-lock.json
    build/pyodide/    the Python of workerd      from node_modules/pyodide
    python_modules/   the Worker's packages      from requirements/worker.txt

Nothing else is written, but for stamps in build/setup/ (hashes of what each step was made from).
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import pyodide_bundle
from scripts.console import CommandError, SetupError, run_shown, say, step
from scripts.vendor import vendor

ROOT = Path(__file__).resolve().parent.parent
STAMPS = ROOT / "build" / "setup"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
NODE_MODULES = ROOT / "node_modules"
BUNDLE = ROOT / "build" / "pyodide" / pyodide_bundle.BUNDLE_NAME
PYTHON_MODULES = ROOT / "python_modules"
FREE_BYTES_NEEDED = 1_500_000_000
NODE_NEEDED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing set-up makes. Up to date when `result` is there and `sources` are what they were."""

    name: str
    title: str
    sources: Sequence[Path]
    result: Path
    make: Callable[[], None]

    def is_done(self) -> bool:
        return self.result.exists() and self._stamp.is_file() and self._stamp.read_text() == self._fingerprint()

    def do(self) -> None:
        self._stamp.unlink(missing_ok=True)
        with step(self.title):
            self.make()
        self._stamp.parent.mkdir(parents=True, exist_ok=True)
        self._stamp.write_text(self._fingerprint())

    @property
    def _stamp(self) -> Path:
        return STAMPS / self.name

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"{sys.version_info[:2]} {sys.platform}".encode())
        for source in self.sources:
            for file in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()


def run_all() -> int:
    """Do each step that is not up to date; return how many there were. One set-up at a time."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    with (STAMPS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pending = [each for each in STEPS if not each.is_done()]
        if pending:
            _check_disk()
        for each in pending:
            each.do()
    return len(pending)


def make_venv() -> None:
    """Make .venv, anew if it is of another Python, and install the locked development tools into it."""
    command = [sys.executable, "-m", "venv", str(VENV)]
    if not (VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}").is_dir():
        command.append("--clear")
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise SetupError(
            f"this Python cannot make virtual environments: {(error.stdout + error.stderr).strip()}\n"
            "Way out: on Debian and Ubuntu, apt install python3-venv; or name another: make setup PYTHON=python3.12"
        ) from error
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    with _explained("PyPI"):
        run_shown([*pip, "--require-hashes", f"--requirement={ROOT / 'requirements/dev.txt'}"])


def make_node_modules() -> None:
    """Install the locked npm packages, Node 22 among them, with the Node and npm of the machine."""
    _check_node()
    npm = [_program("npm", "Node.js comes with it; on Debian and Ubuntu, apt install npm"), "ci", "--loglevel=error"]
    with _explained("npm"):
        run_shown(npm, cwd=ROOT)
    if not (NODE_MODULES / "node/bin/node").is_file():
        raise SetupError(
            "npm did not run the install scripts of node, workerd and esbuild, which bring their programs.\n"
            "Way out: npm config delete ignore-scripts, then make setup"
        )


def make_bundle() -> None:
    """Build workerd's Pyodide bundle; seconds of work, nothing is fetched."""
    try:
        pyodide_bundle.build(NODE_MODULES / "pyodide", BUNDLE)
    except pyodide_bundle.BundleError as error:
        raise SetupError(
            f"{error}\nWay out: rm -r node_modules && make setup; after an update of pyodide in package.json, "
            "see scripts/pyodide_bundle.py"
        ) from error
    say(f"    {BUNDLE.stat().st_size / 1e6:.0f} MB, checksum as expected")


def make_python_modules() -> None:
    """Fill python_modules/ for the local runtime."""
    with _explained("PyPI"):
        vendor(VENV_PYTHON, ROOT / "requirements/worker.txt", ROOT / "scripts/stand_ins", PYTHON_MODULES)


def _program(name: str, way_out: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SetupError(f"{name} is not on PATH.\nWay out: {way_out}")
    return found


def _check_node() -> None:
    node = _program("node", f"install Node.js {NODE_NEEDED} or newer")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    major = re.match(r"v(\d+)\.", version)
    if major is None or int(major[1]) < NODE_NEEDED:
        raise SetupError(f"Node.js {NODE_NEEDED} or newer is needed, {node} is {version or 'silent'}.")


def _check_disk() -> None:
    free = shutil.disk_usage(ROOT).free
    if free < FREE_BYTES_NEEDED:
        raise SetupError(f"{free / 1e9:.1f} GB of disk are free, set-up needs {FREE_BYTES_NEEDED / 1e9:.1f} GB.")


class _explained:  # noqa: N801 - reads as a verb: with _explained("PyPI")
    """Turn a failed install from `registry` into a `SetupError` that says what went wrong and what to do."""

    def __init__(self, registry: str) -> None:
        self._registry = registry

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, CommandError):
            raise SetupError(f"{error}: {_diagnosis(error.output, self._registry)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a failed install means: a pattern in the output of pip or npm, the cause, and the way out."""

    pattern: str
    cause: str
    way_out: str


DIAGNOSES = (
    Diagnosis(
        pattern=r"DO NOT MATCH THE HASHES|EINTEGRITY",
        cause="a download from {registry} is not the file the lock names.",
        way_out="try again; should it stay, a proxy or mirror alters files, or the lock is stale (make lock)",
    ),
    Diagnosis(
        pattern=r"No space left|ENOSPC",
        cause="the disk is full.",
        way_out="free about 1.5 GB and run make setup again",
    ),
    Diagnosis(
        pattern=r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|NewConnectionError|Read timed out"
        r"|Name or service not known|Temporary failure in name resolution",
        cause="{registry} is out of reach.",
        way_out="check the network, or set the mirror or proxy that pip and npm should use",
    ),
    Diagnosis(
        pattern=r"No matching distribution|ETARGET|E404",
        cause="{registry} does not have a locked version.",
        way_out="check which mirror pip or npm uses",
    ),
    Diagnosis(
        pattern=r"EACCES|Permission denied",
        cause="a file may not be written.",
        way_out="make the folder yours, then make setup",
    ),
)


def _diagnosis(output: str, registry: str) -> str:
    tail = "\n".join(f"      {line}" for line in output.strip().splitlines()[-12:])
    for each in DIAGNOSES:
        if re.search(each.pattern, output):
            return f"{each.cause.format(registry=registry)}\nWay out: {each.way_out}\n    its last lines:\n{tail}"
    return f"the cause is not one of the known ones\n    its last lines:\n{tail}"


STEPS = (
    Step(
        name="venv",
        title=".venv: development tools from PyPI (about 55 packages, 80 MB to fetch)",
        sources=[ROOT / "requirements/dev.txt"],
        result=VENV_PYTHON,
        make=make_venv,
    ),
    Step(
        name="node_modules",
        title="node_modules: wrangler, workerd, Node 22, Pyodide from npm (152 packages, 160 MB to fetch)",
        sources=[ROOT / "package.json", ROOT / "package-lock.json"],
        result=NODE_MODULES / "node/bin/node",
        make=make_node_modules,
    ),
    Step(
        name="bundle",
        title="build/pyodide: the Python that workerd runs, made from npm's pyodide (nothing to fetch)",
        sources=[ROOT / "package-lock.json", ROOT / "scripts/pyodide_bundle.py", ROOT / "scripts/capnp_message.py"],
        result=BUNDLE,
        make=make_bundle,
    ),
    Step(
        name="python_modules",
        title="python_modules: the Worker's packages from PyPI (21 packages, 4 MB to fetch)",
        sources=[ROOT / "requirements/worker.txt", ROOT / "scripts/vendor.py", ROOT / "scripts/stand_ins"],
        result=PYTHON_MODULES / "pyvenv.cfg",
        make=make_python_modules,
    ),
)
