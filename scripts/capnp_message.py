"""Write the one Cap'n Proto message that workerd reads a Pyodide bundle from.

The schema is workerd's: `struct Bundle { modules @0 :List(Module); }` and

    struct Module {
      name @0 :Text;
      union { src @1 :Data; wasm @4 :Data; data @5 :Data; json @6 :Text; }
      type @2 :ModuleType;  tsDeclaration @3 :Text;  compileCache @7 :Data;
    }

which lays out as one word of data (type, then which of the union it is) and four pointers (name, the
union's content, tsDeclaration, compileCache). The encoding: https://capnproto.org/encoding.html.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

WORD = 8
DATA_WORDS = 1
POINTERS = 4
MODULE_WORDS = DATA_WORDS + POINTERS
INTERNAL = 2  # enum ModuleType { bundle @0; builtin @1; internal @2; }
UNION = {"src": 0, "wasm": 1, "data": 2}

STRUCT_POINTER = 0
LIST_POINTER = 1
BYTES = 2  # the list's element size: one byte
COMPOSITE = 7  # the list's element size: structs, a tag word before them


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of the bundle, seen by Pyodide's own JavaScript under `name`."""

    name: str
    kind: Literal["src", "wasm", "data"]
    content: bytes


def bundle_message(modules: Sequence[Module]) -> bytes:
    """Return the framed, single-segment message holding `modules`."""
    tag = 2  # words before the modules: root pointer, the pointer of Bundle, then the tag itself
    body = bytearray((tag + 1) * WORD)
    struct.pack_into("<q", body, 0, _struct_pointer(offset=0, data_words=0, pointers=1))
    struct.pack_into("<q", body, WORD, _list_pointer(offset=0, size=COMPOSITE, count=len(modules) * MODULE_WORDS))
    struct.pack_into("<q", body, 2 * WORD, _struct_pointer(offset=len(modules), data_words=1, pointers=POINTERS))
    first = len(body)
    body += bytes(len(modules) * MODULE_WORDS * WORD)
    for index, module in enumerate(modules):
        start = first + index * MODULE_WORDS * WORD
        struct.pack_into("<HH", body, start, INTERNAL, UNION[module.kind])
        _append(body, start + WORD, module.name.encode() + b"\0")
        _append(body, start + 2 * WORD, module.content)
    return struct.pack("<II", 0, len(body) // WORD) + bytes(body)


def _append(body: bytearray, pointer_at: int, content: bytes) -> None:
    """Put `content` at the end of `body`, and a pointer to it at `pointer_at`."""
    offset = (len(body) - pointer_at) // WORD - 1
    struct.pack_into("<q", body, pointer_at, _list_pointer(offset=offset, size=BYTES, count=len(content)))
    body += content + bytes(-len(content) % WORD)


def _struct_pointer(*, offset: int, data_words: int, pointers: int) -> int:
    return STRUCT_POINTER | offset << 2 | data_words << 32 | pointers << 48


def _list_pointer(*, offset: int, size: int, count: int) -> int:
    return LIST_POINTER | offset << 2 | size << 32 | count << 35
