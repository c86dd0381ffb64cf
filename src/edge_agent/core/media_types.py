"""What a file is by its media type."""

import re

UNKNOWN = "application/octet-stream"
_TEXT = re.compile(r"text/.+|application/(?:.+\+)?(?:json|xml|yaml)|application/(?:javascript|x-ndjson|toml)")
_FORM = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,100}(?:; ?[\w-]{1,40}=[\w.+-]{1,60}){0,3}", re.ASCII)


def is_text(media_type: str) -> bool:
    """Whether the content is characters, whatever its parameters say."""
    return _TEXT.fullmatch(media_type.partition(";")[0].strip().lower()) is not None


def well_formed(media_type: str) -> str:
    """As it may stand in a header; `application/octet-stream` in the place of one that may not."""
    return media_type if _FORM.fullmatch(media_type) else UNKNOWN
