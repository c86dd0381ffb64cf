"""The arguments of a tool call, as a model wrote them: text that should be a JSON object."""

import json
import math
import re
from typing import Any, NoReturn, cast

from edge_agent.core.messages import JsonObject

MAX_DEPTH = 100
_MARKS = re.compile(r'["\\\[\]{}]')


def parse_arguments(text: str) -> tuple[JsonObject, str | None]:
    """The object, and None; or an empty object, and the text that was none.

    Empty text is an empty object, and an object that was encoded twice is decoded twice. Malformed are: everything that
    is no object, NaN and infinities (1e999 as well), more than MAX_DEPTH levels, and halves of surrogate pairs, which
    no UTF-8 can hold. Never raises."""
    try:
        value = _decoded(text)
        if isinstance(value, str):
            value = _decoded(value)
    except (ValueError, RecursionError):
        return {}, text
    return (cast(JsonObject, value), None) if isinstance(value, dict) else ({}, text)


def _decoded(text: str) -> Any:
    if not text.strip():
        return {}
    if _too_deep(text):
        raise ValueError("too deep")
    value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    if "\\u" in text or not text.isascii():
        json.dumps(value, ensure_ascii=False).encode()  # UnicodeEncodeError, a ValueError, for half a surrogate pair
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is beyond the numbers that can be kept")
    return number


def _too_deep(text: str) -> bool:
    """Judged before decoding: the decoder recurses, and what a stack overflow does differs between platforms."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth, in_string, skip = 0, False, -1
    for mark in _MARKS.finditer(text):
        character = mark.group()
        if in_string:
            if mark.start() == skip:
                continue
            if character == "\\":
                skip = mark.start() + 1
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character != "\\":
            depth += 1 if character in "[{" else -1
            if depth > MAX_DEPTH:
                return True
    return False
