"""XPath and CSS on a page by parsel, for those who know it from Scrapy. The one place that knows that library."""

from __future__ import annotations

from typing import Any

from crawlspace.errors import UsageError


def selector(text: str, url: str) -> Any:
    """A page as a `parsel.Selector`; raises `UsageError` when the extra is missing."""
    try:
        from parsel import Selector
    except ImportError as error:
        raise UsageError("`selector` needs the extra `parsel`", hint="pip install 'crawlspace[parsel]'") from error
    return Selector(text=text, base_url=url)
