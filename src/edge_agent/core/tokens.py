"""An estimate of tokens that is meant never to be below the real count, and at most about 1.4 times it."""

import math
import re

# Weights by class of character: letters 2.5 a token, digits and punctuation 1, space 0.25 of one, newline 1,
# other alphabets 2 characters a token, CJK and emoji 1.
_CJK_OR_EMOJI = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]")
_LATIN = re.compile("[A-Za-z]")
_SPACE = re.compile("[ \t]")
_OTHER_ASCII = re.compile("[\x00-\x08\x0a-\x1f!-@\\[-`{-\x7f]")
_JUDGED = 400  # characters of a growing text that are estimated together
_HEAVIEST = 1.0  # tokens a character may weigh


def estimate(text: str) -> int:
    """Estimated tokens of a text."""
    return int(_weight(text)) + 1 if text else 0


def _weight(text: str) -> float:
    letters, spaces = len(_LATIN.findall(text)), len(_SPACE.findall(text))
    whole = len(_OTHER_ASCII.findall(text)) + len(_CJK_OR_EMOJI.findall(text))
    rest = len(text) - letters - spaces - whole
    return letters / 2.5 + spaces * 0.25 + whole + rest / 2


class Meter:
    """Estimates a text while it grows, some hundred characters at a time."""

    def __init__(self) -> None:
        self._known = 0.0
        self._waiting: list[str] = []
        self._length = 0

    def add(self, text: str) -> None:
        self._waiting.append(text)
        self._length += len(text)
        if self._length >= _JUDGED:
            self._known += _weight("".join(self._waiting))
            self._waiting, self._length = [], 0

    @property
    def tokens(self) -> int:
        return math.ceil(self._known + _weight("".join(self._waiting)))

    def passes(self, most: float) -> bool:
        """Whether it is estimated at more than `most`; looked at closely only where that is near."""
        return self._known + self._length * _HEAVIEST > most and self.tokens > most
