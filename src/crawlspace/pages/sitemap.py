"""Sitemaps and feeds: which pages a site announces, read piece by piece from whatever it serves.

A file is an XML sitemap, an index of sitemaps, a feed (RSS, Atom) or a list of addresses, told by what it holds and
never by its name or its headers. A site that announces a page means it, however badly the file is written, so reading
is lenient: any namespace or none, addresses beside their element, ends that never came. What a file may not do is
harm: see `markup`, and it gives no more addresses than sitemaps.org allows.

Addresses are text, as they stand there; resolving and judging them is the work of others. The rule that a sitemap
speaks for its own folder only is not applied: robots.txt, where sitemaps are found, speaks for the whole host.

Sources: the sitemaps.org protocol 0.9; Google's image, video, news and hreflang extensions; RSS 2.0 and 1.0;
RFC 4287 (Atom).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from enum import StrEnum, unique
from typing import Final, NamedTuple

from crawlspace.pages.encoding import declared, encoding_of, incremental, marked
from crawlspace.pages.markup import MarkupReader, attributes_of
from crawlspace.pages.timestamps import read_time

ENTRIES: Final = 50_000
"""Addresses that one file may give; sitemaps.org's own number."""
ADDRESS: Final = 8_192
"""Characters of an address; a longer one is left out."""
EXTRAS: Final = 1_000
"""Pictures, and other languages, of one entry."""
SNIFFED: Final = 4_096
"""Bytes in which a sitemap shows what it is."""

_ROOT: Final = re.compile(
    rb"\s*+(?>(?:<\?[^>]*>|<!--.*?-->)\s*+)*+<(?:[A-Za-z][\w.\-]*:)?(?:urlset|sitemapindex)[\s>]", re.S
)
_BLANK: Final = "".join(
    map(chr, (0, *range(9, 14), 28, 29, 30, 31, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C)))
) + ("\u2028\u2029\u202f\u205f\u3000\ufeff")
"""White space of any script, the mark at the start of a text, and what has no width."""
_ABSOLUTE: Final = re.compile(r"https?://\S", re.I)


@unique
class Kind(StrEnum):
    """What a file is."""

    URLSET = "urlset"
    INDEX = "index"
    """Its entries are sitemaps."""
    FEED = "feed"
    TEXT = "text"
    """One address a line."""
    OTHER = "other"
    """No sitemap."""


class Entry(NamedTuple):
    """One address that a file announces."""

    url: str
    lastmod: int | None = None
    """When it changed last, by the site's word; milliseconds since 1970 UTC."""
    priority: float | None = None
    """From 0 to 1 among the pages of its site, by the site's word."""
    alternates: tuple[str, ...] = ()
    """Its versions in other languages."""
    media: tuple[str, ...] = ()
    """Pictures and films on it."""


class SitemapReader:
    """Reads one file. `kind` and `problem` are final once it is closed."""

    def __init__(self, charset: str = "", limit: int = ENTRIES) -> None:
        """`charset` is the label in the Content-Type header, if there is one; `limit` the most entries to give."""
        self.kind = Kind.OTHER
        self.count = 0
        """Entries given."""
        self.cut = False
        """The file has more than were given."""
        self._charset = charset
        self._limit = limit
        self._decode: Callable[[bytes, bool], str] | None = None
        self._lines: _Lines | None = None
        self._elements: _Elements | None = None
        self._head = b""

    @property
    def problem(self) -> str:
        """Why nothing, or not all, could be read; empty when all is well."""
        if self._elements is not None and self._elements.markup.problem:
            return self._elements.markup.problem
        return "no sitemap and no feed" if self.kind is Kind.OTHER else ""

    @property
    def over(self) -> bool:
        """True when nothing that follows could add an entry."""
        return self.cut or (self._elements is not None and self._elements.over)

    def feed(self, data: bytes) -> list[Entry]:
        """Entries that these bytes complete."""
        if self._decode is None:
            self._head += data
            if len(self._head) < SNIFFED:
                return []
            data = self._begin()
        return self._read(data, final=False)

    def close(self) -> list[Entry]:
        """Entries that were still open when the file ended."""
        data = b"" if self._decode is not None else self._begin()
        found = self._read(data, final=True)
        if self._elements is not None:
            found += self._take(self._elements.finish())
        elif self._lines is not None:
            found += self._take(self._lines.finish())
        self._note_kind()
        return found

    def _begin(self) -> bytes:
        head, self._head = self._head, b""
        name = marked(head) or encoding_of(self._charset) or declared(head[:SNIFFED]) or "utf-8"
        self._decode = incremental(name)
        return head

    def _read(self, data: bytes, *, final: bool) -> list[Entry]:
        assert self._decode is not None
        text = self._decode(data, final)
        if self._elements is None and self._lines is None:
            text = text.lstrip(_BLANK)
            if not text:
                return []
            if text.startswith("<"):
                self._elements = _Elements()
            else:
                self._lines = _Lines()
        found = self._elements.read(text) if self._elements is not None else []
        if self._lines is not None:
            found = self._lines.read(text)
        self._note_kind()
        return self._take(found)

    def _note_kind(self) -> None:
        if self._elements is not None:
            self.kind = self._elements.kind
        elif self.count:
            self.kind = Kind.TEXT

    def _take(self, found: list[Entry]) -> list[Entry]:
        room = self._limit - self.count
        self.cut = self.cut or len(found) > room
        taken = found[:room]
        self.count += len(taken)
        return taken


