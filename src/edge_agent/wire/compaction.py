"""How the variable for compaction is written: a JSON object of some fields of `Compaction`, or on, or off."""

import json
from collections.abc import Mapping
from typing import Any, cast

from edge_agent.core.compaction import FIELDS, Compaction

_WORDS = {"on": True, "off": False}


def compaction_fields(text: str) -> Mapping[str, Any]:
    """What is laid over the code's own. Raises ValueError saying what is wrong."""
    if text.lower() in _WORDS:
        return {"auto": _WORDS[text.lower()]}
    try:
        wanted: Any = json.loads(text)
    except ValueError:
        wanted = None
    if not isinstance(wanted, dict):
        raise ValueError("is on, off, or a JSON object")  # noqa: TRY004 - of what a variable holds
    fields = cast("dict[str, Any]", wanted)
    unknown = [name[:60] for name in fields if name not in FIELDS]
    if unknown:
        raise ValueError(f"{unknown[0]} is no field of it; known are {', '.join(FIELDS)}")
    Compaction(**fields)
    return fields
