"""JSON as models write it: many put it into a fence, which is no part of it."""

import re

_FENCE = re.compile(r"^\s*```[a-z]*\s*|\s*```\s*$")


def unfenced(text: str) -> str:
    return _FENCE.sub("", text)
