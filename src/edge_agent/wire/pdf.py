"""How many pages a PDF has, without reading them: what it costs depends on that."""

import re
import zlib

_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_STREAM = re.compile(rb"/ObjStm\b[^>]*>>\s*stream\r?\n|<<(?=[^>]*/ObjStm\b)[^>]*>>\s*stream\r?\n")
_MOST = 8_000_000  # bytes of one unpacked stream of objects


def pages_of(content: bytes) -> int:
    """0 where none can be seen: it is encrypted, damaged, or no PDF. Since PDF 1.5 pages may be packed with other
    objects (ISO 32000-1, 7.5.7). Pages that an edit has replaced count as well."""
    packed = (_unpacked(content[found.end() :]) for found in _STREAM.finditer(content))
    return sum(len(_PAGE.findall(objects)) for objects in (content, *packed))


def _unpacked(stream: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream, _MOST)
    except zlib.error:
        return b""
