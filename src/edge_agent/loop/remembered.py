"""What is worked out of the parts of requests: one request after another has most of its parts in common."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """A pure function of a part: worked out once, and held no longer than until a request comes without that part."""

    def __init__(self, work: Callable[[Any], V]) -> None:
        self._work = work
        self._known: dict[int, tuple[object, V]] = {}
        self._before: dict[int, tuple[object, V]] = {}  # what was known before this request

    def next_request(self) -> None:
        self._before, self._known = self._known, {}

    def of(self, part: Any) -> V:
        """By identity, and holding on to it: else its id might be given to another object."""
        known = self._known.get(id(part)) or self._before.get(id(part)) or (part, self._work(part))
        self._known[id(part)] = known
        return known[1]
