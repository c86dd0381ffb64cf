"""The documents of the repository, cut into what can be checked: fenced blocks, commands, names."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCUMENTS = (README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block. `output`: the block of text that comes next, which is what an example prints."""

    place: str
    language: str
    text: str
    output: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A curl command: what it asks for, and what it is shown to print."""

    method: str
    path: str
    printed: str


def blocks(document: Path) -> list[Block]:
    text = document.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(text))
    following = [*found[1:], None] if found else []
    return [
        Block(
            place=f"{document.name}:{text.count(chr(10), 0, block.start()) + 1}",
            language=block[1],
            text=block[2],
            output=after[2] if after and after[1] == "text" else None,
        )
        for block, after in zip(found, following, strict=True)
    ]


def prose(document: Path) -> str:
    """What stands outside of the fenced blocks."""
    return _FENCE.sub("", document.read_text(encoding="utf-8"))


def section(document: Path, title: str) -> str:
    """From a heading of the second level to the next one."""
    _, found, rest = document.read_text(encoding="utf-8").partition(f"\n## {title}\n")
    assert found, f"{document.name} has no section {title!r}"
    return rest.partition("\n## ")[0]


def calls(document: Path) -> Iterator[Call]:
    """Every curl command of the shell blocks, as a shell would read it."""
    for block in blocks(document):
        if block.language in ("sh", "console"):
            commands = re.split(r"^(?:\$ )?(?=curl )", block.text, flags=re.MULTILINE)
            yield from (_call(command) for command in commands if command.startswith("curl "))


def _call(command: str) -> Call:
    line, _, printed = command.partition("\n")
    words = shlex.split(line)
    words = words[: words.index("|")] if "|" in words else words
    address = next(word for word in words if word.startswith("http"))
    sends = any(word in words for word in ("-d", "--json", "--data"))
    method = words[words.index("-X") + 1] if "-X" in words else "POST" if sends else "GET"
    return Call(method=method, path=urlsplit(address).path, printed=printed)
