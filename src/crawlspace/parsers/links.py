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
from crawlspace.types import Link, Relation
from crawlspace.urls.parser import Parsed, resolve, without_credentials

_HTTP = ("http:", "https:")


@parser("links", 1, match=Match.of(type="html"), key=PAGE_KEY)
def links(page: Document) -> Item:
    """The record of one page."""
    read = page.declared
    base = resolve(read.base_url)
    found = [
        _link(target, link, nofollow=read.nofollow)
        for link in read.links
        if (target := _target(link.url, base)) is not None
    ]
    versions, twins = alternates(page)
    data: dict[str, Any] = {"links": found}
    if read.noindex:
        data["noindex"] = True
    if read.canonical is not None and (canonical := page.resolve(read.canonical)) is not None:
        data["canonical"] = canonical
    if versions:
        data["alternates"] = versions
    return Item(data, twins=twins)


def alternates(page: Document) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """A page's versions in other languages, and the addresses where it is in another form, such as JSON."""
    versions: list[dict[str, str]] = []
    twins: dict[str, None] = {}
    for version in page.declared.versions:
        target = page.resolve(version.address)
        kind = version.type.strip().lower()
        if target is None:
            continue
        if version.hreflang:
            versions.append({"hreflang": version.hreflang.strip().lower()[:50], "url": target})
        elif kind.endswith(("json", "xml")) and not kind.endswith(("rss+xml", "atom+xml", "xhtml+xml")):
            twins[target] = None
    return versions, tuple(twins)


def _link(target: str, link: Link, *, nofollow: bool) -> dict[str, Any]:
    """A link; what is usual of it is left out: a hyperlink that may be followed."""
    found: dict[str, Any] = {"url": target}
    if link.relation is not Relation.HYPERLINK:
        found["relation"] = link.relation
    if nofollow or link.nofollow:
        found["nofollow"] = True
    return found


def _target(text: str, base: Parsed | None) -> str | None:
    target = resolve(text, base)
    if target is None:
        return None
    href = target.href
    if not href.startswith(_HTTP):
        return None
    return without_credentials(target) if "@" in href else href
