"""An HTML page as text a model can read: headings, lists, links and code are kept, what nobody sees is not."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

_UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "select", "dialog"})
_WITHIN_A_LINE = frozenset(
    {
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "img",
        "ins",
        "kbd",
    }
    | {
        "label",
        "mark",
        "q",
        "rp",
        "rt",
        "ruby",
        "s",
        "samp",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "time",
        "tt",
        "u",
    }
    | {"var", "wbr"}
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_END_MAY_BE_MISSING = frozenset(
    {"p", "li", "dt", "dd", "option", "tr", "td", "th", "thead", "tbody", "tfoot", "body", "html", "head"}
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_AT_A_TIME = 65_536  # characters
_LONELY = re.compile("<(?![^<>]*>)")  # tags that do not end would each be read to the end of the page
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_NOT_READ = "\n\n[the rest of the page is not read]"
Attributes = list[tuple[str, str | None]]


def page_text(html: str, url: str, enough: int) -> str:
    """`url`: of the page, which relative links are counted from. `enough`: characters of text after which the rest is
    not read: a megabyte takes the Worker two seconds."""
    reader = _Reader(url)
    html = _LONELY.sub("&lt;", _without_comments(html))
    rest = ""
    for start in range(0, len(html), _AT_A_TIME):
        reader.feed(html[start : start + _AT_A_TIME])
        if reader.said > enough and start + _AT_A_TIME < len(html):
            rest = _NOT_READ
            break
    reader.close()
    return _paragraphs("".join(reader.pieces)) + rest


def _paragraphs(text: str) -> str:
    """Of several empty lines one stays. Line by line: a pattern that begins with blanks looks at each run of them again
    and again."""
    lines = (line.rstrip(" \t") for line in text.split("\n"))
    return re.sub(r"\n\n+[ \t]*", "\n\n", "\n".join(lines)).strip()


def _without_comments(html: str) -> str:
    first, *others = html.split("<!--")
    return first + "".join(other.partition("-->")[2] for other in others)


def declared_charset(content: bytes) -> str | None:
    """What the page itself says, in its first kilobyte."""
    found = _CHARSET.search(content[:1024])
    return found[1].decode("ascii") if found else None


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.said = 0  # characters
        self._url = url
        self._unseen: tuple[str, int] | None = None  # the element that is left out, and how deep in its likes
        self._preformatted = 0
        self._link: str | None = None

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        if self._unseen is not None:
            hiding, depth = self._unseen
            self._unseen = (hiding, depth + (tag == hiding))
        elif tag in _UNSEEN or _hides(tag, attrs):
            self._unseen = (tag, 1)
        else:
            self._begin(tag, dict(attrs))

    def handle_startendtag(self, tag: str, attrs: Attributes) -> None:
        if self._unseen is None and tag not in _UNSEEN:
            self._begin(tag, dict(attrs))
            self._end(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._unseen is None:
            self._end(tag)
            return
        hiding, depth = self._unseen
        if tag == hiding:
            self._unseen = (hiding, depth - 1) if depth > 1 else None

    def handle_data(self, data: str) -> None:
        if self._unseen is None:
            self.pieces.append(data if self._preformatted else re.sub(r"\s+", " ", data))
            self.said += len(self.pieces[-1])

    def _begin(self, tag: str, attributes: dict[str, str | None]) -> None:
        if tag not in _WITHIN_A_LINE:
            self.pieces.append("\n")
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.pieces.append("\n" + "#" * int(tag[1]) + " ")
        elif tag == "p":
            self.pieces.append("\n")
        elif tag == "li":
            self.pieces.append("- ")
        elif tag == "pre":
            self._preformatted += 1
        elif tag == "img" and attributes.get("alt"):
            self.pieces.append(f"[image: {attributes['alt']}]")
        elif tag == "a":
            self._link = self._target(attributes.get("href"))

    def _end(self, tag: str) -> None:
        if tag == "a" and self._link:
            self.pieces.append(f" ({self._link})")
            self._link = None
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        if tag not in _WITHIN_A_LINE:
            self.pieces.append("\n")

    def _target(self, href: str | None) -> str | None:
        try:
            target = urljoin(self._url, (href or "").strip())
        except ValueError:
            return None
        return target if href and not href.startswith("#") and target.startswith(("http://", "https://")) else None


def _hides(tag: str, attrs: Attributes) -> bool:
    """An element whose end may be missing hides nothing: it could hide the rest of the page."""
    if tag in _VOID or tag in _END_MAY_BE_MISSING:
        return False
    given = dict(attrs)
    return "hidden" in given or given.get("aria-hidden") == "true" or bool(_HIDDEN.search(given.get("style") or ""))
