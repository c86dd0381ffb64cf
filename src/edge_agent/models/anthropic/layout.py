"""The order of an answer's blocks, kept so that the answer can be shown to its model again exactly as it was.

What only the provider understands (thoughts with their signatures, what ran on its side) is kept as it came. Text and
calls stand in the message already; the layout says only where: {"text": characters} and {"call": position}.
"""

from collections.abc import Iterable
from typing import Any, cast

from edge_agent.core.messages import AssistantMessage, JsonObject, ToolCall

THOUGHTS = ("thinking", "redacted_thinking")


def data_of(entries: list[JsonObject]) -> JsonObject:
    """What an opaque part keeps; empty where the order says nothing that the message does not."""
    return {"blocks": entries} if any("type" in entry for entry in entries) else {}


def blocks_of(message: AssistantMessage, provider: str, model: str, *, thinks: bool) -> list[JsonObject]:
    """The content of an assistant turn. thinks: the model may think now; where it may not, thoughts are refused."""
    part = next((part for part in message.opaque if part.is_for(provider, model)), None)
    blocks = _restored(message, cast(list[Any], part.data.get("blocks", [])) if part else [])
    if not thinks:
        blocks = [block for block in blocks if block["type"] not in THOUGHTS]
    while blocks and blocks[-1]["type"] in THOUGHTS:  # refused as the last one
        blocks.pop()
    return blocks


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _restored(message: AssistantMessage, layout: Iterable[Any]) -> list[JsonObject]:
    entries = [cast(JsonObject, entry) for entry in layout if isinstance(entry, dict)]
    text, calls = message.text, dict(enumerate(message.calls))
    whole = sum(entry.get("text", 0) for entry in entries if "type" not in entry) == len(text)
    blocks: list[JsonObject] = []
    for entry in entries:
        if "type" in entry:
            blocks.append(entry)
        elif "text" in entry:
            length = entry["text"] if whole else len(text)  # a text that was changed since stands where it began
            blocks += _text(text[:length])
            text = text[length:]
        elif entry.get("call") in calls:
            blocks.append(_call(calls.pop(entry["call"])))
    return [*blocks, *_text(text), *map(_call, calls.values())]


def _text(text: str) -> list[JsonObject]:
    """Nothing for a blank text, which is refused."""
    return [text_block(text)] if text.strip() else []


def _call(call: ToolCall) -> JsonObject:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
