"""The parser `links`: what a page links to, in full, and what it says of its own address and of its versions.

One record a page: its links with how they were found, the address that it declares as its own, and its versions in
other languages and other forms. It is what the questions about broken links and about conflicts of canonical URLs are
answered from.
"""

from __future__ import annotations

from typing import Any

from crawlspace.parsers.definition import Match, parser
from crawlspace.parsers.document import Document
from crawlspace.parsers.records import PAGE_KEY, Item
from crawlspace.urls.parser import Parsed, is_http, resolve, without_credentials

VERSIONS_LIMIT = 1000
"""Alternate versions of one page that are kept."""


@parser("links", 1, match=Match.of(type="html"), key=PAGE_KEY)
def links(page: Document) -> Item:
    """The record of one page."""
    read = page.declared
    base = resolve(read.base_url)
    found = [
        {"nofollow": link.nofollow or read.nofollow, "relation": link.relation, "url": target}
        for link in read.links
        if (target := _target(link.url, base)) is not None
    ]
    versions, twins = alternates(page)
    data: dict[str, Any] = {"links": found, "noindex": read.noindex}
    if read.canonical is not None:
        data["canonical"] = page.resolve(read.canonical)
    if versions:
        data["alternates"] = versions
    return Item(data, twins=twins)


def alternates(page: Document) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """A page's versions in other languages, and the addresses where it is in another form, such as JSON."""
    versions: list[dict[str, str]] = []
    twins: dict[str, None] = {}
    for node in page.css("link[rel~=alternate i][href]")[:VERSIONS_LIMIT]:
        attributes = node.attributes
        target = page.resolve(attributes["href"] or "")
        kind = (attributes.get("type") or "").strip().lower()
        if target is None:
            continue
        if attributes.get("hreflang"):
            versions.append({"hreflang": (attributes["hreflang"] or "").strip().lower()[:50], "url": target})
        elif kind.endswith(("json", "xml")) and not kind.endswith(("rss+xml", "atom+xml", "xhtml+xml")):
            twins[target] = None
    return versions, tuple(twins)


def _target(text: str, base: Parsed | None) -> str | None:
    target = resolve(text, base)
    if target is None or not is_http(target):
        return None
    href = target.href
    return without_credentials(target) if "@" in href else href
