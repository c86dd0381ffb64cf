"""An exported log, written and read back: exactly the same, or refused with the line that is wrong."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_agent.core.errors import Refusal
from edge_agent.core.events import RecordedEvent, RunCreated, ToolResult
from edge_agent.core.limits import Limits
from edge_agent.core.ports import Record, StoredFile
from edge_agent.core.usage import Amount
from edge_agent.storage.sql_log import SqlLog
from edge_agent.wire import export
from tests.faults.memory_world import RUN, World
from tests.faults.test_memory_kills import RICH, SCENARIOS
from tests.faults.test_memory_planned import PLANNED
from tests.wire.event_samples import RECORDED

AT = 1_764_510_796_123


def written(records: list[Record], *files: StoredFile) -> str:
    return "".join(f"{line}\n" for line in export.lines("run-1", records, files))


def first() -> Record:
    created = RunCreated(version=1, input="go", agent_name="a", models=("m",), limits=Limits())
    return Record(seq=1, key="run", batch=1, life=0, by="note", at=AT, agent="a", event=created, money={})


def one_of_each() -> list[Record]:
    """A log with every recorded event in it."""
    others = [event for event in RECORDED if event.type != "run.created"]
    return [first(), *(one(seq, event) for seq, event in enumerate(others, start=2))]


def one(seq: int, event: RecordedEvent) -> Record:
    money = {f"k{seq}": Amount(input=seq, output=1, reasoning=2, tool_calls=3, usd=0.1 + 0.2)}
    return Record(
        seq=seq, key=f"k{seq}", batch=seq, life=0, by="loop", at=AT + seq, agent="a", event=event, money=money
    )


def refused(text: str | bytes) -> str:
    with pytest.raises(Refusal) as refusal:
        export.read(text)
    assert (refusal.value.status, refusal.value.code) == (422, "not_a_log")
    return refusal.value.message


# -- round trips
def test_every_event_reads_back_as_it_was_written() -> None:
    records = one_of_each()
    back = export.read(written(records))
    assert list(back.records) == records
    assert back.run_id == "run-1"
    assert back.files == ()


@pytest.mark.parametrize("scenario", [RICH, PLANNED, *SCENARIOS[-4:]], ids=lambda scenario: scenario.name)
def test_the_log_of_a_run_reads_back_with_its_long_strings_and_files(scenario: Any) -> None:
    world = World(scenario).lived()
    assert isinstance(world.object.log, SqlLog)
    files = list(world.object.log.files())
    text = "".join(f"{line}\n" for line in export.lines(RUN, world.records, files))
    back = export.read(text)
    assert list(back.records) == world.records
    assert list(back.files) == files
    assert "".join(f"{line}\n" for line in export.lines(RUN, back.records, back.files)) == text


def test_a_string_of_megabytes_and_a_file_of_any_bytes_come_back_whole() -> None:
    event = next(event for event in RECORDED if isinstance(event, ToolResult))
    long = replace(event, output="€ \n\x00\U0001f600" * 400_000)
    record = replace(first(), seq=2, batch=2, key="s1/r1/c0/result", event=long)
    file = StoredFile(name="a.bin", media_type="application/octet-stream", content=bytes(range(256)) * 5_000)
    back = export.read(written([first(), record], file).encode())
    assert back.records[1] == record
    assert back.files == (file,)


@given(at=st.integers(min_value=0, max_value=4_102_444_800_000), text=st.text(), usd=st.floats(0, 1e9))
def test_any_time_text_and_sum_come_back_exactly(at: int, text: str, usd: float) -> None:
    event = RunCreated(version=1, input=text, agent_name="a", models=("m",), limits=Limits())
    record = replace(first(), at=at, event=event, money={"k": Amount(usd=usd)})
    assert export.read(written([record])).records == (record,)


def test_an_array_of_the_lines_is_as_good() -> None:
    records = one_of_each()
    array = json.dumps([json.loads(line) for line in written(records).splitlines()])
    assert list(export.read(array).records) == records


def test_blank_lines_and_a_missing_newline_at_the_end_are_no_fault() -> None:
    text = written([first()]).replace("\n", "\r\n\n").rstrip()
    assert export.read(text).records == (first(),)


# -- what is no log
def test_what_is_no_log_is_refused_with_its_line() -> None:
    good = written(one_of_each()).splitlines()
    assert "no record" in refused("")
    assert "no record" in refused(good[0])
    assert "first line" in refused(good[1])
    assert "first line" in refused('{"format": "edge-agent-log/9", "run_id": "x"}')
    assert "line 2" in refused(f"{good[0]}\nnonsense")
    assert "line 2" in refused(f"{good[0]}\n[]")
    assert "line 3" in refused("\n".join([*good[:2], good[3]]))  # a record is missing
    assert "line 3" in refused("\n".join([*good[:2], good[1]]))  # or there twice
    assert "line 2" in refused("\n".join([good[0], good[2].replace('"seq":2', '"seq":1')]))
    assert "NaN" in refused(f'{good[0]}\n{{"seq": NaN}}')


@pytest.mark.parametrize(
    "field,value",
    [
        ("by", "someone"),
        ("seq", "1"),
        ("seq", True),
        ("batch", -1),
        ("life", 1.5),
        ("at", "yesterday"),
        ("at", "2025-11-30T13:53:16"),
        ("at", 5),
        ("type", "run.exploded"),
        ("type", []),
        ("key", None),
        ("money", []),
        ("money", {"k": {"gold": 1}}),
        ("data", {}),
        ("data", "text"),
        ("agent", 1),
    ],
)
def test_a_record_with_a_wrong_field_is_refused(field: str, value: object) -> None:
    header, line = written([first()]).splitlines()
    assert "line 2" in refused(f"{header}\n{json.dumps({**json.loads(line), field: value})}")


@pytest.mark.parametrize("file", [{"base64": "?"}, {"base64": "YQ==", "media_type": 1}, {"media_type": "a/b"}])
def test_a_file_that_is_none_is_refused(file: dict[str, object]) -> None:
    assert "line 3" in refused(written([first()]) + json.dumps({"file": "x", **file}))


def test_a_log_that_was_cut_inside_a_batch_is_refused() -> None:
    assert "cut off" in refused(written([replace(first(), batch=2)]))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_and_never_more_than_that(data: bytes) -> None:
    refused(data)
