"""docs/events.md names every event and every one of its own fields, and no others; so do its trees."""

import dataclasses
import re
from typing import Any, get_args

from edge_agent.core import events as e
from edge_agent.core.attachments import Attachment
from edge_agent.core.compaction import Compaction
from edge_agent.core.messages import AssistantMessage, OpaquePart, ToolCall, Turn
from edge_agent.core.skills import SkillEntry
from edge_agent.core.usage import Amount, Usage
from tests.docs.documents import ROOT, blocks, section

DOCUMENT = ROOT / "docs" / "events.md"
GROUPS = {
    "The run": "run_events",
    "Rounds and model calls": "round_events",
    "Tools and people": "tool_events",
    "Skills": "skill_events",
    "Subagents": "subagent_events",
    "Plans and messages": "plan_events",
    "Passing": "passing_events",
}


def _type(event: Any) -> str:
    return event.__dataclass_fields__["type"].default


EVENTS = {_type(event): event for event in get_args(e.Event)}
SHAPES: dict[str, tuple[Any, ...]] = {
    "USAGE": (Usage,),
    "AMOUNT": (Amount,),
    "ERROR": (e.ErrorInfo,),
    "FORKED FROM": (e.ForkedFrom,),
    "PARENT": (e.ParentRun,),
    "TURN": (Turn,),
    "COMPACTION": (Compaction,),
    "FOLDING": (e.Folding,),
    "OFFERED TOOLS": (e.OfferedTools,),
    "DELIVERED MESSAGE": (e.DeliveredMessage,),
    "ANSWER": (AssistantMessage, ToolCall, OpaquePart),
    "ATTACHMENT": (Attachment,),
    "FILE": (e.FileRef,),
    "PLAN": (e.Plan, e.PlanStep),
    "OUTCOME": (e.CallOutcome,),
    "SKILL": (SkillEntry,),
}
PASSING = {_type(event) for event in get_args(e.PassingEvent)}
Fields = dict[str, bool]


def _said(title: str) -> dict[str, Fields]:
    """Of each event of a section its fields, and whether one may be left out."""
    said: dict[str, Fields] = {}
    for line in section(DOCUMENT, title).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if kind := re.fullmatch(r"`([a-z.-]+)`", cells[0]):
            assert kind[1] not in said
            said[kind[1]] = {}
        elif said and line.startswith("| |"):
            fields = re.findall(r"`(\w+)`(\?)?", cells[1])
            assert fields, line
            assert not {name for name, _ in fields} & set(said[[*said][-1]]), line
            said[[*said][-1]] |= {name: bool(mark) for name, mark in fields}
    return said


def _own(event: Any) -> Fields:
    fields = (field for field in dataclasses.fields(event) if field.name != "type")
    return {field.name.rstrip("_"): field.default is None for field in fields}


def test_every_event_stands_in_its_group_with_exactly_its_own_fields() -> None:
    for title, module in GROUPS.items():
        events = {kind: event for kind, event in EVENTS.items() if event.__module__.endswith(f".{module}")}
        assert _said(title) == {kind: _own(event) for kind, event in events.items()}, title
    assert {kind for title in GROUPS for kind in _said(title)} == set(EVENTS)


def test_recorded_and_passing_events_are_told_apart() -> None:
    assert set(_said("Passing")) == PASSING
    assert not {_type(event) for event in get_args(e.RecordedEvent)} & PASSING


def test_the_trees_name_events_there_are_and_those_that_pass_in_parentheses() -> None:
    trees = [block.text for block in blocks(DOCUMENT) if block.language == "text"]
    assert len(trees) == 2
    prose = section(DOCUMENT, "In which order")
    named = set(re.findall(r"[a-z-]+\.[a-z-]+[a-z]|\bboundary\b|\bhandoff\b|\btimer\b", prose))
    passing = set(re.findall(r"\(([a-z-]+(?:\.[a-z-]+)?)\)", "".join(trees)))
    assert passing == PASSING
    assert named | passing | {"fault"} == set(EVENTS)


def test_what_maps_to_an_event_maps_to_one_there_is() -> None:
    here = section(DOCUMENT, "Coming from another agent")
    rows = re.findall(r"^\| ([a-z.-]+) \| (.+) \|$", here, re.MULTILINE)
    rows = [(there, answer) for there, answer in rows if there not in ("there", "---")]
    assert len(rows) == 10 + 34
    for there, answer in rows:
        named = set(re.findall(r"`([a-z.-]+)`", answer))
        assert named or answer.startswith("not in this version"), there
        assert named <= set(EVENTS), there


def test_the_fields_of_what_is_in_capitals_are_exactly_its_own() -> None:
    rows = re.findall(r"^\| ([A-Z ]+) \| (.+) \|$", section(DOCUMENT, "What they are made of"), re.MULTILINE)
    assert {name for name, _ in rows} == {*SHAPES, "LIMITS"}
    for name, told in rows:
        if name in SHAPES:
            own = {field.name for shape in SHAPES[name] for field in dataclasses.fields(shape)}
            assert set(re.findall(r"`(\w+)`", told)) == own, name
    tables = "".join(section(DOCUMENT, title) for title in GROUPS)
    used = set(re.findall(r"\b[A-Z]{3,}(?: [A-Z]{3,})*", tables)) - {"JSON", "MCP"}
    assert used == {*SHAPES, "LIMITS"}
