"""Every event has one JSON form, for ever: golden/<type>.json, both ways."""

import json
from pathlib import Path
from typing import get_args

import pytest

from edge_agent.core.events import PassingEvent, RecordedEvent
from edge_agent.core.ports import Record
from edge_agent.core.usage import Amount
from edge_agent.wire import codec
from tests.wire.event_samples import PASSING, RECORDED

GOLDEN = Path(__file__).parent / "golden"
AT = 1_764_510_796_123


def recorded(event: RecordedEvent) -> Record:
    money = {"s1/r2/a0": Amount(input=120, output=30, usd=0.25)}
    return Record(seq=7, key="s1/r2/k", batch=8, life=0, by="loop", at=AT, agent="assistant", event=event, money=money)


def as_sent(event: RecordedEvent | PassingEvent) -> str:
    if isinstance(event, RecordedEvent):
        return codec.recorded_json(recorded(event), "run-1")
    return codec.passing_json(event, "run-1", AT, "assistant")


@pytest.mark.parametrize("event", [*RECORDED, *PASSING], ids=lambda event: event.type)
def test_the_json_of_an_event_is_its_golden_file(event: RecordedEvent | PassingEvent) -> None:
    golden = json.loads((GOLDEN / f"{event.type}.json").read_text(encoding="utf-8"))
    assert json.loads(as_sent(event)) == golden
    assert list(json.loads(as_sent(event))) == list(golden), "the order of the fields"


@pytest.mark.parametrize("event", RECORDED, ids=lambda event: event.type)
def test_the_golden_file_reads_back_as_the_event(event: RecordedEvent) -> None:
    golden = json.loads((GOLDEN / f"{event.type}.json").read_text(encoding="utf-8"))
    money = golden.pop("money")
    for name in ("seq", "type", "run_id", "at", "agent", "key", "batch", "life"):
        golden.pop(name)
    assert codec.decode(event.type, golden) == event
    assert codec.decode_money(money) == recorded(event).money
    assert codec.decode(event.type, {**golden, "a field of a later version": 1}) == event


def test_every_event_of_the_union_has_one_example_and_one_golden_file() -> None:
    kinds = {kind.__dataclass_fields__["type"].default for kind in (*get_args(RecordedEvent), *get_args(PassingEvent))}
    examples = [event.type for event in (*RECORDED, *PASSING)]
    assert sorted(examples) == sorted(kinds)
    assert {path.stem for path in GOLDEN.glob("*.json")} == kinds


def test_an_unknown_type_is_no_event() -> None:
    with pytest.raises(KeyError):
        codec.decode("run.exploded", {})
