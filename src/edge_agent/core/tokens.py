"""An estimate of tokens that is meant never to be below the real count, and at most about 1.4 times it."""

import re

# Weights by class of character: letters 2.5 a token, digits and punctuation 1, space 0.25 of one, newline 1,
# other alphabets 2 characters a token, CJK and emoji 1.
_CJK_OR_EMOJI = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]")
_LATIN = re.compile("[A-Za-z]")
_SPACE = re.compile("[ \t]")
_OTHER_ASCII = re.compile("[\x00-\x08\x0a-\x1f!-@\\[-`{-\x7f]")


def estimate(text: str) -> int:
    """Estimated tokens of a text."""
    letters, spaces = len(_LATIN.findall(text)), len(_SPACE.findall(text))
    whole = len(_OTHER_ASCII.findall(text)) + len(_CJK_OR_EMOJI.findall(text))
    rest = len(text) - letters - spaces - whole
    return int(letters / 2.5 + spaces * 0.25 + whole + rest / 2) + 1 if text else 0
