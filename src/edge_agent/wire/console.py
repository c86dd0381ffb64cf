"""What the console of a deployment is told: a line of JSON each, of what happened and to which run, and nothing of what
was said in it. The log of a run says the rest."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from edge_agent.core.hub import Item
from edge_agent.core.ports import Record
from edge_agent.wire import codec

LogLevel = Literal["none", "error", "warning", "info", "debug"]
LEVELS: Sequence[LogLevel] = get_args(LogLevel)
DEFAULT_LEVEL: LogLevel = "info"
Write = Callable[[LogLevel, str], None]

_USED = ("stop_reason", "usage", "cost_usd")
# Which records are worth more than their type and key, to whom, and which of their fields hold nothing that was said.
TOLD: Mapping[str, tuple[LogLevel, Sequence[str]]] = {
    "run.created": ("info", ("mode", "models", "user")),
    "run.started": ("info", ("reason",)),
    "run.resumed": ("info", ()),
    "run.waiting": ("info", ("for", "until")),
    "run.completed": ("info", _USED),
    "run.cancelled": ("info", _USED),
    "run.failed": ("error", ("error", *_USED)),
    "fault": ("warning", ("kind", "action", "message")),
    "model.failed": ("warning", ("stage", "attempt", "error", "message")),
    "tool.unknown": ("warning", ("name", "cause")),
    "subagent.failed": ("warning", ("name",)),
    "budget.exceeded": ("warning", ("kind", "used", "cap")),
    "model.requested": ("debug", ("stage", "provider", "model", "attempt")),
    "model.answered": ("debug", ("stage", "finish_reason", "usage", "cost_usd", "latency_ms")),
    "tool.called": ("debug", ("name",)),
    "tool.result": ("debug", ("name", "ok", "duration_ms")),
    "tool.rejected": ("debug", ("name", "reason")),
}


@dataclass(frozen=True, slots=True)
class Console:
    """`level`: the finest that is written, by `write`. `mask`: takes declared secrets out of a text."""

    level: LogLevel
    write: Write
    mask: Callable[[str], str]

    def wants(self, level: LogLevel) -> bool:
        return LEVELS.index(level) <= LEVELS.index(self.level)

    def say(self, level: LogLevel, event: str, at: int, **fields: Any) -> None:
        """`at`: ms since the epoch. Fields that are None are left out."""
        if not self.wants(level):
            return
        known = {name: self._clean(value) for name, value in fields.items() if value is not None}
        line = {"level": level, "at": codec.timestamp(at), "event": event, **known}
        self.write(level, json.dumps(line, ensure_ascii=False, separators=(",", ":")))

    def _clean(self, value: Any) -> Any:
        return self.mask(value) if isinstance(value, str) else value


SILENT = Console("none", lambda _level, _line: None, lambda text: text)


@dataclass(frozen=True, slots=True)
class RunLines:
    """Follows a run. What is on record has no secrets in it."""

    console: Console
    run_id: str

    def tell(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Record):
                self._record(item)

    def _record(self, record: Record) -> None:
        level, names = TOLD.get(record.type, ("debug", ()))
        if self.console.wants(level):
            fields = codec.encode(record.event) if names else {}
            told = {name: fields[name] for name in names if name in fields}
            about = {"run_id": self.run_id, "agent": record.agent, "key": record.key, "seq": record.seq}
            self.console.say(level, record.type, record.at, **about, **told)
