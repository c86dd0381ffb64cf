"""What the console is told of a run, level by level."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from edge_agent import tool
from edge_agent.core.errors import ModelError
from edge_agent.core.hub import Item
from edge_agent.models.scripted import Answer, ScriptedModel
from edge_agent.wire.console import LEVELS, TOLD, Console, LogLevel, RunLines
from tests.unit.loop_kit import Lived, Setting, live
from tests.wire.event_samples import RECORDED


@tool(read_only=True)
async def look(at: str) -> str:
    """Look at it."""
    return f"the {at} is blue"


def lived(*answers: Any) -> Lived:
    return live(
        Setting(model=ScriptedModel(answers=[*answers]), tools=[look], input="look at the barge", max_retries=1)
    )


def lines(items: Sequence[Item], level: LogLevel) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []

    def write(of: LogLevel, line: str) -> None:
        assert "\n" not in line
        written.append(json.loads(line))
        assert written[-1]["level"] == of

    RunLines(Console(level, write, lambda text: text), "run-1").tell(items)
    return written


LOOK = Answer(calls=(("look", {"at": "barge"}),))
BUSY = ModelError("overloaded", "too busy", retryable=True)
WRONG = ModelError("unauthorized", "the key is wrong", retryable=False)


def test_at_info_a_line_says_how_a_run_begins_and_ends_and_what_went_wrong_on_its_way() -> None:
    told = lines(lived(LOOK, BUSY, "It is blue.").items, "info")
    assert [(line["level"], line["event"]) for line in told] == [
        ("info", "run.created"),
        ("info", "run.started"),
        ("warning", "model.failed"),
        ("info", "run.completed"),
    ]
    assert told[0] == {
        "level": "info",
        "at": "2023-11-14T22:13:20.000Z",
        "event": "run.created",
        "run_id": "run-1",
        "agent": "a",
        "key": "run",
        "seq": 1,
        "mode": "direct",
        "models": ["m"],
    }
    assert (told[2]["error"], told[2]["message"]) == ("overloaded", "too busy")
    assert (told[3]["stop_reason"], told[3]["usage"]["output"]) == ("stop", 10)


def test_each_level_adds_to_the_one_before() -> None:
    items = lived(LOOK, BUSY, WRONG).items
    found = {level: lines(items, level) for level in LEVELS}
    assert found["none"] == []
    assert [line["event"] for line in found["error"]] == ["run.failed"]
    assert found["error"][0]["error"]["code"] == "unauthorized"
    assert [line["event"] for line in found["warning"]] == ["model.failed", "model.failed", "run.failed"]
    assert len(found["info"]) == 5
    assert [line["seq"] for line in found["debug"]] == list(range(1, len(found["debug"]) + 1)), "every record"
    result = next(line for line in found["debug"] if line["event"] == "tool.result")
    assert (result["name"], result["ok"], result["key"]) == ("look", True, "s1/r1/c0/result")


def test_nothing_that_was_said_is_told() -> None:
    told = json.dumps(lines(lived(LOOK, "It is blue.").items, "debug"))
    assert not [word for word in ("barge", "blue", "arguments", 'output": "') if word in told]


@pytest.mark.parametrize("kind", TOLD)
def test_what_is_told_of_a_record_is_a_field_of_it(kind: str) -> None:
    event = next(event for event in RECORDED if event.type == kind)
    assert {*TOLD[kind][1]} <= {field.name.removesuffix("_") for field in fields(event)}


def test_a_secret_is_masked_and_what_is_not_known_left_out() -> None:
    written: list[str] = []
    console = Console("error", lambda _, line: written.append(line), lambda text: text.replace("hunter2", "[secret]"))
    console.say("error", "unexpected", 1_000, trace='says "hunter2"\nand ends', run_id=None)
    console.say("warning", "unexpected", 1_000, trace="not written")
    (line,) = written
    assert json.loads(line) == {
        "level": "error",
        "at": "1970-01-01T00:00:01.000Z",
        "event": "unexpected",
        "trace": 'says "[secret]"\nand ends',
    }
