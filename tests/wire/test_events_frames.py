"""Events on their way to clients, and a whole log on its way out."""

import base64
import json
from collections.abc import Sequence

from edge_agent.core.events import Fault, StepTextDelta
from edge_agent.core.hub import Hub
from edge_agent.core.journal import Draft, Journal
from edge_agent.core.ports import Record, StoredFile
from edge_agent.core.usage import Amount
from edge_agent.storage.sql_log import SqlLog
from edge_agent.testing import in_memory_log
from edge_agent.wire import codec, export
from edge_agent.wire.frames import Framer
from tests.contracts.log_contract import created, result


class Clock:
    def now(self) -> int:
        return 1_764_510_796_123


def journal(*drafts: Draft, files: Sequence[StoredFile] = ()) -> Journal:
    made = Journal(in_memory_log(), Clock(), Hub())
    made.append("note", Draft(key="run", event=created()), *drafts, files=files)
    return made


DELTA = StepTextDelta(part="s1/r1/a0", offset=0, delta="é\u2028👍", step=1)


def test_a_recorded_event_has_an_id_and_a_passing_one_has_none() -> None:
    log = journal()
    framer = Framer(run_id="run-1", journal=log)
    recorded, passing = framer.sse([log.last, DELTA]).split("\n\n")[:2]
    assert recorded.startswith("id: 1\nevent: run.created\ndata: {")
    assert passing.startswith("event: step.text-delta\ndata: {")
    assert json.loads(passing.partition("data: ")[2])["delta"] == DELTA.delta


def test_each_event_is_one_json_object_with_the_common_fields() -> None:
    log = journal()
    recorded, passing = (json.loads(text) for text in Framer(run_id="run-1", journal=log).json([log.last, DELTA]))
    assert recorded["seq"] == recorded["batch"] == 1
    for event in (recorded, passing):
        assert event["run_id"] == "run-1"
        assert event["at"] == "2025-11-30T13:53:16.123Z"
        assert event["agent"] == "assistant"
    assert "seq" not in passing
    assert "money" not in recorded


def test_a_long_string_is_cut_for_clients_and_says_where_the_whole_is() -> None:
    log = journal(Draft(key="r", event=result("x" * 70_000, deep={"er": "y" * 70_000})))
    sent = json.loads(codec.recorded_json(log.last, "run-1"))
    assert len(sent["output"]) == len(sent["structured"]["deep"]["er"]) == 1_000
    assert [(c["path"], c["chars"]) for c in sent["cut"]] == [
        (["output"], 70_000),
        (["structured", "deep", "er"], 70_000),
    ]
    for reference in sent["cut"]:
        file = log.log.file(reference["file"])
        assert file is not None
        assert len(file.content) == 70_000
    assert len(codec.recorded_json(log.last, "run-1")) < 4_000


def test_a_log_leaves_with_every_record_whole_every_file_and_who_made_it() -> None:
    amount = {"s1/r1/c0": Amount(tool_calls=1)}
    long = Draft(key="s1/r1/c0/result", event=result("x" * 70_000), money=amount, by="loop")
    log = journal(long, files=[StoredFile(name="a.bin", media_type="image/png", content=b"\x00\xff")])
    assert isinstance(log.log, SqlLog)
    lines = [json.loads(line) for line in export.lines("run-1", log.in_order(), log.log.files())]
    assert lines[0] == {"format": "edge-agent-log/1", "run_id": "run-1"}
    assert [(line["key"], line["by"], line["batch"]) for line in lines[1:3]] == [
        ("run", "note", 2),
        ("s1/r1/c0/result", "loop", 2),
    ]
    assert len(lines[2]["data"]["output"]) == 70_000
    assert lines[2]["money"] == {"s1/r1/c0": {"tool_calls": 1}}
    assert base64.b64decode(lines[3]["base64"]) == b"\x00\xff"
    assert lines[4]["file"].startswith("text-")


def test_a_record_in_words_is_ascii_safe_json() -> None:
    odd = Fault(kind="tool", message='"quotes" \\ \u2028 \x00 \x1f é', action="continued")
    record = Record(seq=1, key="k", batch=1, life=0, by="note", at=0, agent="a", event=odd, money={})
    assert json.loads(codec.recorded_json(record, "r"))["message"] == odd.message
    assert "\n" not in codec.recorded_json(record, "r")
