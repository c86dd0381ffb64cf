"""The variables and secrets of a Worker, without its bindings."""

from typing import Any

import js


def variables(env: Any) -> dict[str, str]:
    """Those that are text. `_env` is private to workers-runtime-sdk, which is pinned."""
    entries = js.Object.entries(env._env).to_py()  # noqa: SLF001
    return {name: value for name, value in entries if isinstance(value, str)}
