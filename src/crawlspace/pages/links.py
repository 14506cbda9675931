"""Pages read: links with how they were found, and what a page declares about itself.

Links are text, as they stand in the page; resolving and judging them is the work of others. A page gives each text
once for each relation, and never more links than its cap; what is dropped is dropped before anything is made of it.
Whatever bytes a server sends, reading them ends, in time that grows with their number, without an exception.

Sources: HTML Standard, "document base URLs" and "link types"; RFC 6596 (canonical).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace
from selectolax.lexbor import LexborAttributes, LexborHTMLParser, LexborNode

from crawlspace.exchange import Headers
from crawlspace.pages import forms, requisites, styles
from crawlspace.pages.encoding import as_utf8, decode, sniff
from crawlspace.pages.meta import (
    NOTHING_SAID,
    Reservation,
    header_links,
    read_directives,
    read_refresh,
    read_reservation,
)
from crawlspace.pages.mime import content_type, is_html
from crawlspace.pages.tree import Tree, parse
from crawlspace.types import Link, Relation
from crawlspace.urls.parser import EDGE, resolve

__all__ = ["LinkContext", "Page", "PageSettings", "is_html", "read_page"]

TEXT_LIMIT: Final = 1000
"""Characters of a title that are kept."""
DECLARATIONS: Final = 100
"""Canonical links and robots directives of a page that are looked at."""
CONTEXT_TEXT: Final = 200
"""Characters of the text of a link that are kept."""
CONTEXT_ROOM: Final = 1 << 20
"""Characters that the texts of a page's links may have in all; an element can hold many links."""
NOFRAMES: Final = 10
"""Elements for browsers without frames that are looked into."""

_SELECTOR: Final = "[href],[src],[content],noframes"
"""What is looked at: every element of a page is held against each alternative, so there are few."""
_HTTP: Final = ("http:", "https:")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_ADDRESS_LIKE: Final = ("http://", "https://", "/", "./", "../", "?")
_WITH_TEXT: Final = frozenset({"a", "area"})
_NO_BASE: Final = ("data:", "javascript:")
_OTHER_VERSIONS: Final = frozenset({"alternate", "next", "prev", "previous"})

Attributes = Mapping[str, str | None]


class PageSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is read of a page."""

    max_links: Annotated[
        int, Meta(description="Links taken from one page; those behind them are left out.", ge=1, le=1_000_000)
    ] = 10_000
    sitemaps: Annotated[
        bool, Meta(description="Read the sitemaps that robots.txt names, and those found on the way.")
    ] = True
    sitemap_paths: Annotated[
        tuple[Annotated[str, Meta(pattern="^/", max_length=500)], ...],
        Meta(description="Paths tried for a sitemap on every host, such as /sitemap.xml.", max_length=100),
    ] = ()
    requisites: Annotated[
        bool,
        Meta(
            description="Fetch images, style sheets, scripts and media of the crawl's pages too, from any host; "
            "they are not followed further."
        ),
    ] = False
    css: Annotated[
        bool, Meta(description="Look for requisites such as fonts in style sheets and style attributes too.")
    ] = False
    forms: Annotated[
        bool, Meta(description="Follow forms that are sent by GET, as they stand; passwords and files never.")
    ] = False
    data_attributes: Annotated[
        tuple[Annotated[str, Meta(pattern="^data-[a-z0-9_-]+$", max_length=100)], ...],
        Meta(description="Attributes such as data-href whose values are followed as links.", max_length=20),
    ] = ()
    pdf: Annotated[
        bool, Meta(description="Follow the links of PDF files too; read in a process of its own (extra `pdf`).")
    ] = False
    context: Annotated[
        bool, Meta(description="Note the text, the place and the kind of each link, for handlers.")
    ] = False
    product: Annotated[
        str, Meta(description="Name by which meta robots and X-Robots-Tag may address this crawler.", min_length=1)
    ] = "crawlspace"


class LinkContext(NamedTuple):
    """What surrounds a link in its page; of several to one address, the first."""

    position: int
    """How many links stand before it."""
    text: str = ""
    """What a reader clicks on: the text, or the description of a picture."""
    rel: str = ""
    """Its relation as it stands there, such as `alternate`, `next` or `prev`."""
    hreflang: str = ""
    """The language of what it leads to."""


class Page(Struct, frozen=True):
    """What was read of an answer."""

    base_url: str
    """What links are relative to: the answer's URL, or what its base element says."""
    charset: str
    """Name of its encoding by the Encoding Standard, in lower case."""
    links: tuple[Link, ...] = ()
    """Not resolved; fragments and the blanks around an address dropped, each text once for each relation."""
    links_cut: bool = False
    """The page has more links than were taken."""
    title: str = ""
    canonical: str | None = None
    """The one address that it declares as its own, as text; None when declarations differ."""
    noindex: bool = False
    nofollow: bool = False
    """The page asks that none of its links be followed; a link's own wish is in the link."""
    language: str | None = None
    noai: bool = False
    """The page asks not to be used for training models."""
    noimageai: bool = False
    """It asks so for its pictures."""
    mining: Reservation = NOTHING_SAID
    """What it says of text and data mining."""
    contexts: tuple[LinkContext, ...] = ()
    """What surrounds each of the links, in the same order; empty unless the settings ask for it."""
    is_style: bool = False
    """The answer is a style sheet."""


