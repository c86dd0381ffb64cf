"""Weigh what a deploy would upload, by package, and refuse what must not be in it.

Asks `wrangler deploy --dry-run` for the bundle and opens it: fails over our size limit, and where a stand-in,
a local-only compatibility flag or a secrets file is in it.

A deploy takes the packages from Pyodide's index (`pywrangler`), a machine with PyPI alone has stand-ins for
those that have no wheel there. So what is weighed is a laid out folder of its own (build/bundle), made of
wrangler.toml as it stands and of python_modules/ without the stand-ins. What the real packages add cannot be
weighed there; room is kept for them instead.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from scripts.project import LOCAL_FLAGS, copy_sources, production_config, write_config
from scripts.serve import NODE_MODULES, quiet_environment
from scripts.stage import ROOT
from scripts.vendor import STAND_INS

# Our own ceiling, compressed, so that growth is noticed. The platform takes 64 MiB uncompressed since 2026;
# before that it was 3 MiB compressed on the free plan: https://developers.cloudflare.com/workers/platform/limits/
LIMIT = 4 * 1024 * 1024
# The real rpds-py for wasm was out of reach when this was written. Its wheel for Linux is 375 kB; that of
# pydantic-core for Linux is half as large again as the one for wasm.
ROOM_FOR_REAL = {"rpds": 400 * 1024}
SHOWN = 25
STAND_IN_MARK = b"IS_STAND_IN"


def main() -> None:
    """Print the sizes; end with a message and 1 when something is wrong."""
    project = ROOT / "build" / "bundle"
    bundle = make_bundle(project)
    packages = by_package(bundle)
    total = print_table(packages)
    print_missing(packages, total)
    faults = [*find_faults(bundle, project / "wrangler.json")]
    if total > LIMIT:
        faults.append(f"{_kib(total)} compressed is over the limit of {_kib(LIMIT)}")
    if faults:
        sys.exit("bundle: " + "\nbundle: ".join(faults))


def make_bundle(project: Path) -> Path:
    """Lay out `project` as a deploy would find it and return the folder of what it would upload."""
    shutil.rmtree(project, ignore_errors=True)
    project.mkdir(parents=True)
    copy_sources(project)
    _copy_real_packages(ROOT / "python_modules", project / "python_modules")
    config = write_config(project, production_config())
    bundle = project / "out"
    node = NODE_MODULES / "node/bin/node"
    command = [str(node), str(NODE_MODULES / "wrangler/bin/wrangler.js"), "deploy", "--dry-run"]
    command += [f"--config={config}", f"--outdir={bundle}"]
    result = subprocess.run(
        command,
        cwd=project,
        env=quiet_environment(project),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if result.returncode:
        sys.exit(f"wrangler deploy --dry-run ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return bundle


def by_package(bundle: Path) -> dict[str, list[Path]]:
    """Return the uploaded files by package; a package's metadata belongs to it, our own code to (worker)."""
    packages: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(bundle.rglob("*")):
        if not path.is_file() or path == bundle / "README.md":  # wrangler's note on the folder
            continue
        parts = path.relative_to(bundle).parts
        name = parts[1].split("-")[0].removesuffix(".py") if parts[0] == "python_modules" else "(worker)"
        packages[name].append(path)
    return packages


def print_missing(packages: dict[str, list[Path]], total: int) -> None:
    """Print what a deploy would bring beside what is installed here: not judged, since its size is a guess."""
    for module in STAND_INS.values():
        if module not in packages:
            guess = ROOM_FOR_REAL[module]
            print(f"{module:<28}{'not at hand':>12} {f'about {_kib(guess)}':>13}   the real one, which a deploy brings")
            print(f"{'then':<28}{'':>12}{_kib(total + guess):>12}   of {_kib(LIMIT)}")


def print_table(packages: dict[str, list[Path]]) -> int:
    """Print the sizes, largest first, and return the compressed size of all, as wrangler counts it."""
    rows = sorted(
        ((gzip_size(files), sum(file.stat().st_size for file in files), name) for name, files in packages.items()),
        reverse=True,
    )
    rest = rows[SHOWN:]
    total = gzip_size(file for files in packages.values() for file in files)
    print(f"{'package':<28}{'raw':>12}{'gzip':>12}")
    for compressed, raw, name in rows[:SHOWN]:
        print(f"{name:<28}{_kib(raw):>12}{_kib(compressed):>12}")
    if rest:
        print(f"{f'{len(rest)} more':<28}{_kib(sum(r[1] for r in rest)):>12}{_kib(sum(r[0] for r in rest)):>12}")
    print(f"{'all':<28}{_kib(sum(r[1] for r in rows)):>12}{_kib(total):>12}   of {_kib(LIMIT)}")
    return total


def gzip_size(files: Iterable[Path]) -> int:
    """Return the size of the files one after the other, compressed as gzip does by default."""
    compress = zlib.compressobj(wbits=31)
    return sum(len(compress.compress(file.read_bytes())) for file in files) + len(compress.flush())


def find_faults(bundle: Path, config: Path) -> Iterable[str]:
    """Yield what must not be deployed."""
    if flags := set(json.loads(config.read_text())["compatibility_flags"]) & set(LOCAL_FLAGS):
        yield f"local-only compatibility flags: {', '.join(sorted(flags))}"
    for path in bundle.rglob("*"):
        if not path.is_file():
            continue
        place = path.relative_to(bundle)
        if path.name in {".dev.vars", ".env"}:
            yield f"a secrets file: {place}"
        if path.suffix == ".py" and path.parent.parent.name == "python_modules" and STAND_IN_MARK in path.read_bytes():
            yield f"a stand-in: {place}"


def _copy_real_packages(source: Path, target: Path) -> None:
    """Fill `target` with hard links to `source`, but for the stand-ins."""
    shutil.copytree(source, target, copy_function=_link_or_copy, ignore=shutil.ignore_patterns("__pycache__"))
    for module in STAND_INS.values():
        init = target / module / "__init__.py"
        if init.is_file() and STAND_IN_MARK in init.read_bytes():
            shutil.rmtree(target / module)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def _kib(size: int) -> str:
    return f"{size / 1024:,.0f} KiB"


if __name__ == "__main__":
    main()
