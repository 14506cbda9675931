"""Pages read: links with how they were found, and what a page declares about itself.

Links are text, as they stand in the page; resolving and judging them is the work of others. A page gives each text
once for each relation, and never more links than its cap; what is dropped is dropped before anything is made of it.
Whatever bytes a server sends, reading them ends, in time that grows with their number, without an exception.

Sources: HTML Standard, "document base URLs" and "link types"; RFC 6596 (canonical).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import Final

from msgspec.structs import replace
from selectolax.lexbor import LexborAttributes, LexborHTMLParser, LexborNode

from crawlspace.exchange import Headers
from crawlspace.pages import forms, requisites, styles
from crawlspace.pages.encoding import decode, sniff
from crawlspace.pages.meta import (
    NO_DIRECTIVES,
    NOTHING_SAID,
    header_links,
    read_directives,
    read_refresh,
    read_reservation,
)
from crawlspace.pages.mime import content_type, is_html
from crawlspace.pages.page import LinkContext, Page, PageSettings, Version
from crawlspace.pages.scanning import Scan
from crawlspace.pages.source import Source
from crawlspace.pages.tree import parse
from crawlspace.types import Link, Relation
from crawlspace.urls.parser import EDGE, resolve

__all__ = ["LinkContext", "Page", "PageSettings", "Version", "is_html", "read_page"]

TEXT_LIMIT: Final = 1000
"""Characters of a title that are kept."""
DECLARATIONS: Final = 100
"""Canonical links and robots directives of a page that are looked at."""
CONTEXT_TEXT: Final = 200
"""Characters of the text of a link that are kept."""
CONTEXT_ROOM: Final = 1 << 20
"""Characters that the texts of a page's links may have in all; an element can hold many links."""
VERSIONS: Final = 1000
"""Alternate versions of a page that are kept."""
NOFRAMES: Final = 10
"""Elements for browsers without frames that are looked into."""

_SELECTOR: Final = "[href],[src],[content],noframes"
"""What is looked at: every element of a page is held against each alternative, so there are few."""
_HTTP: Final = ("http:", "https:")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_ADDRESS_LIKE: Final = ("http://", "https://", "/", "./", "../", "?")
_WITH_TEXT: Final = frozenset({"a", "area"})
_NO_BASE: Final = ("data:", "javascript:")
_USUAL_REL: Final = 100
"""Characters of a link's relations up to which they are remembered: nearly all links have one of a few."""
_OTHER_VERSIONS: Final = frozenset({"alternate", "next", "prev", "previous"})

_LINK: Final = partial(tuple.__new__, Link)
"""Makes a link of its values, of which a page has dozens, in half the time that its class takes."""

Attributes = Mapping[str, str | None]


def read_page(
    body: bytes,
    url: str,
    headers: Headers,
    limits: PageSettings = PageSettings(),  # noqa: B008 - frozen
    *,
    source: Source | None = None,
) -> Page:
    """What links and declarations an answer holds; `url` is the one that was requested.

    Links are read from HTML and XHTML; anything else gives what its headers say. `source` is the page's markup where
    the caller has it already. Pages are scanned; a tree is made of those that are odd, and where more is wanted than
    a scan gives.
    """
    charset = source.charset if source is not None else sniff(body, headers)
    wants_more = limits.context or limits.forms or limits.css or limits.data_attributes
    reading = _FullReading(url, limits) if wants_more else _Reading(url, limits)
    reading.hear(headers)
    if is_html(headers, body):
        if source is None:
            source = Source(body, charset)
        found = None if wants_more or limits.requisites else source.scan(limits.max_links)
        if found is None or found.odd:
            _read_tree(reading, source)
        else:
            reading.read_scan(found)
    elif limits.css and content_type(headers).essence == "text/css":
        reading.style(decode(body, "utf-8"))
        return replace(reading.page("utf-8"), is_style=True)
    return reading.page(charset)


def _read_tree(reading: _Reading, source: Source) -> None:
    document, reading.cut, _ = source.tree
    reading.start(document)
    reading.read(document.css(f"{_SELECTOR},{requisites.SELECTOR}" if reading.limits.requisites else _SELECTOR))
    if isinstance(reading, _FullReading):
        reading.read_more(document)


