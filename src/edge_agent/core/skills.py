"""A skill: instructions for special work, with files beside them. The rules are those of agentskills.io."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote

from edge_agent.core import front_matter
from edge_agent.core.errors import ConfigError

Origin = Literal["bundled", "stored", "learned"]
FILE = "SKILL.md"
MOST_NAME, MOST_DESCRIPTION, MOST_COMPATIBILITY = 64, 1_024, 500  # characters
MOST_TEXT = 262_144  # bytes of the instructions, and of each file beside them
MOST_FILES = 64
LISTED_LENGTH = 300  # characters of a description in an index
_TEXT = ((str,), "a text")
_FORMS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "name": _TEXT,
    "description": _TEXT,
    "license": _TEXT,
    "compatibility": _TEXT,
    "metadata": ((dict,), "a map of texts"),
    "allowed-tools": ((str, list), "a text of names with spaces between them, nor a list"),
}
_EXAMPLE = 'Skill(name="invoice-check", description="Check an invoice. Use it for bills.", instructions="1. …")'
_ENTRY = re.compile(r"[^\s(),]+(?:\([^()]*\))?")  # of allowed-tools: a tool, perhaps with a pattern in brackets


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillEntry:
    """A line of an index. `description`: its beginning, on one line."""

    name: str
    description: str
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """instructions: what is loaded when the skill is. allowed_tools: names or globs; while the skill is active, only
    these tools are offered. None: it says nothing of tools. files: text by path, read with `read_skill_file`.

    Raises ConfigError for what breaks a rule."""

    name: str
    description: str
    instructions: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed_tools: tuple[str, ...] | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", unicodedata.normalize("NFKC", self.name.strip()))
        if fault := next(_faults(self), None):
            raise ConfigError(f"skill {self.name[:MOST_NAME]!r}", fault, _EXAMPLE)

    @classmethod
    def parse(cls, text: str, files: Mapping[str, str] | None = None) -> "Skill":
        """From the text of a SKILL.md. Raises ConfigError."""
        try:
            head, body = front_matter.split(text)
            return cls(**_fields_of(head), instructions=body, files=files or {})
        except ValueError as error:
            example = "---\nname: invoice-check\ndescription: Check an invoice.\n---"
            raise ConfigError(FILE, str(error), example) from None

    @classmethod
    def from_dir(cls, path: str | Path) -> "Skill":
        """From a folder with a SKILL.md in it, and every text file beside it; what is no UTF-8 text is left out.

        Raises ConfigError, also for a link, and for a folder that is not named like its skill."""
        folder = Path(path)
        skill = cls.parse(_text_of(folder / FILE) or "", dict(_files_in(folder)))
        if unicodedata.normalize("NFKC", folder.resolve().name) != skill.name:
            fault = f"its folder is named {folder.resolve().name!r}; a skill and its folder have one name"
            raise ConfigError(f"skill {skill.name!r}", fault, f"skills/{skill.name}/{FILE}")
        return skill

    def entry(self, origin: Origin) -> SkillEntry:
        return SkillEntry(name=self.name, description=listed(self.description), origin=origin)


def listed(description: str) -> str:
    flat = " ".join(description.split())
    return flat if len(flat) <= LISTED_LENGTH else flat[: LISTED_LENGTH - 1] + "…"


def name_fault(name: str) -> str | None:
    """What is wrong with a skill's name, as the end of a sentence."""
    if not name:
        return "it has no name"
    if len(name) > MOST_NAME:
        return f"its name has {len(name)} characters; {MOST_NAME} are the most"
    if unicodedata.normalize("NFKC", name) != name or any(letter != "-" and not letter.isalnum() for letter in name):
        return f"the name {name!r} may have lower case letters, digits and hyphens only"
    if name != name.lower():
        return f"the name {name!r} must be in lower case"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        return f"the name {name!r} may not begin or end with a hyphen, nor have two in a row"
    return None


