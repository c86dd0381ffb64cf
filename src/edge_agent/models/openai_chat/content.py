"""What a user said with images and files, in the parts of chat completions."""

import base64
from collections.abc import Mapping

from edge_agent.core.attachments import PDF, Attachment, pieces
from edge_agent.core.messages import JsonObject, MessageWithFiles


def content_of(message: MessageWithFiles, files: Mapping[str, bytes]) -> list[JsonObject]:
    return [_part(piece, files) for piece in pieces(message.text, message.attachments)]


def _part(piece: str | Attachment, files: Mapping[str, bytes]) -> JsonObject:
    """A file whose bytes are gone leaves its mark. Of the details of an image "auto" may cost several times "high"."""
    if isinstance(piece, str) or piece.name not in files:
        return {"type": "text", "text": piece if isinstance(piece, str) else piece.mark}
    address = f"data:{piece.media_type};base64,{base64.b64encode(files[piece.name]).decode()}"
    if piece.media_type == PDF:
        return {"type": "file", "file": {"filename": piece.title or piece.name, "file_data": address}}
    return {"type": "image_url", "image_url": {"url": address, "detail": "high"}}
