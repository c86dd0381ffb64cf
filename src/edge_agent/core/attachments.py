"""Images and PDF files that were sent along with a text: what a record and a prompt hold of them.

The bytes are a file of the run; here stands its name, and in the text a mark where it stood. Whoever is shown the text
alone (a summary, a list) sees the mark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PDF = "application/pdf"
# What an image or the page of a PDF may cost, rather too much: a Claude of 2026 counts up to 4 784 tokens for an image
# and up to 3 000 for a page's text beside about 1 600 for its picture; Gemini about 1 100 for an image and 560 for a
# page, OpenAI's models up to 2 950 for an image in detail "high" (their documentation and measurements, 2026-11).
TOKENS = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """`name`: of the run's file, made of the hash of its `bytes` (so many). `title`: the sender's name for it. `pages`:
    of a PDF."""

    name: str
    media_type: str
    bytes: int
    title: str | None = None
    pages: int | None = None

    @property
    def mark(self) -> str:
        return f"[{self.title or 'image'}: {self.name}]"

    @property
    def tokens(self) -> int:
        """Estimated, rather too many."""
        return TOKENS * (self.pages or 1)


def pieces(text: str, attachments: Sequence[Attachment]) -> Iterator[str | Attachment]:
    """The text and what was sent along, in the order they were sent in: each stands where its mark is, one whose mark
    is gone (a secret in it was hidden) at the end. No text is blank."""
    lost: list[Attachment] = []
    for attachment in attachments:
        before, mark, behind = text.partition(attachment.mark)
        if not mark:
            lost.append(attachment)
            continue
        if before.strip():
            yield before.removeprefix("\n").removesuffix("\n")
        yield attachment
        text = behind
    if text.strip():
        yield text.removeprefix("\n") if attachments else text
    yield from lost
