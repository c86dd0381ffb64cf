"""What an answer says, whatever wire it comes by and wherever it is cut."""

from dataclasses import dataclass

from edge_agent.core.errors import ModelError
from edge_agent.core.events import FinishReason
from edge_agent.core.messages import JsonObject, ToolSpec, UserMessage
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
from edge_agent.models.adapter import Adapter
from edge_agent.models.endpoint import Endpoint
from edge_agent.models.source import Source

TOOLS = tuple(ToolSpec(name=name, description=name, parameters={"type": "object"}) for name in ("f", "g"))
ASKED = ModelRequest(system="", messages=(UserMessage(text="hi"),), tools=TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One answer. kept: the data of its opaque part. error: how it failed and whether to try again; what was said
    before is of no use then."""

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    usage: Usage | None = None
    kept: JsonObject | None = None
    finish: FinishReason = "stop"
    error: tuple[str, bool] | None = None


def heard(adapter: Adapter, endpoint: Endpoint, model: str, *chunks: bytes) -> Heard:
    answer = adapter.answer(ASKED, endpoint, Source.of(endpoint, model))
    events: list[ModelEvent] = []
    try:
        for chunk in chunks:
            events += answer.feed(chunk)
        events += answer.end()
    except ModelError as error:
        return Heard(error=(error.kind, error.retryable))
    assert isinstance(events[-1], Finished)
    parts = [event.part for event in events if isinstance(event, Opaque)]
    usages = [event.usage for event in events if isinstance(event, UsageSeen)]
    return Heard(
        text="".join(event.text for event in events if isinstance(event, TextDelta)),
        reasoning="".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        calls=tuple((event.name, event.arguments) for event in events if isinstance(event, CalledTool)),
        usage=usages[-1] if usages else None,
        kept=parts[0].data if parts else None,
        finish=events[-1].reason,
    )


def assert_heard_wherever_cut(adapter: Adapter, endpoint: Endpoint, model: str, body: bytes, expected: Heard) -> None:
    """Whole, in two pieces cut at each byte, and byte by byte."""
    for cut in range(len(body) + 1):
        assert heard(adapter, endpoint, model, body[:cut], body[cut:]) == expected, f"cut at byte {cut}"
    assert heard(adapter, endpoint, model, *(body[at : at + 1] for at in range(len(body)))) == expected
