"""What Python code gives to a run or a summary, in the forms of the HTTP API: a text or parts, and earlier turns.

The bytes of an image or a file travel with a turn that comes back, so that it can be given again.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from edge_agent.core.attachments import Attachment
from edge_agent.core.errors import Refusal
from edge_agent.core.messages import JsonObject, Turn
from edge_agent.core.ports import StoredFile
from edge_agent.wire.content import parts_of
from edge_agent.wire.http import CompactHistory, StartRun
from edge_agent.wire.refused import checked

Part = Mapping[str, Any]
Task = str | Sequence[Part]
GivenTurn = Turn | Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried(Attachment):
    """With its bytes."""

    content: bytes = field(repr=False)


def start_of(task: Task, history: Sequence[GivenTurn], metadata: JsonObject | None) -> StartRun:
    """Raises Refusal (422) with the field that is wrong."""
    return checked(StartRun, {"input": _with_base64(task), "history": _fields_of(history), "metadata": metadata})


def turns_of(history: Sequence[GivenTurn]) -> tuple[Turn, ...]:
    """With the bytes of what they hold. Raises Refusal (422) with the field that is wrong."""
    asked = checked(CompactHistory, {"history": _fields_of(history)}).history if history else ()
    return tuple(turn for one in asked for turn in carrying([one.turn()], one.said.files))


def carrying(turns: Iterable[Turn], files: Iterable[StoredFile]) -> tuple[Turn, ...]:
    """The turns, with the bytes of what they hold. `files`: all of it."""
    content = {file.name: file.content for file in files}
    return tuple(
        replace(turn, attachments=tuple(_carried(one, content[one.name]) for one in turn.attachments))
        if turn.attachments
        else turn
        for turn in turns
    )


def _carried(one: Attachment, content: bytes) -> Carried:
    return Carried(
        name=one.name, media_type=one.media_type, bytes=one.bytes, title=one.title, pages=one.pages, content=content
    )


def _fields_of(history: Sequence[GivenTurn]) -> list[object]:
    return [_fields(turn, f"history.{number}") for number, turn in enumerate(history)]


def _fields(turn: GivenTurn, place: str) -> object:
    if not isinstance(turn, Turn):
        return {**turn, "parts": _with_base64(turn["parts"])} if "parts" in turn else turn
    if not turn.attachments:
        return {"role": turn.role, "text": turn.text}
    content = {one.name: _base64(one.content) for one in turn.attachments if isinstance(one, Carried)}
    if missing := [one.name for one in turn.attachments if one.name not in content]:
        message = (
            f"`{place}` names {', '.join(missing)} and does not hold the bytes. Give the turn as "
            '{"role": "user", "parts": […]} with the bytes in `data`.'
        )
        raise Refusal(422, "missing_file", message, field=place)
    return {"role": turn.role, "parts": list(parts_of(turn.text, turn.attachments, content))}


def _with_base64(parts: object) -> object:
    return [_encoded(part) for part in cast("Sequence[object]", parts)] if isinstance(parts, list | tuple) else parts


def _encoded(part: object) -> object:
    if not isinstance(part, Mapping):
        return part
    said = cast("Mapping[str, object]", part)
    data = said.get("data")
    return {**said, "data": _base64(data)} if isinstance(data, bytes) else said


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
