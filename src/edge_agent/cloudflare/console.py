"""The console of the runtime: what `wrangler tail` and the dashboard show."""

import js

from edge_agent.wire.console import LogLevel

_METHODS = {"error": "error", "warning": "warn", "info": "info", "debug": "debug"}


def write(level: LogLevel, line: str) -> None:
    getattr(js.console, _METHODS[level])(line)