class _Reading:
    """A page while it is read."""

    __slots__ = (
        "base",
        "canonicals",
        "cut",
        "directives",
        "found",
        "language",
        "limits",
        "mining",
        "noframes",
        "title",
        "url",
        "versions",
    )

    def __init__(self, url: str, limits: PageSettings) -> None:
        self.url = url
        self.limits = limits
        self.base: str | None = None
        self.cut = False
        self.found: dict[str | tuple[str, str], Link] = {}
        self.canonicals: list[str] = []
        self.directives: list[str] = []
        self.mining: dict[str, list[str]] = {"tdm-reservation": [], "tdm-policy": []}
        self.language: str | None = None
        self.noframes = 0
        self.title: str | None = None
        self.versions: list[Version] = []

    def hear(self, headers: Headers) -> None:
        """Take what the headers say."""
        self.directives += headers.all("x-robots-tag")[:DECLARATIONS]
        for name, values in self.mining.items():
            values += [text[:TEXT_LIMIT] for text in headers.all(name)[:DECLARATIONS]]
        self.language = headers.get("content-language").split(",")[0].strip()[:TEXT_LIMIT] or None
        if refresh := read_refresh(headers.get("refresh")):
            self._take(refresh.target, Relation.REFRESH)
        for text in header_links(headers, "canonical")[:DECLARATIONS]:
            target = resolve(text, resolve(self.url))
            self.canonicals += [target.href] if target else []

    def start(self, document: LexborHTMLParser) -> None:
        """Take the language and the title."""
        root, head = document.root, document.head
        language = None if root is None else root.attrs.get("lang")
        self.language = (language or "").strip()[:TEXT_LIMIT] or self.language
        node = None if head is None else head.css_first("title")
        if node is None:
            # Drawings have titles too.
            titles = document.css("title")
            node = next((each for each in titles if each.parent is None or each.parent.tag != "svg"), None)
        self.title = "" if node is None else " ".join(node.text().split())[:TEXT_LIMIT]

    def read_scan(self, scan: Scan) -> None:
        """Take what a scan found, in the order of the page."""
        found, most = self.found, self.limits.max_links
        link, usual = _LINK, Relation.HYPERLINK
        self.cut = scan.cut
        self.language = (scan.language or "").strip()[:TEXT_LIMIT] or self.language
        self.title = " ".join((scan.title or "").split())[:TEXT_LIMIT]
        for event in scan.events:
            if len(event) == 3:
                tag, attributes, in_head = event
                _READERS[tag][1](self, attributes, in_head)
            elif len(found) < most:
                address, nofollow = event
                found[address] = link((address, usual, nofollow))
            else:
                self.cut = True

    def read(self, nodes: Iterable[LexborNode]) -> None:
        """Take what the elements of a tree say, in the order of the page."""
        found, wants_requisites = self.found, self.limits.requisites
        for node in nodes:
            tag = node.tag or ""
            if tag == "a" or tag == "area":
                # Most links of a long page are repeats, to its own parts or those of others: they end here.
                own = node.attrs
                value = own.get("href")
                if value is None and (value := _lesser_address(own)) is None:
                    continue
                known = found.get(value[: value.index("#")] if "#" in value else value)
                if known is None or known.nofollow:
                    self._anchor(own, value)
            elif tag in _READERS:
                attributes = node.attributes
                needed, take = _READERS[tag]
                if needed in attributes:
                    take(self, attributes, tag == "link" and _is_in_head(node))
            elif tag == "noframes":
                self._of_noframes(node)
            if wants_requisites:
                self._requisites(tag, node.attributes)

    def page(self, charset: str) -> Page:
        """All of it."""
        base = self._base_url()
        itself = self.found.pop("", None)
        if itself is not None and base != self.url:
            self.found.setdefault(base, itself._replace(url=base))
        # Most pages say nothing of this, and are not asked what.
        directives = read_directives(self.directives, self.limits.product) if self.directives else NO_DIRECTIVES
        mining = read_reservation(*self.mining.values()) if any(self.mining.values()) else NOTHING_SAID
        return Page(
            base_url=base,
            charset=charset,
            links=tuple(self.found.values()),
            links_cut=self.cut,
            title=self.title or "",
            canonical=self._canonical(base),
            noindex=directives.noindex,
            nofollow=directives.nofollow,
            language=self.language,
            noai=directives.noai,
            noimageai=directives.noimageai,
            mining=mining,
            versions=tuple(self.versions),
        )

    # -- elements -------------------------------------------------------------------------------------------

    def _anchor(self, attributes: LexborAttributes, value: str) -> None:
        text = _address(value)
        if text is None:
            return
        known = self.found.get(text)
        if known is None and len(self.found) >= self.limits.max_links:
            self.cut = True
        elif known is None or known.nofollow:
            self.found[text] = Link(text, Relation.HYPERLINK, _nofollow(attributes))

    def _take(self, value: str | None, relation: Relation, *, nofollow: bool = False) -> None:
        text = _address(value or "")
        if not text or (relation, text) in self.found:
            return
        if len(self.found) >= self.limits.max_links:
            self.cut = True
            return
        self.found[relation, text] = Link(text, relation, nofollow)

    def _of_base(self, attributes: Attributes, _: bool) -> None:
        if self.base is None:
            self.base = attributes["href"] or ""

    def _of_frame(self, attributes: Attributes, _: bool) -> None:
        self._take(attributes["src"], Relation.FRAME)

    def _of_link(self, attributes: Attributes, in_head: bool) -> None:
        relations = _relations(attributes)
        if in_head and "alternate" in relations and len(self.versions) < VERSIONS:
            address, language, kind = (attributes.get(name) or "" for name in ("href", "hreflang", "type"))
            self.versions.append(Version(address, language, kind))
        if "canonical" in relations and len(self.canonicals) < DECLARATIONS:
            self.canonicals.append((attributes["href"] or "").strip(EDGE))
        elif relations & _OTHER_VERSIONS and "stylesheet" not in relations:
            self._take(attributes["href"], Relation.ALTERNATE, nofollow="nofollow" in relations)

    def _of_meta(self, attributes: Attributes, _: bool) -> None:
        content = attributes.get("content") or ""
        if (attributes.get("http-equiv") or "").lower() == "refresh":
            if refresh := read_refresh(content):
                self._take(refresh.target, Relation.REFRESH)
            return
        name = (attributes.get("name") or "").strip().lower()
        if name in ("robots", self.limits.product.lower()):
            self.directives += [content][: DECLARATIONS - len(self.directives)]
        elif name in self.mining and len(self.mining[name]) < DECLARATIONS:
            self.mining[name].append(content[:TEXT_LIMIT])

    def _of_noframes(self, node: LexborNode) -> None:
        """What browsers without frames show; to the parser it is text."""
        self.noframes += 1
        if self.noframes <= NOFRAMES:
            self.read(parse(node.text().encode("utf-8", "replace")).document.css("a[href],area[href]"))

    def _requisites(self, tag: str, attributes: Attributes) -> None:
        for text in requisites.requisites(tag, attributes, _relations(attributes)):
            self._take(text, Relation.REQUISITE)

    def style(self, text: str) -> None:
        """Take what a style sheet loads."""
        for address in styles.addresses(text):
            self._take(address, Relation.REQUISITE)

    # -- what they come to ----------------------------------------------------------------------------------

    def _base_url(self) -> str:
        if self.base is None:
            return self.url
        base = resolve(self.base.strip(EDGE), resolve(self.url))
        return self.url if base is None or base.protocol in _NO_BASE else base.href.partition("#")[0]

    def _canonical(self, base: str) -> str | None:
        """Several that agree are one, several that differ are none."""
        distinct = dict.fromkeys(text for text in self.canonicals if text)
        if len(distinct) > 1:
            against = resolve(base)
            if len({target.href if (target := resolve(text, against)) else text for text in distinct}) > 1:
                return None
        return next(iter(distinct), None)


