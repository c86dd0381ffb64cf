"""A child's record on its way to the followers of its parent: whole where it is small, clipped where it is not."""

import json
from typing import Any

from edge_agent.core.events import RecordedEvent, ToolCalled, ToolResult
from edge_agent.core.ports import Record
from edge_agent.wire.codec import recorded_json
from edge_agent.wire.forwarded import DEEPEST, LONGEST, MOST, forwarded


def recorded(event: RecordedEvent) -> Record:
    return Record(seq=7, key="s1/r1/c0/call", batch=7, life=0, by="loop", at=0, agent="a", event=event, money={})


def called(**arguments: Any) -> ToolCalled:
    return ToolCalled(
        call_id="c",
        name="search",
        arguments=arguments,
        idempotency_key="k",
        read_only=True,
        safe_to_repeat=True,
        on_unknown="report",
        step=1,
        round=1,
    )


def test_what_is_small_is_told_as_the_childs_own_followers_see_it() -> None:
    record = recorded(called(q="Rome", limits=[1, {"é": None}]))
    assert forwarded(record, "sub-1") == json.loads(recorded_json(record, "sub-1"))


def test_long_strings_are_clipped_wherever_they_stand() -> None:
    event = forwarded(recorded(called(q="x" * 5_000, more=[{"text": "y" * 5_000}])), "sub-1")
    assert event["arguments"]["q"] == "x" * (LONGEST - 1) + "…"
    assert len(event["arguments"]["more"][0]["text"]) == LONGEST
    result = ToolResult(
        call_id="c", name="search", ok=True, output="z" * 9_000, model_chars=9_000, duration_ms=1, step=1, round=1
    )
    assert len(forwarded(recorded(result), "sub-1")["output"]) == LONGEST


def test_what_is_very_deep_is_cut_and_of_what_is_very_much_the_head_is_shown() -> None:
    deep: Any = "bottom"
    for _ in range(DEEPEST + 3):
        deep = [deep]
    assert "bottom" not in json.dumps(forwarded(recorded(called(deep=deep)), "sub-1"))
    much = forwarded(recorded(called(**{f"a{n}": "x" * LONGEST for n in range(60)})), "sub-1")
    assert len(json.dumps(much)) < MOST
    assert (much["seq"], much["type"], much["name"], much["clipped"]) == (7, "tool.called", "search", True)
