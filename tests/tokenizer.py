"""A real tokenizer, whose count is the measure: OpenAI's o200k_base, its ranks inside the package."""

import warnings
from typing import Protocol, cast

with warnings.catch_warnings(action="ignore"):  # it reads its ranks in a way that is deprecated
    import bpe_openai


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


_ENCODING = cast(_Encoding, bpe_openai.get_encoding("o200k_base"))


def count(text: str) -> int:
    return len(_ENCODING.encode_ordinary(text.encode("utf-8", "replace").decode()))