class _FullReading(_Reading):
    """A page read for more than its links: apart, so that nobody else pays for it."""

    __slots__ = ("contexts", "room")

    def __init__(self, url: str, limits: PageSettings) -> None:
        super().__init__(url, limits)
        self.contexts: dict[str | tuple[str, str], LinkContext] = {}
        self.room = CONTEXT_ROOM

    def read(self, nodes: Iterable[LexborNode]) -> None:
        if not self.limits.context:
            super().read(nodes)
            return
        for node in nodes:
            before = len(self.found)
            super().read([node])
            for key in islice(reversed(self.found), max(0, len(self.found) - before)):
                self.contexts.setdefault(key, self._context(node))

    def read_more(self, document: LexborHTMLParser) -> None:
        """Take what the settings ask for beside links."""
        if self.limits.forms:
            for form in document.css(forms.SELECTOR)[: forms.FORMS]:
                self._take(forms.address(form), Relation.HINT)
        for name in self.limits.data_attributes:
            for node in document.css(f"[{name}]"):
                value = (node.attributes[name] or "").strip(EDGE)
                if value.startswith(_ADDRESS_LIKE):
                    self._take(value, Relation.HINT)
        if self.limits.css:
            for node in document.css("style"):
                self.style(node.text())
            for node in document.css("[style*='url(' i]"):
                self.style(node.attributes["style"] or "")

    def page(self, charset: str) -> Page:
        page = super().page(charset)
        if not self.limits.context:
            return page
        itself = self.contexts.get("", LinkContext(0))
        contexts = [self.contexts.get(key, itself) for key in self.found]
        return replace(page, contexts=tuple(each._replace(position=at) for at, each in enumerate(contexts)))

    def _context(self, node: LexborNode) -> LinkContext:
        attributes = node.attributes
        text = ""
        if self.room > 0 and node.tag in _WITH_TEXT:
            text = " ".join(node.text(separator=" ").split())
            self.room -= len(text)
            picture = None if text else node.css_first("img[alt]")
            text = text or (picture.attributes["alt"] if picture is not None else "") or attributes.get("title") or ""
        return LinkContext(
            0,
            (text or attributes.get("alt") or "")[:CONTEXT_TEXT],
            (attributes.get("rel") or "")[:CONTEXT_TEXT],
            (attributes.get("hreflang") or "")[:CONTEXT_TEXT],
        )