def looks_like_sitemap(body: bytes) -> bool:
    """Whether it begins as an XML sitemap or an index does, in an encoding that holds ASCII."""
    return _ROOT.match(body[:SNIFFED].removeprefix(codecs.BOM_UTF8)) is not None


# -- lists of addresses -------------------------------------------------------------------------------------


class _Lines:
    """A text file with one address a line; other lines are passed over."""

    def __init__(self) -> None:
        self._held = ""

    def read(self, text: str) -> list[Entry]:
        *lines, self._held = (self._held + text).replace("\r", "\n").split("\n")
        self._held = self._held[: ADDRESS + 1]
        return _listed(lines)

    def finish(self) -> list[Entry]:
        return _listed([self._held])


def _listed(lines: list[str]) -> list[Entry]:
    stripped = (line.strip(_BLANK) for line in lines)
    return [Entry(line) for line in stripped if len(line) <= ADDRESS and _ABSOLUTE.match(line)]


# -- elements -----------------------------------------------------------------------------------------------

_KINDS: Final = {
    "urlset": Kind.URLSET,
    "sitemapindex": Kind.INDEX,
    "rss": Kind.FEED,
    "rdf": Kind.FEED,
    "feed": Kind.FEED,
}
_ENTRY: Final = {
    Kind.URLSET: frozenset({"url", "sitemap"}),
    Kind.INDEX: frozenset({"url", "sitemap"}),
    Kind.FEED: frozenset({"item", "entry"}),
    Kind.OTHER: frozenset[str](),
}
_TIMES: Final = frozenset({"lastmod", "pubdate", "updated", "modified", "published", "publication_date", "date"})
_OWN: Final = {
    Kind.URLSET: frozenset({"loc", "lastmod", "priority"}),
    Kind.INDEX: frozenset({"loc", "lastmod"}),
    Kind.FEED: frozenset({"link", "guid", "pubdate", "updated", "modified", "published"}),
    Kind.OTHER: frozenset[str](),
}
"""Elements that are read in an entry, by their local names in lower case."""
_EXTENSIONS: Final = {
    "image": frozenset({"loc"}),
    "video": frozenset({"content_loc", "thumbnail_loc"}),
    "news": frozenset({"publication_date"}),
    "dc": frozenset({"date"}),
}
"""Elements of other vocabularies, by the family of their namespace."""
_FAMILIES: Final = (
    ("sitemap-image", "image"),
    ("sitemap-video", "video"),
    ("sitemap-news", "news"),
    ("/xhtml", "xhtml"),
    ("purl.org/dc/", "dc"),
)
_PREFIXES: Final = frozenset({"image", "video", "news", "xhtml", "dc"})
_NAMESPACE: Final = re.compile(r"xmlns:([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


class _Draft:
    """An entry while it is read."""

    __slots__ = ("alternates", "bare", "fallback", "lastmod", "loose", "media", "priority", "url")

    def __init__(self) -> None:
        self.url = ""
        self.lastmod: int | None = None
        self.priority: float | None = None
        self.alternates: list[str] = []
        self.media: list[str] = []
        self.fallback = ""
        """A guid, which is an address where there is no other."""
        self.loose = ""
        """Text before all elements, which some take for the address."""
        self.bare = True
        """No element has come yet."""

    def entry(self) -> Entry | None:
        """What it came to; None when it has no address."""
        url = self.url or next(
            (text for text in (self.fallback, self.loose.strip(_BLANK)) if _ABSOLUTE.match(text)), ""
        )
        if not url or len(url) > ADDRESS:
            return None
        return Entry(url, self.lastmod, self.priority, tuple(self.alternates), tuple(self.media))


class _Elements:
    """Listens to the markup of a file and makes entries of it."""

    def __init__(self) -> None:
        self.kind = Kind.OTHER
        self.markup = MarkupReader(self)
        self._made: list[Entry] = []
        self._rooted = False
        self._families: dict[str, str] = {"": ""}
        """What a prefix stands for: empty for the file's own vocabulary."""
        self._names: dict[str, tuple[str, str]] = {}
        self._draft: _Draft | None = None
        self._field = ""
        """The element whose text is read: family, colon and name, or the name alone."""
        self._text = ""

    @property
    def over(self) -> bool:
        return self.markup.problem != "" or (self._rooted and self.kind is Kind.OTHER)

    def read(self, text: str) -> list[Entry]:
        self.markup.feed(text)
        made, self._made = self._made, []
        return made

    def finish(self) -> list[Entry]:
        """What was open when the file ended counts, unless the cut went through its address."""
        if self.markup.close():
            self._end_field()
        self._field = ""
        self._end_entry()
        made, self._made = self._made, []
        return made

    # -- what the markup tells ------------------------------------------------------------------------------

    def opened(self, name: str, attributes: str) -> None:
        if "xmlns:" in attributes:
            self._learn(attributes)
        if not self._rooted:
            self._root(name)
            return
        if self._field in ("loc", "link"):
            return  # an element within an address is markup by mistake: its text is the address
        family, local = self._meant(name)
        if not family and local in _ENTRY[self.kind]:
            self._end_entry()
            self._draft = _Draft()
            return
        if self._draft is not None:
            self._draft.bare = False
        if local == "link" and (family == "xhtml" or (self.kind is Kind.FEED and not family)):
            self._link(family, attributes)
        elif local in (_EXTENSIONS.get(family, ()) if family else _OWN[self.kind]):
            self._begin_field(f"{family}:{local}" if family else local)

    def closed(self, name: str) -> None:
        family, local = self._meant(name)
        if self._field:
            if self._field == (f"{family}:{local}" if family else local):
                self._end_field()
        elif not family and local in _ENTRY[self.kind]:
            self._end_entry()

    def text(self, text: str) -> None:
        if self._field:
            if len(self._text) <= ADDRESS:
                self._text += text
        elif self._draft is not None and self._draft.bare and len(self._draft.loose) <= ADDRESS:
            self._draft.loose += text

    # -- names ----------------------------------------------------------------------------------------------

    def _root(self, name: str) -> None:
        prefix, _, local = name.rpartition(":")
        self._rooted = True
        self._families[prefix] = ""
        self.kind = _KINDS.get(local.lower(), Kind.OTHER)

    def _learn(self, attributes: str) -> None:
        """Which vocabulary a prefix stands for; the first to claim one has it."""
        self._names.clear()
        for prefix, *quoted in _NAMESPACE.findall(attributes):
            if len(self._families) < EXTRAS:
                uri = "".join(quoted).lower()
                family = next((family for part, family in _FAMILIES if part in uri), "other")
                self._families.setdefault(prefix, family)

    def _meant(self, name: str) -> tuple[str, str]:
        """The vocabulary and the local name of an element; a prefix that nothing declares is taken by its name."""
        known = self._names.get(name)
        if known is None:
            prefix, _, local = name.rpartition(":")
            family = self._families.get(prefix)
            if family is None:
                family = prefix if prefix in _PREFIXES else "other"
            known = family, local.lower()
            if len(self._names) < EXTRAS:
                self._names[name] = known
        return known

    # -- parts of an entry ----------------------------------------------------------------------------------

    def _begin_field(self, field: str) -> None:
        if field == "loc":
            if self._draft is not None and self._draft.url:
                self._end_entry()
            self._draft = self._draft or _Draft()
        if self._draft is not None:
            self._field = field
            self._text = ""

    def _end_field(self) -> None:
        draft, field, value = self._draft, self._field, self._text.strip(_BLANK)
        self._field = ""
        if draft is None or not value:
            return
        name = field.rpartition(":")[2]
        if name in _TIMES:
            draft.lastmod = draft.lastmod or read_time(value)
        elif field in ("loc", "link"):
            draft.url = draft.url or value
        elif field == "guid":
            draft.fallback = value
        elif field == "priority":
            draft.priority = _priority(value)
        elif len(draft.media) < EXTRAS:
            draft.media.append(value)

    def _link(self, family: str, attributes: str) -> None:
        """A link element: a version in another language, an Atom entry's address, or RSS's with its text."""
        found = attributes_of(attributes)
        href, relation = found.get("href", "").strip(_BLANK), found.get("rel", "alternate").lower()
        if self._draft is None or relation != "alternate":
            return
        if family == "xhtml":
            if href and found.get("hreflang") and len(self._draft.alternates) < EXTRAS:
                self._draft.alternates.append(href)
        elif href:
            self._draft.url = self._draft.url or href
        else:
            self._begin_field("link")

    def _end_entry(self) -> None:
        draft, self._draft = self._draft, None
        self._field = ""
        entry = draft.entry() if draft is not None else None
        if entry is not None:
            self._made.append(entry)


def _priority(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None
