"""What a docstring says about a function and its parameters: Google style (`Args:`), or plain text."""

import re
from inspect import cleandoc

_ARGS = re.compile(r"^(args|arguments|parameters)\s*:\s*$", re.IGNORECASE)
_ENTRY = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(\([^)]*\))?\s*:\s*(?P<text>.*)$")


def parsed(docstring: str | None) -> tuple[str, dict[str, str]]:
    """(the text without its `Args:` section, description by parameter)."""
    text: list[str] = []
    section: list[str] | None = None
    sections: list[list[str]] = []
    for line in cleandoc(docstring or "").splitlines():
        if section is not None and (not line.strip() or line[0].isspace()):
            section.append(line)
        elif _ARGS.match(line):
            section = []
            sections.append(section)
        else:
            section = None
            text.append(line)
    described: dict[str, str] = {}
    for lines in sections:
        described.update(_entries(lines))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip(), described


def _entries(lines: list[str]) -> dict[str, str]:
    """`name: text` and `name (type): text`, each with the deeper lines that follow."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    outer = min(indents, default=0)
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        entry = _ENTRY.match(line.strip())
        if entry and len(line) - len(line.lstrip()) == outer:
            current = found.setdefault(entry["name"], [])
            current.append(entry["text"])
        else:
            current.append(line.strip())
    return {name: " ".join(part for part in parts if part) for name, parts in found.items()}
