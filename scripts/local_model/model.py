"""The model's file: given, kept from before, or fetched; checked in every case."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.local_model.cache import CHOICE, FILE, LocalModelError, Say, Unavailable, cache_folder, lock, sha256_of
from scripts.local_model.sources import SOURCES, Source
from scripts.local_model.weights import CHOICES, Weights, megabytes


def ensure_model(
    say: Say,
    *,
    environ: Mapping[str, str] = os.environ,
    choices: Mapping[str, Weights] = CHOICES,
    sources: Sequence[Source] = SOURCES,
) -> Path:
    """Return the model's file, fetched if need be. Raises `LocalModelError`."""
    if given := environ.get(FILE):
        return _given_file(Path(given).expanduser(), tuple(choices.values()))
    choice = environ.get(CHOICE, "").lower() or next(iter(choices))
    if choice not in choices:
        raise LocalModelError(f"{CHOICE} is {choice!r}: it can be {' or '.join(choices)}")
    folder = cache_folder(environ) / "models"
    folder.mkdir(parents=True, exist_ok=True)
    weights = choices[choice]
    with lock(folder / f"{weights.file}.lock", "the model", say):
        return _cached(weights, folder, say) or _fetched(weights, folder, sources, say)


def _given_file(path: Path, known: tuple[Weights, ...]) -> Path:
    if not path.is_file():
        raise LocalModelError(f"{FILE} names {path}, and there is no such file")
    size = path.stat().st_size
    if not any(weights.size == size and weights.sha256 == sha256_of(path) for weights in known):
        titles = " or ".join(weights.title for weights in known)
        raise LocalModelError(f"{FILE} names {path}, which is not {titles}: size or SHA-256 differ")
    return path


def _cached(weights: Weights, folder: Path, say: Say) -> Path | None:
    file = folder / weights.file
    if not file.is_file():
        return None
    if file.stat().st_size == weights.size and sha256_of(file) == weights.sha256:
        return file
    say(f"{file} is damaged: it is fetched anew")
    file.unlink()
    return None


def _fetched(weights: Weights, folder: Path, sources: Sequence[Source], say: Say) -> Path:
    _need_room(weights, folder)
    say(f"fetching {weights.title}, {megabytes(weights.size)} MB, into {folder}")
    failures: list[str] = []
    for source in sources:
        part = folder / f"{weights.file}.{source.name.replace(' ', '-')}.part"
        try:
            source.download(weights, part, say)
            _check(weights, part)
        except Unavailable as error:
            failures.append(f"  from the {source.name}: {error}")
            say(f"  not from the {source.name}: {error}")
        else:
            return _kept(weights, part, folder, source, say)
    raise LocalModelError("\n".join([f"{weights.title} cannot be had", *failures]))


def _need_room(weights: Weights, folder: Path) -> None:
    needed, free = weights.size * 21 // 10, shutil.disk_usage(folder).free  # parts and whole, for a moment
    if free < needed:
        raise LocalModelError(
            f"{folder} has {megabytes(free)} MB left, {megabytes(needed)} MB are needed to fetch the model"
        )


def _check(weights: Weights, part: Path) -> None:
    found = sha256_of(part)
    if found != weights.sha256:
        part.unlink()
        raise Unavailable(f"what came has the SHA-256 {found}, expected {weights.sha256}; it is thrown away")


def _kept(weights: Weights, part: Path, folder: Path, source: Source, say: Say) -> Path:
    notice = _notice(weights, source)
    (folder / f"{weights.file}.NOTICE").write_text(notice, encoding="utf-8")
    file = part.rename(folder / weights.file)
    for cut_short in folder.glob(f"{weights.file}.*.part"):
        cut_short.unlink()
    say(notice.rstrip())
    return file


def _notice(weights: Weights, source: Source) -> str:
    return (
        f"{weights.title}, by the Qwen team of Alibaba Cloud, under the Apache License 2.0\n"
        f"Its publisher's page: {weights.page}\n"
        "The licence: https://www.apache.org/licenses/LICENSE-2.0\n"
        f"This copy: {source.origin.format(weights=weights)}\n"
        f"SHA-256: {weights.sha256}\n"
    )
