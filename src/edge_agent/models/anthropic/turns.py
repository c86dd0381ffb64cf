"""The conversation as turns that alternate, each answer to a call where it has to stand."""

import base64
from collections.abc import Iterator, Mapping, Sequence

from edge_agent.core.attachments import PDF, Attachment, pieces
from edge_agent.core.messages import AssistantMessage, JsonObject, Message, MessageWithFiles, ToolMessage, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.anthropic.layout import THOUGHTS, blocks_of, text_block

NOTHING = "(nothing was said)"
UNANSWERED = "No result of this call is known."


def turns_of(request: ModelRequest, provider: str, model: str, *, thinks: bool) -> list[JsonObject]:
    """User and assistant turns, a user's first. The results of all calls of an answer come first in the turn behind
    it, in the order of the calls; what was said meanwhile follows them."""
    turns: list[JsonObject] = []
    for answer, heard in _exchanges(request.messages):
        if answer is not None:
            _say(turns, "assistant", blocks_of(answer, provider, model, thinks=thinks))
        _say(turns, "user", [*_results(answer, heard), *_texts(answer, heard, request.files)])
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [text_block(NOTHING)]})
    return turns


def opens_without_thought(turns: Sequence[JsonObject]) -> bool:
    """Whether calls are being answered that began without a thought."""
    opening: JsonObject | None = None
    for turn in turns:
        if turn["role"] == "assistant":
            opening = opening or turn
        elif not any(block["type"] == "tool_result" for block in turn["content"]):
            opening = None
    return opening is not None and opening["content"][0]["type"] not in THOUGHTS


def _exchanges(messages: Sequence[Message]) -> Iterator[tuple[AssistantMessage | None, list[Message]]]:
    """Each answer with what was said between it and the next one."""
    answer: AssistantMessage | None = None
    heard: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield answer, heard
            answer, heard = message, []
        else:
            heard.append(message)
    yield answer, heard


def _results(answer: AssistantMessage | None, heard: Sequence[Message]) -> list[JsonObject]:
    results = {message.call_id: message for message in heard if isinstance(message, ToolMessage)}
    return [_result(call.id, results.get(call.id)) for call in (answer.calls if answer else ())]


def _result(call_id: str, message: ToolMessage | None) -> JsonObject:
    """A call must not stay without a result."""
    text, ok = (message.text, message.ok) if message else (UNANSWERED, False)
    told: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return told if ok else told | {"is_error": True}


def _texts(
    answer: AssistantMessage | None, heard: Sequence[Message], files: Mapping[str, bytes]
) -> Iterator[JsonObject]:
    """What is no result of this answer's calls. A result whose call is gone is told in words."""
    called = {call.id for call in answer.calls} if answer else set[str]()
    for message in heard:
        if isinstance(message, MessageWithFiles):
            yield from (_piece(piece, files) for piece in pieces(message.text, message.attachments))
        elif isinstance(message, UserMessage) and message.text.strip():
            yield text_block(message.text)
        elif isinstance(message, ToolMessage) and message.call_id not in called:
            yield text_block(f"The tool {message.name} said: {message.text}")


def _piece(piece: str | Attachment, files: Mapping[str, bytes]) -> JsonObject:
    """A file whose bytes are gone leaves its mark."""
    if isinstance(piece, str) or piece.name not in files:
        return text_block(piece if isinstance(piece, str) else piece.mark)
    data = base64.b64encode(files[piece.name]).decode()
    source = {"type": "base64", "media_type": piece.media_type, "data": data}
    if piece.media_type == PDF:
        return {"type": "document", "source": source, **({"title": piece.title} if piece.title else {})}
    return {"type": "image", "source": source}


def _say(turns: list[JsonObject], role: str, blocks: list[JsonObject]) -> None:
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})
