"""What a client sends over the WebSocket of a run: one JSON object a frame, as strict as the bodies over HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from edge_agent.wire.http import Asked, CancelRun, DecideCall, GiveAnswer, Text

HOW = (
    'Send {"id": 1, "type": "cancel"} or cancel_step, or cancel_subagent with a "call_id", '
    '{"id": 2, "type": "message", "message_id": "…", "text": "…"}, '
    '{"id": 3, "type": "answer", "question_id": "…", "answer": "…"} '
    'or {"id": 4, "type": "decision", "call_id": "…", "approved": true}.'
)


class Frame(Asked):
    """`id`: the client's own, which comes back as `ack`."""

    id: Any = None
    type: str


class CancelFrame(Frame, CancelRun):
    """Of the run, or as cancel_step of its open step."""


class CancelSubagentFrame(CancelFrame):
    call_id: str


class MessageFrame(Frame):
    message_id: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    text: Annotated[Text, Field(max_length=100_000)]


class AnswerFrame(Frame, GiveAnswer):
    question_id: str


class DecisionFrame(Frame, DecideCall):
    call_id: str


FRAMES: Mapping[str, type[Frame]] = {
    "cancel": CancelFrame,
    "cancel_step": CancelFrame,
    "cancel_subagent": CancelSubagentFrame,
    "message": MessageFrame,
    "answer": AnswerFrame,
    "decision": DecisionFrame,
}
