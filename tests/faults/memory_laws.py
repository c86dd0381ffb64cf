"""What must hold of a simulated run, whatever was killed: by itself, and beside the same run undisturbed."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edge_agent.core import keys
from edge_agent.core.events import (
    ModelAnswered,
    ModelFailed,
    StepCompleted,
    ToolCalled,
    ToolResult,
    ToolUnknown,
)
from edge_agent.core.usage import Amount
from edge_agent.testing import assert_sound
from tests.faults.memory_world import LOST, World

REPEATABLE = ("read", "flaky", "big", "doubt_retry", "doubt_ask")


def check(world: World) -> None:
    assert not world.faults, world.faults
    records = world.records
    assert_sound(records)
    for (name, _), times in world.happened.items():
        assert name in REPEATABLE or times == 1, f"{name} happened {times} times"
    requested = {r.key: r.money[r.key] for r in records if r.type == "model.requested"}
    for record in records:
        if isinstance(record.event, ModelFailed) and record.event.error in LOST:
            part = record.key.removesuffix("/end")
            assert record.money == {part: requested[part]}, "a lost attempt costs its reserve"
    calls = {r.key.partition("/call")[0]: r.event for r in records if isinstance(r.event, ToolCalled)}
    by_key = Counter(call.idempotency_key for call in calls.values())
    assert set(by_key.values()) <= {1}, "two calls share an idempotency key"
    settled = world.money(ModelAnswered, ModelFailed) + Amount(tool_calls=len(calls))
    assert world.state.spent == settled, (world.state.spent, settled)
    for follower in world.followers or ():
        follower.assert_heard_all(records)


def compare(calm: World, world: World) -> int:
    """The same as the undisturbed run, but for what was lost; 1 where an outcome became unknown."""
    check(world)
    unknown = unknowns(world) - unknowns(calm)
    if unknown:
        first = min(round_number(key) for key, _ in unknown)
        before = {key: event for key, event in told(calm).items() if 0 < round_number(key) < first}
        now = {key: event for key, event in told(world).items() if 0 < round_number(key) < first}
        assert now == before
        return 1
    if world.scenario.same_when_lost or not any(r.type == "model.failed" for r in world.records):
        assert told(world) == told(calm), difference(told(calm), told(world))
        assert world.records[-1].type == calm.records[-1].type
        assert {key[0] for key in world.happened} == {key[0] for key in calm.happened}
        assert world.money(ModelAnswered) == calm.money(ModelAnswered)
    else:
        assert world.records[-1].type == calm.records[-1].type
    return 0


def loop_made(world: World) -> set[tuple[str, str]]:
    return {(record.key, record.type) for record in world.records if record.by == "loop"}


def unknowns(world: World) -> set[tuple[str, str]]:
    """(key, what the model is told) for each call whose answer was lost."""
    lost = [(r.key, r.event) for r in world.records if isinstance(r.event, ToolUnknown) and r.event.cause == "lost"]
    return {(key, event.message) for key, event in lost}


def round_number(key: str) -> int:
    return keys.round_of(key) or 0


def told(world: World) -> dict[str, Any]:
    """The events by their keys, without times, attempts, repeats, and what only a loss or a retry brings."""
    prompts = {r.key: r.event.prompt_hash for r in world.records if r.event.type == "model.requested"}
    said: dict[str, Any] = {}
    for record in world.records:
        event, key = record.event, record.key
        if event.type in LEFT_OUT or REPEATED.search(key) or ("/ask/" in key and "/ask/0" not in key):
            continue
        if isinstance(event, ModelAnswered):
            said[f"{key.rpartition('/a')[0]}/prompt"] = prompts[key.removesuffix("/end")]
            key, event = key.rpartition("/a")[0] + "/answered", replace(event, latency_ms=0)
        elif event.type == "model.rejected":
            key, event = key.rpartition("/a")[0] + "/rejected", replace(event, attempt=0)
        elif isinstance(event, ToolResult | StepCompleted):
            event = replace(event, duration_ms=0)
        elif event.type in ("question.asked", "tool.approval-requested"):
            event = replace(event, expires_at=0)
        if not key.endswith("/fault/after_tool"):  # a kill between the record and the hook leaves the hook out
            said[key] = event
    return said


REPEATED = re.compile("/(call|approval|decision)/")
LEFT_OUT = frozenset({"model.requested", "model.failed", "timer", "run.started", "run.waiting"})


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    only = sorted(set(one) ^ set(other))
    others = [f"{key}: {one[key]} / {other[key]}" for key in one if key in other and one[key] != other[key]]
    return f"only in one: {only}; {others[:2]}"
