"""An estimate of tokens that is meant never to be below the real count, and at most about 1.4 times it.

A text is looked at as tokenizers do, in pieces: words, numbers, punctuation, white space, other scripts. The weights
are fitted to OpenAI's o200k_base (tests/unit/test_core_tokens.py holds the estimate against it). They err upwards: for
an alphabet that has no weight of its own (two characters a token), for capitals, for identifiers.
"""

import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

_LETTER = "A-Za-z\u00c0-\u024f"
_MARKS = r"!-/:-@\[-`{-~"
# A word takes a mark between itself and the word before with it: snake_case is two tokens.
_PIECES = re.compile(
    rf"(?:(?<=[0-9{_LETTER}])[_./:'-])?[0-9{_LETTER}]+|\s+|[{_MARKS}]+[\r\n]*|[^0-9{_LETTER}\s{_MARKS}]+"
)
_PARTS = re.compile("[A-Z\u00c0-\u00de]*[a-z\u00df-\u024f]+|[A-Z\u00c0-\u00de]+|[0-9]+")
_MIXED = re.compile("[A-Za-z][0-9]+[A-Za-z]")  # hashes, base64: nothing a tokenizer has met before
_HARD = re.compile("[b-df-hj-np-tv-xzB-DF-HJ-NP-TV-XZ]{5,}")  # consonants in a row
_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_EMOJI = re.compile("[\U00010000-\U0010ffff\u2600-\u27bf]")
_JUDGED = 400  # characters of a growing text that are estimated together
_HEAVIEST = 2.5  # tokens a character may weigh
_SHORT = 64  # characters; longer pieces come but once


def estimate(text: str) -> int:
    """Estimated tokens of a text."""
    return math.ceil(_weight(text))


def _weight(text: str) -> float:
    pieces = Counter(_PIECES.findall(text))
    return sum(count * (_known(piece) if len(piece) <= _SHORT else _of(piece)) for piece, count in pieces.items())


def _of(piece: str) -> float:
    if piece[0].isspace():
        return _of_space(piece)
    last = piece.rstrip()[-1]
    if not last.isascii() and not _PARTS.search(last):
        return _of_other_script(piece)
    return _of_word(piece) if last.isalnum() else _of_marks(piece)


_known = lru_cache(maxsize=8_192)(_of)


def _of_word(piece: str) -> float:
    """Common words are one token; long ones, accents and what cannot be pronounced take more."""
    if _MIXED.search(piece):
        return 0.75 * len(piece)
    weight = 0.0 if piece[0].isalnum() else 0.15 if piece[1].isalpha() else 0.9
    for part in _PARTS.findall(piece):
        length = len(part)
        if part.isdigit():
            weight += 0.55 + max(1.0, length / 2)  # three digits are a token, and often the space before them is one
        elif part.isupper():
            weight += 1.1 + 0.2 * (length - 1)
        else:
            capitals = sum(letter.isupper() for letter in part)
            weight += 1.1 + 0.08 * max(0, length - 4) + 0.22 * max(0, length - 8) + 0.8 * max(0, capitals - 1)
        if not part.isascii():
            weight += 0.8 * sum(letter > "\x7f" for letter in part)
    return weight + 0.8 * sum(len(run) - 4 for run in _HARD.findall(piece))


def _of_marks(piece: str) -> float:
    """A line of dashes is one token, a mixture is several; the end of the line goes with them."""
    changes = sum(one != other for one, other in pairwise(piece.rstrip()))
    return 1.0 + 0.4 * changes


def _of_space(piece: str) -> float:
    """A single space belongs to the word after it; an indentation is one token, so is an empty line."""
    if piece == " ":
        return 0.05
    lines, _, indentation = piece.rpartition("\n")
    weight = 1.2 + 0.6 * (len(set(lines)) - 1) if lines else 1.2
    return weight + (1.2 if len(indentation) > 1 and len(indentation) < len(piece) else 0.0)


def _of_other_script(piece: str) -> float:
    cjk, emoji = len(_CJK.findall(piece)), len(_EMOJI.findall(piece))
    return 0.9 * cjk + 2.1 * emoji + (len(piece) - cjk - emoji) / 2


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

    @property
    def at_most(self) -> float:
        """Not below `tokens`, and no work."""
        return self._known + self._length * _HEAVIEST + 1


def passes(most: float, *meters: Meter) -> bool:
    """Whether together they are above `most`; looked at closely only where that is near."""
    return sum(meter.at_most for meter in meters) > most and sum(meter.tokens for meter in meters) > most
