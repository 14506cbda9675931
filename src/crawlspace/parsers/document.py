"""A captured page as parsers see it: the same while it is crawled and when it is read again from the archive.

Everything is made when it is first asked for, and once: a parser that wants the title pays for no tree of its own.
Nothing here reaches the web, nor anything else outside the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlspace.content.text import plain_text
from crawlspace.content.volatile import mask
from crawlspace.exchange import FetchResult
from crawlspace.pages.encoding import decode, sniff
from crawlspace.pages.links import LinkContext, PageSettings, read_page
from crawlspace.pages.links import Page as ReadPage
from crawlspace.pages.mime import content_type, is_html
from crawlspace.pages.source import Source
from crawlspace.parsers import selectors
from crawlspace.urls.hosts import origin_of
from crawlspace.urls.parser import is_http, resolve, without_credentials

_PLAIN = PageSettings()


class Way(msgspec.Struct, frozen=True):
    """How a page came to be fetched."""

    label: str | None = None
    meta: str | None = None
    """JSON object."""
    depth: int = 0
    """Links followed from a seed."""


_DIRECT = Way()


class Document:
    """One answer, its bytes and what can be read of it."""

    __slots__ = ("_bounded", "_headers", "_read", "_result", "_settings", "_source", "_way")

    def __init__(  # noqa: PLR0913 -- the answer, how it came, and what was made of it
        self,
        result: FetchResult,
        way: Way = _DIRECT,
        settings: PageSettings = _PLAIN,
        read: ReadPage | None = None,
        source: Source | None = None,
        *,
        bounded: bool = True,
    ) -> None:
        """`read` and `source` are what was made of the answer before; `bounded` as in `pages.tree.parse`."""
        self._result = result
        self._way = way
        self._settings = settings
        self._read = read
        self._source = source
        self._bounded = bounded
        self._headers: dict[str, str] | None = None

    @property
    def url(self) -> str:
        """What was requested."""
        return self._result.url

    @property
    def host(self) -> str:
        """Host of `url`, with its port unless that is the scheme's own."""
        return origin_of(self._result.url).partition("://")[2]

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._result.status

    @property
    def body(self) -> bytes:
        """The body decoded of its content coding, cut at `fetch.max_body`."""
        return self._result.body

    @property
    def charset(self) -> str:
        """Name of its encoding by the Encoding Standard, in lower case."""
        if self._source is not None:
            return self._source.charset
        return self._read.charset if self._read is not None else sniff(self._result.body, self._result.headers)

    @property
    def text(self) -> str:
        """The body as text, in the page's own encoding; what does not fit it is replaced."""
        return decode(self._result.body, self.charset)

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower case, repeated ones joined by commas."""
        if self._headers is None:
            names = dict.fromkeys(name.decode("latin-1").lower() for name, _ in self._result.headers.raw)
            self._headers = {name: ", ".join(self._result.headers.all(name)) for name in names}
        return self._headers

    @property
    def type(self) -> str:
        """Media type as declared, such as `text/html`; empty when none is."""
        return content_type(self._result.headers).essence

    @property
    def is_html(self) -> bool:
        """Whether it is HTML or XHTML, by its type or, without one, by its first bytes."""
        return is_html(self._result.headers, self._result.body)

    @property
    def declared(self) -> ReadPage:
        """All that was read of the page, its opt-outs and its base address included."""
        if self._read is None:
            source = self._markup() if self.is_html else None
            self._read = read_page(
                self._result.body, self._result.url, self._result.headers, self._settings, source=source
            )
        return self._read

    @property
    def title(self) -> str:
        """The text of the title element."""
        return self.declared.title

    @property
    def canonical(self) -> str | None:
        """What the page declares as its own address, as it stands there."""
        return self.declared.canonical

    @property
    def language(self) -> str | None:
        """The language that the page declares."""
        return self.declared.language

    @property
    def links(self) -> list[str]:
        """Links as they stand in the page."""
        return [link.url for link in self.declared.links]

    @property
    def contexts(self) -> list[LinkContext]:
        """What surrounds each of `links`, in the same order; empty unless `discovery.context` is on."""
        return list(self.declared.contexts)

    @property
    def label(self) -> str | None:
        """The label of the request."""
        return self._way.label

    @property
    def meta(self) -> dict[str, object]:
        """The meta of the request."""
        return msgspec.json.decode(self._way.meta, type=dict[str, object]) if self._way.meta else {}

    @property
    def depth(self) -> int:
        """Links followed from a seed."""
        return self._way.depth

    @property
    def fetched_at(self) -> int:
        """When the request started, ms since 1970 UTC."""
        return self._result.started_at

    # -- looking into it ------------------------------------------------------------------------------------

    @property
    def tree(self) -> LexborHTMLParser:
        """The parsed page (selectolax, lexbor). Of one tree for all parsers: read it, do not change it."""
        return self._markup().tree.document

    def css(self, query: str) -> list[LexborNode]:
        """The elements that a CSS selector finds, in the order of the page."""
        return list(self.tree.css(query))

    def first(self, query: str) -> LexborNode | None:
        """The first element that a CSS selector finds."""
        return self.tree.css_first(query)

    @property
    def selector(self) -> Any:
        """The page as a `parsel.Selector`, with XPath; needs the extra `parsel`."""
        return selectors.selector(self.text, self.url)

    def json(self) -> Any:
        """The body as JSON; raises `ValueError` when it is none."""
        return msgspec.json.decode(self.text)

    @property
    def plain(self) -> str:
        """What a reader could see, white space folded; of text that is no HTML, all of it."""
        if self.is_html:
            if self._source is None:
                # Who wants the text mostly wants links and declarations too: one look finds them all.
                self._markup(wants_text=True).scan(self._settings.max_links)
            return mask(self._markup().text).decode()
        return plain_text(self.text)

    def resolve(self, address: str) -> str | None:
        """An address on the page in full, without its fragment; None when it is none of http or https."""
        target = resolve(address, resolve(self.declared.base_url))
        if target is None or not is_http(target):
            return None
        return without_credentials(target).partition("#")[0]

    @property
    def may_cost_too_much(self) -> bool:
        """Whether a parser without bounds could take much longer for the page than its size says."""
        return self._markup().may_cost_too_much

    def _markup(self, *, wants_text: bool = False) -> Source:
        if self._source is None:
            self._source = Source(self._result.body, self.charset, wants_text=wants_text, bounded=self._bounded)
        return self._source

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status} {self.url}>"
