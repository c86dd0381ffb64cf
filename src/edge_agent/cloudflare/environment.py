"""The variables and secrets of a Worker, and its AI binding."""

from typing import Any

import js


def variables(env: Any) -> dict[str, str]:
    """Those that are text. `_env` is private to workers-runtime-sdk, which is pinned."""
    entries = js.Object.entries(env._env).to_py()  # noqa: SLF001
    return {name: value for name, value in entries if isinstance(value, str)}


def ai_binding(env: Any) -> Any:
    """The runtime's own `Ai` object; None where the Worker has none."""
    return getattr(env._env, "AI", None)  # noqa: SLF001
