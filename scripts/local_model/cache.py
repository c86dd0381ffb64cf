"""Where fetched things are kept, one process at a time, and what is said when they cannot be had."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

CHOICE = "EDGE_AGENT_LOCAL_MODEL"
FILE = "EDGE_AGENT_LOCAL_MODEL_FILE"

Say = Callable[[str], None]

OTHER_WAYS = (
    "What else you can do:\n"
    f"  {FILE}=/path/to/model.gguf      a file you already have (it is checked all the same)\n"
    "  EDGE_AGENT_MODEL=provider/model and its key      a provider's model, e.g. openai/... with OPENAI_API_KEY\n"
    "  EDGE_AGENT_MODEL=openai-compatible/NAME EDGE_AGENT_BASE_URL=http://HOST:PORT/v1      any server of your own"
)


class LocalModelError(Exception):
    """The local model cannot be had. The message says what failed and what else can be done."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}\n{OTHER_WAYS}")


class Unavailable(Exception):
    """One source has failed; the next may not."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    root = environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "edge-agent"


@contextmanager
def lock(path: Path, what: str, say: Say) -> Generator[None]:
    """One process at a time; the kernel lets go of it when the holder ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is fetching {what}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
