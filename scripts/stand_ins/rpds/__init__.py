"""Stand-in for rpds-py in the local runtime: the persistent collections, as copies of built-in ones.

Reason: rpds-py is Rust and has no wheel for wasm on PyPI; Pyodide's own index has one, which a deploy takes
(`pywrangler` resolves from there) and an offline machine cannot reach. `jsonschema` needs it, by way of
`referencing`, to check what an MCP tool returns against the tool's output schema. Local set-up only:
`scripts/bundle_size.py` fails when this file is in what would be deployed.

Covers what `referencing` and `jsonschema` use. Same behaviour, another cost: each change copies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from importlib import import_module
from typing import Any

IS_STAND_IN = True


class HashTrieMap(Mapping[Any, Any]):
    """An immutable mapping whose changes return another one."""

    __slots__ = ("_items",)

    def __init__(self, value: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), **more: Any) -> None:
        self._items: dict[Any, Any] = dict(value, **more)

    @classmethod
    def convert(cls, value: Any) -> HashTrieMap:
        return value if isinstance(value, cls) else cls(value)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"HashTrieMap({self._items!r})"

    def insert(self, key: Any, value: Any) -> HashTrieMap:
        return HashTrieMap({**self._items, key: value})

    def update(self, *maps: Mapping[Any, Any], **more: Any) -> HashTrieMap:
        merged = dict(self._items)
        for each in maps:
            merged.update(each)
        return HashTrieMap(merged, **more)

    def remove(self, key: Any) -> HashTrieMap:
        if key not in self._items:
            raise KeyError(key)
        return self.discard(key)

    def discard(self, key: Any) -> HashTrieMap:
        return HashTrieMap({k: v for k, v in self._items.items() if k != key})


class HashTrieSet(AbstractSet[Any]):
    """An immutable set whose changes return another one."""

    __slots__ = ("_items",)

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self._items = frozenset(value)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"HashTrieSet({set(self._items)!r})"

    def insert(self, item: Hashable) -> HashTrieSet:
        return HashTrieSet(self._items | {item})

    def update(self, *more: Iterable[Any]) -> HashTrieSet:
        return HashTrieSet(self._items.union(*more))

    def remove(self, item: Hashable) -> HashTrieSet:
        if item not in self._items:
            raise KeyError(item)
        return self.discard(item)

    def discard(self, item: Hashable) -> HashTrieSet:
        return HashTrieSet(self._items - {item})


class List:
    """An immutable sequence that grows and shrinks at its front."""

    __slots__ = ("_items",)

    def __init__(self, *items: Any) -> None:
        self._items: tuple[Any, ...] = tuple(items[0]) if len(items) == 1 else items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __reversed__(self) -> Iterator[Any]:
        return reversed(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, List) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"List({list(self._items)!r})"

    @property
    def first(self) -> Any:
        return self._items[0]

    @property
    def rest(self) -> List:
        return self.drop_first()

    def push_front(self, item: Any) -> List:
        return List((item, *self._items))

    def drop_first(self) -> List:
        return List(self._items[1:])


def _spend_granted_entropy() -> None:
    """Make the one entropy call that the Workers SDK grants, and demands, when `rpds` is first imported.

    The real package makes it from Rust (it seeds its hash maps). Without this a top-level import ends in
    "RuntimeError: 1 unexpected leftover getentropy calls".
    """
    try:
        granted: list[int] = import_module("_cloudflare.allow_entropy").ALLOWED_ENTROPY_CALLS
    except ImportError:  # not in workerd
        return
    spend: Callable[[int], bytes] = os.urandom
    if granted[0]:
        spend(1)


_spend_granted_entropy()
