"""A page as a handler sees it: what parsers see too, and what more of it is to be crawled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from crawlspace.engine.intake import Request
from crawlspace.exchange import FetchResult
from crawlspace.pages.links import Page as ReadPage
from crawlspace.pages.source import Source
from crawlspace.parsers import Document, Way
from crawlspace.types import QueuedUrl


class Page(Document):
    """One fetched page, its bytes and what was read of it, on its way to being done.

    A handler runs before the page counts as done, so a crash may show it the same page again. What it raises is
    kept with the capture and stops nothing.
    """

    __slots__ = ("requests",)

    def __init__(self, url: QueuedUrl, result: FetchResult, read: ReadPage, source: Source | None = None) -> None:
        super().__init__(result, Way(url.label, url.meta, url.depth), read=read, source=source)
        self.requests: list[Request] = []

    def follow(
        self, url: str | Request, *, label: str | None = None, meta: Mapping[str, object] | None = None
    ) -> None:
        """Crawl this URL too, resolved against the page; scope and robots apply as to any link."""
        request = url if isinstance(url, Request) else Request(url, label, meta or {})
        request.meta_text()  # a meta that is too large is the handler's error, told where it is made
        self.requests.append(request)


Handler = Callable[[Page], Awaitable[None] | None]
