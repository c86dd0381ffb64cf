"""The front matter of a SKILL.md: the part of YAML that its fields need, and nothing that YAML would guess at.

Text on one line, plain or in quotes; text over several lines after `|` or `>`, or indented; one map of texts; lists of
texts, in brackets or with dashes. Anchors, tags and deeper nesting are refused. No YAML library comes with the Worker,
and every value here is a text: `1.0`, `no` and a date mean what they look like.
"""

import re
from collections.abc import Sequence

Value = str | list[str] | dict[str, str]
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_ENTRY = re.compile(r"""["']?([^\s"':#][^"':]*)["']?:(?:[ \t]+(.*))?""")
_BLOCK = re.compile(r"[|>][+-]?")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
FENCE = "---"


def split(text: str) -> tuple[str, str]:
    """(front matter, body). Raises ValueError, a sentence's end, where there is none."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        raise ValueError("must begin with a line of three dashes, then the fields, then another such line")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == FENCE:
            return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :]).strip()
    raise ValueError("has no second line of three dashes, which ends the fields")


def parse(text: str) -> dict[str, Value]:
    """Raises ValueError that names the line."""
    fields: dict[str, Value] = {}
    lines, at = text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        if _is_blank(line):
            at += 1
            continue
        found = _FIELD.fullmatch(line.rstrip())
        if not found:
            raise ValueError(f"line {at + 2} is no field: write `name: value`, with nothing before the name")
        name, first = found[1], (found[2] or "").strip()
        if name in fields:
            raise ValueError(f"line {at + 2} gives {name} a second time")
        end = _end_of(lines, at + 1)
        fields[name] = _value(name, first, lines[at + 1 : end])
        at = end
    return fields


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _end_of(lines: Sequence[str], at: int) -> int:
    """Where the lines that belong to a field end: those that are indented, blank, or entries of a list."""
    while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
        at += 1
    return at


def _value(name: str, first: str, rest: Sequence[str]) -> Value:
    if _BLOCK.fullmatch(first):
        return _block(first[0], rest)
    more = [line.strip() for line in rest if not _is_blank(line)]
    if first.startswith("[") and not more:
        return _bracketed(name, first)
    if first:
        return _scalar(name, " ".join([first, *more]))
    if more and all(line.startswith("- ") for line in more):
        return [_scalar(name, line[2:].strip()) for line in more]
    if more and all(_ENTRY.fullmatch(line) for line in more):
        return _map(name, [line for line in rest if not _is_blank(line)])
    return _scalar(name, " ".join(more))


def _map(name: str, lines: Sequence[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    if len({len(line) - len(line.lstrip()) for line in lines}) > 1:
        raise ValueError(f"{name} is nested too deep: its values are texts")
    for line in lines:
        found = _ENTRY.fullmatch(line.strip())
        key = found[1].strip() if found else ""
        if key in entries:
            raise ValueError(f"{name} holds {key} twice")
        entries[key] = _scalar(f"{name}.{key}", (found[2] if found else "") or "")
    return entries


def _bracketed(name: str, text: str) -> list[str]:
    if not text.endswith("]") or "[" in text[1:]:
        raise ValueError(f"{name} is no list that can be read: write [one, two]")
    return [_scalar(name, part.strip()) for part in text[1:-1].split(",") if part.strip()]


def _block(style: str, lines: Sequence[str]) -> str:
    """`|` keeps the ends of lines, `>` makes spaces of them."""
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    kept = [line[indent:].rstrip() for line in lines]
    if style == "|":
        return "\n".join(kept).strip("\n")
    return "\n".join(" ".join(part.split("\n")) for part in "\n".join(kept).strip("\n").split("\n\n"))


def _scalar(name: str, text: str) -> str:
    text = text.strip()
    if text[:1] in ("'", '"'):
        return _quoted(name, text)
    text = re.split(r"\s#", text, maxsplit=1)[0].rstrip()
    if text[:1] in tuple("&*!%@`{}[],|>"):
        raise ValueError(f"{name} begins with {text[0]!r}, which YAML gives a meaning: put the value in quotes")
    if ": " in text or text.endswith(":"):
        raise ValueError(f"{name} holds a colon, which YAML gives a meaning: put the value in quotes")
    return text


def _quoted(name: str, text: str) -> str:
    quote = text[0]
    pattern = r"'((?:[^']|'')*)'" if quote == "'" else r'"((?:[^"\\]|\\.)*)"'
    found = re.fullmatch(rf"{pattern}\s*(?:#.*)?", text, re.DOTALL)
    if not found:
        raise ValueError(f"{name} has a quote that is not closed, or text after it")
    if quote == "'":
        return found[1].replace("''", "'")
    return re.sub(r"\\(.)", lambda one: _unescaped(name, one[1]), found[1], flags=re.DOTALL)


def _unescaped(name: str, letter: str) -> str:
    if letter not in _ESCAPES:
        raise ValueError(f'{name} holds \\{letter}, which cannot be read here; known are \\n \\t \\" \\\\ \\/')
    return _ESCAPES[letter]
