"""A stored page as a handler sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from crawlspace.engine.intake import Request
from crawlspace.exchange import FetchResult
from crawlspace.pages.encoding import decode
from crawlspace.pages.links import LinkContext
from crawlspace.pages.links import Page as ReadPage
from crawlspace.types import QueuedUrl


class Page:
    """One fetched page, its bytes and what was read of it, on its way to being done.

    A handler runs before the page counts as done, so a crash may show it the same page again. What it raises is
    kept with the capture and stops nothing.
    """

    __slots__ = ("_read", "_result", "_source", "requests")

    def __init__(self, source: QueuedUrl, result: FetchResult, read: ReadPage) -> None:
        self._source = source
        self._result = result
        self._read = read
        self.requests: list[Request] = []

    @property
    def url(self) -> str:
        """What was requested."""
        return self._result.url

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._result.status

    @property
    def body(self) -> bytes:
        """The body decoded of its content coding, cut at `fetch.max_body`."""
        return self._result.body

    @property
    def text(self) -> str:
        """The body as text, in the page's own encoding; what does not fit it is replaced."""
        return decode(self._result.body, self._read.charset)

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers, names in lower case, repeated ones joined by commas."""
        names = dict.fromkeys(name.decode("latin-1").lower() for name, _ in self._result.headers.raw)
        return {name: ", ".join(self._result.headers.all(name)) for name in names}

    @property
    def title(self) -> str:
        """The text of the title element."""
        return self._read.title

    @property
    def canonical(self) -> str | None:
        """What the page declares as its own address, as it stands there."""
        return self._read.canonical

    @property
    def links(self) -> list[str]:
        """Links as they stand in the page."""
        return [link.url for link in self._read.links]

    @property
    def contexts(self) -> list[LinkContext]:
        """What surrounds each of `links`, in the same order; empty unless `discovery.context` is on."""
        return list(self._read.contexts)

    @property
    def declared(self) -> ReadPage:
        """All that was read of the page, its opt-outs and its base address included."""
        return self._read

    @property
    def label(self) -> str | None:
        """The label of the request."""
        return self._source.label

    @property
    def meta(self) -> dict[str, object]:
        """The meta of the request."""
        return msgspec.json.decode(self._source.meta, type=dict[str, object]) if self._source.meta else {}

    @property
    def depth(self) -> int:
        """Links followed from a seed."""
        return self._source.depth

    @property
    def fetched_at(self) -> int:
        """When the request started, ms since 1970 UTC."""
        return self._result.started_at

    def follow(
        self, url: str | Request, *, label: str | None = None, meta: Mapping[str, object] | None = None
    ) -> None:
        """Crawl this URL too, resolved against the page; scope and robots apply as to any link."""
        request = url if isinstance(url, Request) else Request(url, label, meta or {})
        request.meta_text()  # a meta that is too large is the handler's error, told where it is made
        self.requests.append(request)

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"


Handler = Callable[[Page], Awaitable[None] | None]
