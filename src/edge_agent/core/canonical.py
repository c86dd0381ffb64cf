"""One JSON text for one value: sorted keys, no spaces, no NaN."""

import json
from dataclasses import asdict, is_dataclass
from typing import Any


def canonical(value: Any) -> str:
    """Raises ValueError for NaN and infinities, TypeError for what is not JSON."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