def read_page(
    body: bytes,
    url: str,
    headers: Headers,
    limits: PageSettings = PageSettings(),  # noqa: B008 - frozen
    *,
    tree: Tree | None = None,
) -> Page:
    """What links and declarations an answer holds; `url` is the one that was requested.

    Links are read from HTML and XHTML; anything else gives what its headers say. `tree` is the parsed page where the
    caller has it already.
    """
    charset = tree.charset if tree is not None and tree.charset else sniff(body, headers)
    wants_more = limits.context or limits.forms or limits.css or limits.data_attributes
    reading = _FullReading(url, limits) if wants_more else _Reading(url, limits)
    reading.hear(headers)
    if is_html(headers, body):
        if tree is None:
            tree = parse(as_utf8(body, charset))
        reading.cut = tree.cut
        reading.start(tree.document)
        reading.read(tree.document.css(f"{_SELECTOR},{requisites.SELECTOR}" if limits.requisites else _SELECTOR))
        if isinstance(reading, _FullReading):
            reading.read_more(tree.document)
    elif limits.css and content_type(headers).essence == "text/css":
        reading.style(decode(body, "utf-8"))
        return replace(reading.page("utf-8"), is_style=True)
    return reading.page(charset)


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

    def read(self, nodes: Iterable[LexborNode]) -> None:
        """Take what the elements say, in the order of the page."""
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
                if not needed or needed in attributes:
                    take(self, node, attributes)
            if wants_requisites:
                self._requisites(tag, node.attributes)

    def page(self, charset: str) -> Page:
        """All of it."""
        base = self._base_url()
        itself = self.found.pop("", None)
        if itself is not None and base != self.url:
            self.found.setdefault(base, itself._replace(url=base))
        directives = read_directives(self.directives, self.limits.product)
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
            mining=read_reservation(*self.mining.values()),
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
        if not text or (relation.value, text) in self.found:
            return
        if len(self.found) >= self.limits.max_links:
            self.cut = True
            return
        self.found[relation.value, text] = Link(text, relation, nofollow)

    def _of_base(self, _: LexborNode, attributes: Attributes) -> None:
        if self.base is None:
            self.base = attributes["href"] or ""

    def _of_frame(self, _: LexborNode, attributes: Attributes) -> None:
        self._take(attributes["src"], Relation.FRAME)

    def _of_link(self, _: LexborNode, attributes: Attributes) -> None:
        relations = _relations(attributes)
        if "canonical" in relations and len(self.canonicals) < DECLARATIONS:
            self.canonicals.append((attributes["href"] or "").strip(EDGE))
        elif relations & _OTHER_VERSIONS and "stylesheet" not in relations:
            self._take(attributes["href"], Relation.ALTERNATE, nofollow="nofollow" in relations)

    def _of_meta(self, _: LexborNode, attributes: Attributes) -> None:
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

    def _of_noframes(self, node: LexborNode, _: Attributes) -> None:
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


_READERS: Final[Mapping[str, tuple[str, Callable[[_Reading, LexborNode, Attributes], None]]]] = {
    "base": ("href", _Reading._of_base),
    "frame": ("src", _Reading._of_frame),
    "iframe": ("src", _Reading._of_frame),
    "link": ("href", _Reading._of_link),
    "meta": ("content", _Reading._of_meta),
    "noframes": ("", _Reading._of_noframes),
}
"""What is taken from elements, by tag, and the attribute without which there is nothing to take."""


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


def _relations(attributes: Attributes) -> frozenset[str]:
    return frozenset((attributes.get("rel") or "").lower().split())


def _nofollow(attributes: LexborAttributes) -> bool:
    rel = attributes.get("rel")
    return rel is not None and "nofollow" in rel.lower().split()
