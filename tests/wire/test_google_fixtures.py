"""Streams recorded from Gemini: nothing of them is lost, wherever they are cut, and their signatures go back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from edge_agent.core.messages import AssistantMessage, JsonObject, ToolCall, ToolMessage, ToolSpec, UserMessage
from edge_agent.core.model import (
    CalledTool,
    Finished,
    ModelEvent,
    ModelRequest,
    Opaque,
    ReasoningDelta,
    TextDelta,
    UsageSeen,
)
from edge_agent.core.usage import Usage
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.google import Google
from edge_agent.models.google.answer import GeminiAnswer
from edge_agent.models.source import Source
from tests.conftest import Figure
from tests.wire.google_rules import check

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
FILES = sorted(path.name for path in FIXTURES.glob("google-*.chunks.txt"))
MODEL = "gemini-3-pro-preview"
WEATHER = ("weather", {"location": "San Francisco"})
SCREENS = [("read_screen", {"id": name}) for name in "ABC"]
TEXT = 'There are **3** "r"s in strawberry.\n\n'
# (text, calls, the kept parts without their signatures, which of them are signed, usage)
EXPECTED: dict[str, tuple[str, list[tuple[str, Any]], list[JsonObject], list[bool], Usage]] = {
    "google-reasoning.chunks.txt": (
        f"{TEXT}Here is the breakdown: st**r**awbe**rr**y.",
        [],
        [{"text": 79}, {"text": 0}],
        [False, True],
        Usage(input=9, output=285, reasoning=256),
    ),
    "google-stream-no-args-tool-call.chunks.txt": (
        "",
        [("read_theme", {}), *SCREENS],
        [{"call": True}] * 4,
        [True, False, False, False],
        Usage(input=249, output=241, reasoning=183),
    ),
    "google-text.chunks.txt": (
        f"{TEXT}st**r**awbe**rr**y",
        [],
        [{"text": 55}, {"text": 0}],
        [False, True],
        Usage(input=9, output=208, reasoning=185),
    ),
    "google-tool-call-gemini3.chunks.txt": (
        "",
        [WEATHER],
        [{"call": True}],
        [True],
        Usage(input=29, output=819, reasoning=804),
    ),
    "google-tool-call.chunks.txt": ("", [WEATHER], [{"call": True}], [True], Usage(input=29, output=60, reasoning=45)),
}


def payloads(name: str) -> list[JsonObject]:
    path = FIXTURES / name
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def recorded(name: str) -> bytes:
    """As Gemini frames it."""
    return "".join(f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n" for one in payloads(name)).encode()


def decode(*chunks: bytes) -> list[ModelEvent]:
    answer = GeminiAnswer(Source(model=f"google/{MODEL}", host="h"), provider="google", model=MODEL)
    return [event for chunk in chunks for event in answer.feed(chunk)] + answer.end()


def said(events: list[ModelEvent]) -> tuple[str, str, Usage, list[ModelEvent]]:
    """Text, reasoning, usage and the rest: what must not depend on how the stream was cut."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    usage = [event.usage for event in events if isinstance(event, UsageSeen)][-1]
    return text, reasoning, usage, [event for event in events if isinstance(event, CalledTool | Opaque | Finished)]


def kept(events: list[ModelEvent]) -> list[JsonObject]:
    return next(event.part.data["parts"] for event in events if isinstance(event, Opaque))


def raw_parts(name: str) -> list[JsonObject]:
    """The parts of the recording, read without any of our code."""
    return [part for one in payloads(name) for part in one["candidates"][0]["content"]["parts"]]


def signed_of(parts: list[JsonObject]) -> list[tuple[Any, Any, str]]:
    """What is signed: its text, the name of its call, and the signature."""
    found = [(part.get("text"), part.get("functionCall", {}), part.get("thoughtSignature")) for part in parts]
    return [(text, call.get("name"), signature) for text, call, signature in found if signature]


def test_every_recording_has_its_expectations(figure: Figure) -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"the recorded data is not there: {FIXTURES} (set EDGE_AGENT_FIXTURES)")
    assert sorted(EXPECTED) == FILES
    figure(f"recordings of Gemini: {len(FILES)} streams, and one error body in test_google_failures.py")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_is_decoded_without_loss(name: str) -> None:
    text, calls, order, signed, usage = EXPECTED[name]
    events = decode(recorded(name))
    told, reasoning, seen, rest = said(events)
    assert told == text
    raw = raw_parts(name)
    assert reasoning == "".join(part["text"] for part in raw if part.get("thought"))
    assert [(one.name, json.loads(one.arguments)) for one in rest if isinstance(one, CalledTool)] == calls
    assert rest[-1] == Finished(reason="tool-calls" if calls else "stop")
    assert seen == usage
    assert [{key: one[key] for key in one if key != "thoughtSignature"} for one in kept(events)] == order
    assert ["thoughtSignature" in one for one in kept(events)] == signed
    signatures = [part["thoughtSignature"] for part in raw if "thoughtSignature" in part]
    assert [one["thoughtSignature"] for one in kept(events) if "thoughtSignature" in one] == signatures


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_may_be_cut_at_every_byte(name: str, figure: Figure) -> None:
    body = recorded(name)
    whole = said(decode(body))
    for cut in range(len(body)):
        assert said(decode(body[:cut], body[cut:])) == whole
    assert said(decode(*(body[index : index + 1] for index in range(len(body))))) == whole
    figure(f"{name}: cut at {len(body)} places")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_goes_back_as_it_came(name: str) -> None:
    """Part for part with its signature; what Gemini sent as one part in pieces, or without a signature as a thought, is
    put together or left out."""
    events = decode(recorded(name))
    text, _, _, rest = said(events)
    calls = tuple(
        ToolCall(id=f"abcdefgh{number}", name=one.name, arguments=json.loads(one.arguments))
        for number, one in enumerate(one for one in rest if isinstance(one, CalledTool))
    )
    answer = AssistantMessage(text=text, calls=calls, opaque=tuple(one.part for one in rest if isinstance(one, Opaque)))
    results = [ToolMessage(call_id=call.id, name=call.name, text="done", ok=True) for call in calls]
    after = [UserMessage(text="Go on.")] if not calls else []
    tools = tuple(
        ToolSpec(name=name, description="", parameters={"type": "object", "properties": {}})
        for name in dict.fromkeys(call.name for call in calls)
    )
    request = ModelRequest(system="", messages=(UserMessage(text="hi"), answer, *results, *after), tools=tools)
    endpoint = Endpoint(provider="google", base_url="https://generativelanguage.googleapis.com/v1beta")
    body = Google().call(request, endpoint, MODEL).body
    check(MODEL, body)
    parts = body["contents"][1]["parts"]
    assert "".join(part.get("text", "") for part in parts) == text
    told = [part["functionCall"] for part in parts if "functionCall" in part]
    assert [(one["name"], one["args"]) for one in told] == EXPECTED[name][1]
    assert signed_of(parts) == signed_of(raw_parts(name))
