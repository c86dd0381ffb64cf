"""Text, images and files as a client sends them, and what a run keeps of them: one text with marks, and files.

The bytes come with the request; nothing is fetched for a model.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from edge_agent.core.attachments import PDF, Attachment, pieces
from edge_agent.core.messages import Turn
from edge_agent.core.ports import StoredFile
from edge_agent.wire.asked import Asked, Text
from edge_agent.wire.entries import ImageType
from edge_agent.wire.pdf import pages_of

MAX_PARTS = 50
MAX_ATTACHMENTS = 20  # images and PDF files of one request
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", PDF: "pdf"}
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    PDF: (b"%PDF-",),
}
_ADDRESSES = ("url", "uri", "image_url", "file_url", "file_id", "file_uri", "source")
_SEND_BYTES = "holds an address, and nothing is fetched for a model: send the bytes themselves, as base64 in `data`"


class _Bytes(Asked):
    data: str = Field(min_length=1, description="The bytes, as base64.", json_schema_extra={"format": "byte"})

    @model_validator(mode="before")
    @classmethod
    def _not_elsewhere(cls, part: Any) -> object:
        fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {}
        if any(name in fields for name in _ADDRESSES) or "://" in str(fields.get("data", ""))[:16]:
            raise ValueError(_SEND_BYTES)
        return cast(object, part)

    @field_validator("data")
    @classmethod
    def _base64(cls, data: str) -> str:
        if data.startswith("data:"):
            raise ValueError("is a data: address: send only what stands behind its comma")
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("is not base64") from None
        return data

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.data)


class TextPart(Asked):
    type: Literal["text"]
    text: Text


class ImagePart(_Bytes):
    type: Literal["image"]
    media_type: ImageType

    @model_validator(mode="after")
    def _is_one(self) -> "ImagePart":
        _require_form(self.media_type, self.content)
        return self


class FilePart(_Bytes):
    """A PDF, or a text, which is told to the model as text."""

    type: Literal["file"]
    media_type: Annotated[
        str,
        Field(
            pattern=r"^(application/(pdf|json|xml)|text/[a-z0-9.+-]{1,60})$",
            description="application/pdf, application/json, application/xml, or a text/… in UTF-8.",
        ),
    ]
    name: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f\[\]/\\]{1,200}$", examples=["report.pdf"])]

    @model_validator(mode="after")
    def _is_one(self) -> "FilePart":
        if self.media_type == PDF:
            _require_form(PDF, self.content)
            if not pages_of(self.content):
                raise ValueError("is a PDF whose pages cannot be counted (encrypted or damaged?): send it another way")
            return self
        try:
            if not self.content.decode().strip():
                raise ValueError("is a file with no text in it")
        except UnicodeDecodeError:
            raise ValueError("is a text file that is not UTF-8") from None
        return self


def _require_form(media_type: str, content: bytes) -> None:
    fits = content.startswith(_BEGINNINGS[media_type]) and (media_type != "image/webp" or content[8:12] == b"WEBP")
    if not fits:
        raise ValueError(f"holds other bytes than those of {media_type}")


def _tag(part: Any) -> str:
    kind = cast("dict[str, Any]", part).get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return f"({kind})"


# Tags stand in brackets: they are no part of a field's path.
Part = Annotated[
    Annotated[TextPart, Tag("(text)")] | Annotated[ImagePart, Tag("(image)")] | Annotated[FilePart, Tag("(file)")],
    Discriminator(
        _tag,
        custom_error_type="unknown_part",
        custom_error_message="has a `type` that is none of text, image and file",
    ),
]
Parts = Annotated[tuple[Part, ...], Field(min_length=1, max_length=MAX_PARTS)]
TextOrParts = Annotated[
    Annotated[Text, Tag("(text)")] | Annotated[Parts, Tag("(parts)")],
    Discriminator(lambda said: "(parts)" if isinstance(said, list | tuple) else "(text)"),
]


@dataclass(frozen=True, slots=True)
class Said:
    """One text, what was sent along with it, and the bytes of that."""

    text: str
    attachments: tuple[Attachment, ...] | None = None
    files: tuple[StoredFile, ...] = ()


def said(asked: str | Sequence[TextPart | ImagePart | FilePart]) -> Said:
    """A plain text stays what it is. Of parts each begins a line of its own."""
    if isinstance(asked, str):
        return Said(asked)
    lines: list[str] = []
    attachments: list[Attachment] = []
    files: list[StoredFile] = []
    for part in asked:
        if isinstance(part, TextPart):
            lines.append(part.text)
        elif isinstance(part, FilePart) and part.media_type != PDF:
            lines.append(f"[{part.name}]\n{part.content.decode()}")
        else:
            file, attachment = _attached(part)
            lines.append(attachment.mark)
            attachments.append(attachment)
            files.append(file)
    return Said("\n".join(lines), tuple(attachments) or None, tuple(files))


def _attached(part: ImagePart | FilePart) -> tuple[StoredFile, Attachment]:
    content = part.content
    kind, title = ("file", part.name) if isinstance(part, FilePart) else ("image", None)
    name = f"{kind}-{hashlib.sha256(content).hexdigest()[:32]}.{_ENDINGS[part.media_type]}"
    pages = pages_of(content) if part.media_type == PDF else None
    attachment = Attachment(name=name, media_type=part.media_type, bytes=len(content), title=title, pages=pages)
    return StoredFile(name=name, media_type=part.media_type, content=content), attachment


class HistoryTurn(Asked):
    """A turn of an earlier conversation: `text`, or `parts` of a user's turn."""

    role: Literal["user", "assistant"]
    text: Text | None = None
    parts: Parts | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "HistoryTurn":
        if (self.text is None) == (self.parts is None):
            raise ValueError("has either `text` or `parts`")
        if self.parts is not None and self.role != "user":
            raise ValueError("has `parts`, which only a user's turn may have: send its text as `text`")
        return self

    @property
    def said(self) -> Said:
        return said(self.text or self.parts or ())

    def turn(self) -> Turn:
        told = self.said
        return Turn(role=self.role, text=told.text, attachments=told.attachments)


def parts_of(text: str, attachments: Sequence[Attachment], content: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The parts from which `said` makes this text. `content`: base64 by the name of the file; one that is missing
    leaves its mark."""
    for piece in pieces(text, attachments):
        if isinstance(piece, str):
            yield {"type": "text", "text": piece}
        elif piece.name not in content:
            yield {"type": "text", "text": piece.mark}
        else:
            named = {"type": "image"} if piece.title is None else {"type": "file", "name": piece.title}
            yield {**named, "media_type": piece.media_type, "data": content[piece.name]}


def lent(file: StoredFile) -> dict[str, str]:
    """A file as it goes from one object to another."""
    content = base64.b64encode(file.content).decode()
    return {"name": file.name, "media_type": file.media_type, "base64": content}


def taken(file: Mapping[str, str]) -> StoredFile:
    return StoredFile(name=file["name"], media_type=file["media_type"], content=base64.b64decode(file["base64"]))
