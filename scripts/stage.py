"""Copy what the Worker is made of to one folder: the `[build]` command of wrangler.toml.

wrangler uploads every Python file under the folder of `main`, and nothing outside it. Files are copied over
and strays deleted one by one, rather than the folder made anew, so that a reload never sees it half empty.

    python3 scripts/stage.py [TARGET]        (default: build/worker)
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# For CPython only: the console client, which brings packages the Worker does not have, and what tests are made with.
LEFT_OUT = {Path("edge_agent/cli"), Path("edge_agent/testing")}
KEPT_SUFFIXES = {".py", ".md", ".json", ".txt"}


def main() -> None:
    """Stage the checkout this script lies in, and say in a line which source is no Python."""
    for line in broken_sources(ROOT):
        print(line, file=sys.stderr)
    stage(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "worker")


def stage(target: Path) -> None:
    """Make `target` hold exactly the Worker's files."""
    wanted = dict(_sources(ROOT / "src", Path()))
    wanted |= dict(_sources(ROOT / "durable_objects", Path("durable_objects")))
    for place, source in wanted.items():
        _copy_if_changed(source, target / place)
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(target) not in wanted:
            path.unlink()


def _sources(folder: Path, prefix: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file the Worker needs as (its place in the target, where it lies)."""
    for path in folder.rglob("*"):
        place = path.relative_to(folder)
        if path.suffix not in KEPT_SUFFIXES or not path.is_file():
            continue
        if any(left_out in place.parents for left_out in LEFT_OUT):
            continue
        yield prefix / place, path


def broken_sources(root: Path) -> Iterator[str]:
    """Yield a line for each; to be said, not refused: this Python may be older than the Worker's newer syntax."""
    for _, source in _sources(root / "src", Path()):
        try:
            if source.suffix == ".py":
                compile(source.read_bytes(), source, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None)
            yield f"{source.relative_to(root)}:{line}: {getattr(error, 'msg', error)}"


def _copy_if_changed(source: Path, target: Path) -> None:
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


if __name__ == "__main__":
    main()
