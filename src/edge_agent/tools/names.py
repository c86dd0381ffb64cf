"""The names tools may have, and the globs that choose among them."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from edge_agent.core.tooling import BUILT_IN, HANDOFF

NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
RULE = "a name begins with a letter or _ and has at most 64 letters, digits, _ and -"


def fault_of(name: str) -> str | None:
    """What is wrong with a function tool's name, as the end of a sentence; None when nothing is."""
    if not NAME.fullmatch(name):
        return f"the name {name!r} does not fit: {RULE}"
    if name in BUILT_IN:
        return f"the name {name!r} belongs to a built-in tool"
    if name.startswith(HANDOFF):
        return f"names that begin with {HANDOFF!r} belong to handoffs"
    return None


def passes(name: str, allow: Sequence[str], deny: Sequence[str]) -> bool:
    """Deny wins; an empty allow list allows everything. Globs know *, ? and [..], and tell upper from lower case."""
    if any(fnmatchcase(name, glob) for glob in deny):
        return False
    return not allow or any(fnmatchcase(name, glob) for glob in allow)


def unmatched(globs: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """The globs that match none of the names: most often a misspelling. `*` means all there is, be it nothing."""
    known = tuple(names)
    return tuple(glob for glob in globs if glob != "*" and not any(fnmatchcase(name, glob) for name in known))
