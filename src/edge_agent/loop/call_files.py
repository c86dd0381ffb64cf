"""The files one call leaves behind: safely named, masked like events, kept in the append of its result."""

import itertools
import re
from collections.abc import Container, Mapping

from edge_agent.core.errors import ToolError
from edge_agent.core.media_types import well_formed
from edge_agent.core.ports import StoredFile
from edge_agent.core.tooling import ToolFile
from edge_agent.loop.walk import Walk


class CallFiles:
    """The `Files` of a call."""

    def __init__(self, walk: Walk, call_id: str) -> None:
        self._walk, self._call_id = walk, call_id
        self._saved: dict[str, StoredFile] = {}

    @property
    def saved(self) -> Mapping[str, StoredFile]:
        return self._saved

    def save(self, name: str, content: bytes | str, media_type: str) -> str:
        kept = content.encode() if isinstance(content, str) else bytes(content)
        own = _file_name(f"{self._call_id}-{name}", self._saved)
        content = _cleaned(self._walk, kept)
        self._saved[own] = StoredFile(name=own, media_type=well_formed(media_type), content=content)
        return own

    def read(self, name: str) -> ToolFile:
        file = self._saved.get(name) or self._walk.journal.log.file(name)
        if file is None:
            raise ToolError(f"This run has no file {name[:100]!r}.")
        return ToolFile(name=file.name, media_type=file.media_type, content=file.content)

    def drop(self) -> None:
        """All of them: nobody has looked at what they hold."""
        self._saved.clear()

    def put(self, name: str, content: str, media_type: str) -> None:
        """What is the loop's own, clean already, under exactly that name."""
        self._saved[name] = StoredFile(name=name, media_type=media_type, content=content.encode())


def _cleaned(walk: Walk, content: bytes) -> bytes:
    """A file that is text is masked like an event."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content
    return walk.journal.cleaned_text(text).encode()


def _file_name(wanted: str, taken: Container[str]) -> str:
    """Of letters, digits, point, line and underscore, and not the name of another file of the call."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", wanted)[:100]
    others = (f"{number}-{name}" for number in itertools.count(2))
    return next(free for free in itertools.chain([name], others) if free not in taken)
