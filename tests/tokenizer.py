"""A real tokenizer, whose count is the measure: OpenAI's o200k_base, its ranks inside the package."""

import warnings
from typing import Protocol, cast

with warnings.catch_warnings(action="ignore"):  # it reads its ranks in a way that is deprecated
    import bpe_openai


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...
    def decode(self, tokens: list[int]) -> str: ...


_ENCODING = cast(_Encoding, bpe_openai.get_encoding("o200k_base"))


def count(text: str) -> int:
    return len(_ENCODING.encode_ordinary(text.encode("utf-8", "replace").decode()))


def beginning(text: str, most: int) -> str | None:
    """The text, or as much of it as so many tokens say; None where not even one fits."""
    tokens = _ENCODING.encode_ordinary(text)
    if len(tokens) <= most:
        return text
    return _ENCODING.decode(tokens[:most]).replace("\ufffd", "") or None