_READERS: Final[Mapping[str, tuple[str, Callable[[_Reading, Attributes, bool], None]]]] = {
    "base": ("href", _Reading._of_base),
    "frame": ("src", _Reading._of_frame),
    "iframe": ("src", _Reading._of_frame),
    "link": ("href", _Reading._of_link),
    "meta": ("content", _Reading._of_meta),
}
"""What is taken from elements, by tag, and the attribute without which there is nothing to take.

It is told the attributes, and whether the element stands in the head.
"""


def _address(value: str) -> str | None:
    """An address without the blanks around it and its fragment; None when its scheme is none that is fetched."""
    text = value.strip(EDGE)
    if "#" in text:
        text = text[: text.index("#")]
    if ":" in text and not text.startswith(_HTTP):
        scheme = _SCHEME.match(text)
        if scheme and scheme[0].lower() not in _HTTP:
            return None
    return text


def _lesser_address(attributes: LexborAttributes) -> str | None:
    """Where a link leads whose address is empty, or, in drawings, called `xlink:href`; None when it is no link."""
    return "" if "href" in attributes else attributes.get("xlink:href")


def _is_in_head(node: LexborNode) -> bool:
    """Whether an element is one of the head, or of what the head holds for browsers without scripts."""
    parent = node.parent
    if parent is not None and parent.tag == "noscript":
        parent = parent.parent
    return parent is not None and parent.tag == "head"


def _relations(attributes: Attributes) -> frozenset[str]:
    rel = attributes.get("rel") or ""
    return _words(rel) if len(rel) <= _USUAL_REL else frozenset(rel.lower().split())


@lru_cache(maxsize=256)
def _words(rel: str) -> frozenset[str]:
    return frozenset(rel.lower().split())


def _nofollow(attributes: LexborAttributes) -> bool:
    rel = attributes.get("rel")
    return rel is not None and "nofollow" in rel.lower().split()
