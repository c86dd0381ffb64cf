"""The messages of a request as Gemini's contents: turns of user and model that alternate."""

import base64
from collections.abc import Mapping

from edge_agent.core.attachments import Attachment, pieces
from edge_agent.core.messages import AssistantMessage, JsonObject, MessageWithFiles, ToolMessage, UserMessage
from edge_agent.core.model import ModelRequest
from edge_agent.models.google.order import SIGNATURE, parts

# What Google documents for turns that did not come from this model.
UNSIGNED = "skip_thought_signature_validator"
_OPENING = "(The conversation begins.)"  # a model's turn must not be the first


def contents(request: ModelRequest, provider: str, model: str, *, signed: bool) -> list[JsonObject]:
    """`signed`: the first function call of each model's turn has to carry a thought signature. It gets one in old turns
    as well, where nobody asks for it: what changed later would be no prefix that a cache can hold."""
    told: list[JsonObject] = []
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            _say(told, "model", _answer(message, provider, model))
        else:
            _say(told, "user", _heard(message, request.files))
    if signed:
        for content in told:
            _sign(content["parts"])
    if told and told[0]["role"] == "model":
        told.insert(0, {"role": "user", "parts": [{"text": _OPENING}]})
    return told


def _say(told: list[JsonObject], role: str, spoken: list[JsonObject]) -> None:
    if told and told[-1]["role"] == role:
        told[-1]["parts"] += spoken
    elif spoken:
        told.append({"role": role, "parts": spoken})


def _answer(message: AssistantMessage, provider: str, model: str) -> list[JsonObject]:
    """Nothing for an answer that said nothing at all."""
    if not message.text and not message.calls:
        return []
    own = next((part.data for part in message.opaque if part.is_for(provider, model)), None)
    return list(parts(message, own or {}))


def _heard(message: UserMessage | ToolMessage, files: Mapping[str, bytes]) -> list[JsonObject]:
    if isinstance(message, ToolMessage):
        return [_result(message)]
    if isinstance(message, MessageWithFiles):
        return [_piece(piece, files) for piece in pieces(message.text, message.attachments)]
    return [{"text": message.text}]


def _piece(piece: str | Attachment, files: Mapping[str, bytes]) -> JsonObject:
    """A file whose bytes are gone leaves its mark."""
    if isinstance(piece, str) or piece.name not in files:
        return {"text": piece if isinstance(piece, str) else piece.mark}
    return {"inlineData": {"mimeType": piece.media_type, "data": base64.b64encode(files[piece.name]).decode()}}


def _result(message: ToolMessage) -> JsonObject:
    response = {"output" if message.ok else "error": message.text}
    return {"functionResponse": {"id": message.call_id, "name": message.name, "response": response}}


def _sign(spoken: list[JsonObject]) -> None:
    first = next((part for part in spoken if "functionCall" in part), None)
    if first is not None:
        first.setdefault(SIGNATURE, UNSIGNED)
