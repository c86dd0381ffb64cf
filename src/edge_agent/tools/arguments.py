"""Faults of arguments, in words a model can act on."""

import math
from collections.abc import Sequence
from typing import Any, cast

from pydantic import ValidationError

from edge_agent.core.errors import InvalidArguments
from edge_agent.core.messages import JsonObject

MAX_DEPTH = 100
_MAX_INT_BITS = 1024  # what a float can hold; far more and Python refuses to write the number down
_SHOWN = 8


def require_json(arguments: JsonObject) -> None:
    """Raises InvalidArguments for what json.loads lets through but no other system takes: NaN, infinities, half
    characters, endless numbers, bottomless nesting."""
    waiting: list[tuple[str, Any, int]] = [("", arguments, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise InvalidArguments(f"{path[:60]}…: nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for key, inner in cast("dict[Any, Any]", value).items():
                if fault := "field names must be text" if not isinstance(key, str) else _text_fault(key):
                    raise InvalidArguments(f"{path or 'the arguments'}: {fault}, got {clipped(key)}")
                waiting.append((joined(path, key), inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(joined(path, at), inner, depth + 1) for at, inner in enumerate(cast("list[Any]", value))]
        elif fault := _scalar_fault(value):
            raise InvalidArguments(f"`{path}`: {fault}")


def _scalar_fault(value: Any) -> str | None:
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} is not a JSON number; give a finite one"
    if isinstance(value, int):
        return None if value.bit_length() <= _MAX_INT_BITS else "the number is too large"
    return None if value is None else f"a {type(value).__name__} is not JSON"


def _text_fault(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "the text holds half of a surrogate pair"
    return None


def joined(path: str, step: str | int) -> str:
    """a, b -> a.b; a, 0 -> a[0]"""
    if isinstance(step, int):
        return f"{path}[{step}]"
    return f"{path}.{step}" if path else step


def clipped(value: Any, length: int = 60) -> str:
    text = ascii(value) if isinstance(value, str) and _text_fault(value) else repr(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def faults_of(error: ValidationError, given: Any, known: Sequence[str]) -> str:
    """One sentence for each field that is wrong; alternatives of a union are joined by "or"."""
    by_path: dict[str, list[str]] = {}
    for fault in error.errors(include_url=False, include_context=False):
        path = _path(fault["loc"], given, missing=fault["type"] == "missing")
        said = _said(fault["type"], fault["msg"], fault["input"], known if len(fault["loc"]) == 1 else ())
        if said not in by_path.setdefault(path, []):
            by_path[path].append(said)
    sentences = [_sentence(path, " or ".join(said)) for path, said in by_path.items()]
    more = f"; and {len(sentences) - _SHOWN} more" if len(sentences) > _SHOWN else ""
    return "; ".join(sentences[:_SHOWN]) + more


def _sentence(path: str, said: str) -> str:
    if not path:
        return said
    return f"`{path}` {said}" if said.startswith("is ") else f"`{path}`: {said}"


def _path(steps: Sequence[str | int], given: Any, *, missing: bool) -> str:
    """The part of pydantic's location that exists in what was given: it names branches of a union as well."""
    path, here = "", given
    for number, step in enumerate(steps):
        if isinstance(here, dict) and step in here:
            here = cast("dict[Any, Any]", here)[step]
        elif isinstance(here, list | tuple) and isinstance(step, int) and step < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[step]
        elif not (missing and number == len(steps) - 1):
            continue
        path = joined(path, step)
    return path


def _said(kind: str, message: str, value: Any, known: Sequence[str]) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return f"is not a known field; known are {', '.join(known)}" if known else "is not a known field"
    expected = message.replace("Input should be", "expected", 1).replace("Value error, ", "", 1)
    return f"{expected}, got {clipped(value)}"
