"""Streams and answers recorded from Anthropic: nothing of them is lost, wherever they are cut."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from edge_agent.core.events import FinishReason
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    Finished,
    ModelEvent,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.models.anthropic.answer import MessagesAnswer
from edge_agent.models.source import Source
from tests.conftest import Figure

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
PROVIDERS = ("anthropic", "duplicate-message-start")
FILES = sorted(path.name for path in FIXTURES.glob("*") if path.name.startswith(PROVIDERS))
FORECAST = {"elements": [{"location": "San Francisco", "temperature": 58, "condition": "sunny"}]}
Calls = list[tuple[str, Any]]
ISSUES: tuple[str, Any] = ("updateIssueList", {})
# calls, how it finished, usage, and how many thoughts are kept for the model
EXPECTED: dict[str, tuple[Calls, FinishReason, Usage, int]] = {
    "anthropic-claude-opus-5-reasoning-high.1.json": ([], "stop", Usage(input=51, output=1699, reasoning=139), 1),
    "anthropic-clear-thinking.1.chunks.txt": ([], "stop", Usage(input=69, output=53), 1),
    "anthropic-clear-tool-uses.1.chunks.txt": ([], "stop", Usage(input=859, output=122), 0),
    "anthropic-json-tool.1.chunks.txt": ([("json", FORECAST)], "tool-calls", Usage(input=849, output=47), 0),
    "anthropic-message-delta-input-tokens.chunks.txt": ([], "stop", Usage(input=61, output=2), 0),
    "anthropic-refusal.chunks.txt": ([], "filtered", Usage(input=18, output=5), 0),
    "anthropic-refusal.json": ([], "filtered", Usage(input=18, output=5), 0),
    "anthropic-text.chunks.txt": ([], "stop", Usage(input=12, output=30), 0),
    "anthropic-text.json": ([], "stop", Usage(input=12, output=29), 0),
    "anthropic-tool-no-args.chunks.txt": ([ISSUES], "tool-calls", Usage(input=565, output=48), 0),
    "anthropic-tool-no-args.json": ([ISSUES], "tool-calls", Usage(input=602, output=93), 0),
    "duplicate-message-start.chunks.txt": ([], "stop", Usage(input=17, output=227), 0),
}
Said = tuple[str, str, Usage, list[ModelEvent]]


def recorded(name: str) -> bytes:
    path = FIXTURES / name
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    if name.endswith(".json"):
        return path.read_bytes()
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return "".join(f"event: {json.loads(line)['type']}\ndata: {line}\n\n" for line in lines).encode()


def decode(*chunks: bytes) -> list[ModelEvent]:
    answer = MessagesAnswer(Source(model="p/m", host="h"), provider="p", model="m")
    return [event for chunk in chunks for event in answer.feed(chunk)] + answer.end()


def said(events: list[ModelEvent]) -> Said:
    """Text, reasoning, usage and the rest: what must not depend on how the stream was cut."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    usage = [event.usage for event in events if isinstance(event, UsageSeen)][-1]
    return text, reasoning, usage, [event for event in events if isinstance(event, CalledTool | Opaque | Finished)]


def raw(body: bytes, name: str) -> str:
    """The strings of this field of all deltas, blocks and explanations, read without any of our code."""
    payloads = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
    told: list[dict[str, Any]] = [payload.get("delta", {}) for payload in payloads]
    if not payloads:
        message = json.loads(body)
        told = [*message["content"], message]
    if name == "explanation":
        told = [one.get("stop_details") or {} for one in told]
    return "".join(one[name] for one in told if isinstance(one.get(name), str))


def test_the_recorded_data_is_there(figure: Figure) -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"the recorded data is not there: {FIXTURES} (set EDGE_AGENT_FIXTURES)")
    assert sorted(EXPECTED) == FILES
    figure(f"{len(FILES)} recordings of Anthropic, {sum(len(recorded(name)) for name in FILES)} bytes, none skipped")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_is_decoded_without_loss(name: str) -> None:
    body = recorded(name)
    text, reasoning, usage, rest = said(decode(body))
    calls, finished, expected_usage, thoughts = EXPECTED[name]
    assert [(call.name, json.loads(call.arguments)) for call in rest if isinstance(call, CalledTool)] == calls
    assert rest[-1] == Finished(reason=finished)
    assert usage == expected_usage
    assert text == (raw(body, "text") or raw(body, "explanation"))
    assert reasoning == raw(body, "thinking")
    kept = [block for part in rest if isinstance(part, Opaque) for block in part.part.data["blocks"] if "type" in block]
    assert len(kept) == thoughts
    assert "".join(block["signature"] for block in kept) == raw(body, "signature")
    assert "".join(block["thinking"] for block in kept) == reasoning


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_may_be_cut_at_every_byte(name: str) -> None:
    body = recorded(name)
    whole = said(decode(body))
    for cut in range(len(body)):
        assert said(decode(body[:cut], body[cut:])) == whole
    assert said(decode(*(body[index : index + 1] for index in range(len(body))))) == whole


def test_a_stream_and_the_whole_answer_of_the_same_call_agree_in_kind() -> None:
    twins = [name for name in EXPECTED if name.endswith(".json") and name.replace(".json", ".chunks.txt") in EXPECTED]
    assert len(twins) == 3
    for name in twins:
        both = [decode(recorded(one)) for one in (name, name.replace(".json", ".chunks.txt"))]
        kinds = [{type(event) for event in events} - {CallGrew} for events in both]
        assert kinds[0] == kinds[1], name
        assert both[0][-1] == both[1][-1], name
