"""kill -9 at a moment of a run: how it is dealt, and what must hold of the run's effects wherever it hit."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.faults.stand import Stand
from tests.workerd.client import Event


def how_many(config: pytest.Config, *, few: int, long_draw: int) -> int:
    return config.getoption("--kills") or (long_draw if config.getoption("--long-draw") else few)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One kill, `later` seconds after so many effects. everything: not the Worker's runtime alone. quiet: afterwards
    nobody asks an object anything until the run has ended."""

    everything: bool
    quiet: bool
    effects: int
    later: float

    def deal(self, stand: Stand) -> datetime:
        """To be called after the effects. Returns when it was."""
        time.sleep(self.later)  # the moment of the kill, not a wait for anything
        killed = datetime.now(UTC)
        stand.kill_everything() if self.everything else stand.kill_runtime()
        return killed


def intents_of(records: list[Event], effects: Sequence[Mapping[str, Any]]) -> dict[str, list[Event]]:
    """The intents by their idempotency key. Every effect has one on record; what is unsafe to repeat happened at most
    once, what is safe as often as it was begun."""
    intents: dict[str, list[Event]] = {}
    for record in records:
        if record["type"] == "tool.called":
            intents.setdefault(record["idempotency_key"], []).append(record)
    happened = Counter(effect["key"] for effect in effects)
    assert set(happened) <= set(intents), "an effect without a record"
    for key, begun in intents.items():
        for intent in begun:
            assert happened[key] <= (len(begun) if intent["safe_to_repeat"] else 1), intent["key"]
    return intents
