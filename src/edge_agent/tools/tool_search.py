"""Which tools of a large catalogue fit a few words."""

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from edge_agent.core.messages import ToolSpec

MOST, DEFAULT = 20, 8  # tools of one search
_NAME, _SERVER, _DESCRIPTION = 3, 2, 1  # what a word found there is worth
_LEAST_PREFIX = 3  # characters
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")


class Searchable(Protocol):
    @property
    def spec(self) -> ToolSpec: ...
    @property
    def server(self) -> str | None: ...


S = TypeVar("S", bound=Searchable)


def search_tools(tools: Sequence[S], query: str, *, server: str | None = None, limit: int = DEFAULT) -> tuple[S, ...]:
    """The tools that fit, the best first, equal ones in the order of the catalogue; none for a query without words.

    Each different word of the query counts 3 where it is one of the tool's name, 2 of its server's, 1 of its
    description, as a whole or, from 3 characters, as its beginning; `searchInvoices` and `search_invoices` are two
    words. server: only of that one, however it is written. limit: from 1 to 20; what lies outside is moved there.
    """
    terms = words(query)
    wanted = None if server is None else server.lower()
    scored = [(_score(tool, terms), tool) for tool in tools if wanted is None or (tool.server or "").lower() == wanted]
    found = sorted((entry for entry in scored if entry[0]), key=lambda entry: -entry[0])
    return tuple(tool for _, tool in found[: min(max(limit, 1), MOST)])


def words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_HUMP.sub(" ", text)))


def _score(tool: Searchable, terms: frozenset[str]) -> int:
    server = tool.server or ""
    places = (
        (_NAME, words(tool.spec.name.removeprefix(f"{server}__"))),
        (_SERVER, words(server)),
        (_DESCRIPTION, words(tool.spec.description)),
    )
    return sum(worth for worth, place in places for term in terms if _stands_in(term, place))


def _stands_in(term: str, place: frozenset[str]) -> bool:
    return term in place or (len(term) >= _LEAST_PREFIX and any(word.startswith(term) for word in place))
