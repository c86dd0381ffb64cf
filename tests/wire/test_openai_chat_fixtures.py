"""Streams and answers recorded from providers: nothing of them is lost, wherever they are cut."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from edge_agent.core.model import CalledTool, CallGrew, Finished, ModelEvent, ReasoningDelta, TextDelta, UsageSeen
from edge_agent.core.usage import Usage
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.source import Source
from tests.conftest import Figure

FIXTURES = Path(os.environ.get("EDGE_AGENT_FIXTURES", Path(__file__).parents[3] / "shared" / "fixtures")) / "wire"
PROVIDERS = ("alibaba", "azure-model-router", "deepseek", "groq", "mistral", "moonshotai", "openai", "xai")
FILES = sorted(path.name for path in FIXTURES.glob("*") if path.name.startswith(PROVIDERS))
WEATHER = ("weather", {"location": "San Francisco"})
EXPECTED: dict[str, tuple[list[tuple[str, Any]], Usage]] = {
    "alibaba-tool-call.chunks.txt": ([WEATHER], Usage(input=295, output=22)),
    "azure-model-router.1.chunks.txt": ([], Usage(input=15, output=78, reasoning=64)),
    "deepseek-reasoning.json": ([], Usage(input=18, output=345, reasoning=315)),
    "deepseek-tool-call.chunks.txt": ([WEATHER], Usage(input=339, cached=320, output=83, reasoning=39)),
    "deepseek-tool-call.json": ([WEATHER], Usage(input=339, cached=320, output=92, reasoning=48)),
    "groq-tool-call.chunks.txt": ([("weather", {})], Usage(input=210, output=15)),
    "groq-tool-call.json": ([("weather", {})], Usage(input=218, output=15)),
    "mistral-incremental-tool-call.chunks.txt": (
        [("webSearchTool", {"query": "current Berlin weather"})],
        Usage(input=171, cached=128, output=14),
    ),
    "mistral-reasoning.chunks.txt": ([], Usage(input=10, output=46)),
    "mistral-tool-call.chunks.txt": ([WEATHER], Usage(input=124, output=22)),
    "moonshotai-stream.chunks.txt": ([], Usage(input=9, output=12, reasoning=7)),
    "openai-text.json": ([], Usage(input=16, output=363)),
    "xai-text.chunks.txt": ([], Usage(input=12, cached=11, output=291, reasoning=290)),
    "xai-tool-call.chunks.txt": ([WEATHER], Usage(input=291, cached=290, output=222, reasoning=196)),
}


def recorded(name: str) -> bytes:
    path = FIXTURES / name
    if not path.exists():
        pytest.skip(f"the recorded data is not there: {path} (set EDGE_AGENT_FIXTURES)")
    if name.endswith(".json"):
        return path.read_bytes()
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def decode(*chunks: bytes) -> list[ModelEvent]:
    answer = ChatAnswer(Source(model="p/m", host="h"), provider="p")
    return [event for chunk in chunks for event in answer.feed(chunk)] + answer.end()


def said(events: list[ModelEvent]) -> tuple[str, str, Usage, list[ModelEvent]]:
    """Text, reasoning, usage and the rest: what must not depend on how the stream was cut."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    usage = [event.usage for event in events if isinstance(event, UsageSeen)][-1]
    return text, reasoning, usage, [event for event in events if isinstance(event, CalledTool | Finished)]


def raw(body: bytes, *names: str) -> str:
    """The strings of these fields of all deltas or messages, read without any of our code."""
    if body.startswith(b"data:"):
        payloads = [json.loads(line[6:]) for line in body.decode().splitlines() if line]
    else:
        payloads = [json.loads(body)]
    choices = [choice for payload in payloads for choice in payload["choices"]]
    parts: list[dict[str, Any]] = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    return "".join(part[name] for part in parts for name in names if isinstance(part.get(name), str))


def test_the_recorded_data_is_there(figure: Figure) -> None:
    if not FIXTURES.is_dir():
        pytest.skip(f"the recorded data is not there: {FIXTURES} (set EDGE_AGENT_FIXTURES)")
    assert sorted(EXPECTED) == FILES
    cuts = sum(len(recorded(name)) for name in FILES)
    figure(f"{len(FILES)} recordings of chat completions, each cut at every byte: {cuts} cuts, none skipped")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_is_decoded_without_loss(name: str) -> None:
    body = recorded(name)
    text, reasoning, usage, rest = said(decode(body))
    calls, expected_usage = EXPECTED[name]
    assert [(call.name, json.loads(call.arguments)) for call in rest if isinstance(call, CalledTool)] == calls
    assert rest[-1] == Finished(reason="tool-calls" if calls else "stop")
    assert usage == expected_usage
    if name != "mistral-reasoning.chunks.txt":  # its content is a list of parts
        assert text == raw(body, "content")
        assert reasoning == raw(body, "reasoning_content", "reasoning")
    else:
        assert (text, reasoning) == ("2 + 2 = 4", "The user is asking for 2+2. This is basic arithmetic. 2+2=4.")


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recording_may_be_cut_at_every_byte(name: str) -> None:
    body = recorded(name)
    whole = said(decode(body))
    for cut in range(len(body)):
        assert said(decode(body[:cut], body[cut:])) == whole
    assert said(decode(*(body[index : index + 1] for index in range(len(body))))) == whole


@pytest.mark.parametrize("name", [name for name in EXPECTED if name.endswith(".json")])
def test_a_stream_and_the_whole_answer_of_the_same_call_agree_in_kind(name: str) -> None:
    twin = name.replace(".json", ".chunks.txt")
    if twin not in EXPECTED:
        return
    kinds = [{type(event) for event in decode(recorded(one))} - {CallGrew} for one in (name, twin)]
    assert kinds[0] == kinds[1]
