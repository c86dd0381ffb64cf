"""Streams of chat completions, and what is read from them, for tests."""

import json
from typing import Any

import pytest

from edge_agent.core.errors import ModelError
from edge_agent.core.model import (
    CalledTool,
    CallGrew,
    ModelEvent,
    TextDelta,
)
from edge_agent.models.openai_chat.answer import ChatAnswer
from edge_agent.models.source import Source

SOURCE = Source(model="test/model", host="models.example.com", secrets=("sk-secret-key",))
Json = dict[str, Any]


def answer(**options: Any) -> ChatAnswer:
    return ChatAnswer(SOURCE, provider="test", **options)


def read(body: bytes, **options: Any) -> list[ModelEvent]:
    """All but what is only there to be measured."""
    one = answer(**options)
    return [event for event in one.feed(body) + one.end() if not isinstance(event, CallGrew)]


def stream(*payloads: Json | str, done: bool = True) -> bytes:
    lines = [payload if isinstance(payload, str) else f"data: {json.dumps(payload)}\n\n" for payload in payloads]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(name: Any = None, arguments: Any = None, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def called(*deltas: list[Json]) -> list[tuple[str, str]]:
    events = read(stream(*(chunk({"tool_calls": calls}) for calls in deltas), chunk(finish="tool_calls")))
    return [(event.name, event.arguments) for event in events if isinstance(event, CalledTool)]


def text_of(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def failure(body: bytes) -> ModelError:
    with pytest.raises(ModelError) as caught:
        read(body)
    return caught.value