def path_fault(path: str) -> str | None:
    """What is wrong with the path of a file of a skill: it is relative to the folder and stays inside."""
    parts = path.split("/")
    if path == FILE or not path or len(path) > 200:  # noqa: PLR2004
        return f"a path has up to 200 characters and is not {FILE} itself"
    if path.startswith("/") or "\\" in path or re.match(r"[A-Za-z]:", path):
        return "a path is relative to the skill's folder, with / between its parts"
    if unquote(path) != path or not path.isprintable():
        return "a path is written as it is, without escapes"
    if any(part in ("", ".", "..") for part in parts):
        return "a path may not leave the skill's folder, nor have empty parts"
    return None


def _faults(skill: Skill) -> Iterator[str]:
    if fault := name_fault(skill.name):
        yield fault
    if not skill.description.strip():
        yield "it has no description; say what it is for, and when to use it"
    if len(skill.description) > MOST_DESCRIPTION:
        yield f"its description has {len(skill.description)} characters; {MOST_DESCRIPTION} are the most"
    if skill.compatibility is not None and not 0 < len(skill.compatibility) <= MOST_COMPATIBILITY:
        yield f"compatibility has 1 to {MOST_COMPATIBILITY} characters"
    if len(skill.instructions.encode()) > MOST_TEXT:
        yield f"its instructions are longer than {MOST_TEXT} bytes; put details into files beside them"
    yield from (
        f"allowed-tools holds {entry!r}; it is a list of names of tools with spaces between them"
        for entry in skill.allowed_tools or ()
        if not _ENTRY.fullmatch(entry)
    )
    yield from _faults_of_files(skill.files)


def _faults_of_files(files: Mapping[str, str]) -> Iterator[str]:
    if len(files) > MOST_FILES:
        yield f"it has {len(files)} files; {MOST_FILES} are the most"
    for path, content in files.items():
        if fault := path_fault(path):
            yield f"the file {path[:100]!r} cannot be: {fault}"
        if len(content.encode()) > MOST_TEXT:
            yield f"the file {path!r} is longer than {MOST_TEXT} bytes"


def _fields_of(head: str) -> dict[str, Any]:
    """As the arguments of a Skill. Raises ValueError for a field that is unknown, missing, or of the wrong form."""
    fields = front_matter.parse(head)
    for name, value in fields.items():
        if name not in _FORMS:
            raise ValueError(f"has a field {name!r}; known are {', '.join(_FORMS)}. Others belong under metadata")
        kinds, form = _FORMS[name]
        if type(value) not in kinds:
            raise ValueError(f"has a {name} that is not {form}")
    for name in ("name", "description"):
        if not fields.get(name):
            raise ValueError(f"needs a {name}")
    tools = fields.pop("allowed-tools", None)
    return {**fields, "allowed_tools": None if tools is None else tuple(_entries(tools))}


def _entries(tools: Any) -> list[str]:
    """Of a text: names with spaces between them, or commas; brackets may hold spaces. Raises ValueError for a blank
    one, which is no field to YAML, and to a reader as good as no tool."""
    if isinstance(tools, list):
        return cast("list[str]", tools)
    text = str(tools)
    if not text.strip():
        raise ValueError("has an allowed-tools that is blank; write [] where no tool is allowed, or leave it out")
    return re.findall(rf"{_ENTRY.pattern}|[()]", text)


def _files_in(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            fault = "it is a link; a skill's files lie in its own folder"
            raise ConfigError(f"skill folder {folder.name!r}", f"{path.name}: {fault}", f"{folder.name}/notes.md")
        place = path.relative_to(folder).as_posix()
        hidden = any(part.startswith((".", "__pycache__")) for part in place.split("/"))
        if path.is_file() and place != FILE and not hidden and (text := _text_of(path)) is not None:
            yield place, text


def _text_of(path: Path) -> str | None:
    """None for what is no text. Raises ConfigError for a SKILL.md that cannot be read."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        return None
    except OSError as error:
        fault = f"{path.name} cannot be read: {error.strerror}"
        raise ConfigError(f"skill folder {path.parent.name!r}", fault, f"skills/invoice-check/{FILE}") from error
