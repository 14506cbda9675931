"""Rows made of what a crawl knows of its URLs: URLs, captures, links and pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from crawlspace.app.exporting.sources import Read, Sources, text_of
from crawlspace.app.exporting.wanted import What
from crawlspace.archive.record import date_text
from crawlspace.errors import Bug
from crawlspace.exports.columns import Cell, Column, Kind, columns, plain
from crawlspace.exports.graphml import Edge, Node
from crawlspace.exports.sitemap import URL_LIMIT
from crawlspace.exports.sitemap import Entry as SitemapEntry
from crawlspace.exports.tables import Row
from crawlspace.pages.timestamps import read_time
from crawlspace.states import UrlState
from crawlspace.types import Address, Evidence, Relation, Story, Unusable

_WHOLE = ("status", "size", "depth", "attempts", "offset", "length", "elapsed_ms", "pages")
_KINDS = {
    **dict.fromkeys(_WHOLE, Kind.WHOLE),
    **dict.fromkeys(("found_at", "settled_at", "at", "first_seen", "last_seen", "changed_at"), Kind.TIME),
    **dict.fromkeys(("nofollow", "noindex", "noai"), Kind.FLAG),
    **dict.fromkeys(("meta", "data"), Kind.JSON),
}

COLUMNS: dict[What, tuple[Column, ...]] = {
    What.URLS: columns(
        "url canonical host state reason status mime size depth parent attempts found_at settled_at digest copy_of "
        "redirects_to file offset length label meta",
        **_KINDS,
    ),
    What.CAPTURES: columns(
        "url canonical host state at status reason mime size elapsed_ms digest etag last_modified file offset length",
        **_KINDS,
    ),
    What.LINKS: columns(
        "source source_canonical target canonical host relation nofollow unusable", nofollow=Kind.FLAG
    ),
    What.PAGES: columns(
        "url canonical host at status mime language title text declared noindex noai digest copy_of "
        "file offset length",
        **_KINDS,
    ),
    What.RECORDS: columns(
        "url canonical parser version identity data digest pages first_seen last_seen changed_at file offset",
        **_KINDS,
    ),
}

_NO_REQUEST = Evidence(at=0)


class Rows:
    """Makes the rows of each URL."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def of(self, what: What) -> Callable[[Story], Iterable[Row]]:
        """What makes the rows of this kind."""
        match what:
            case What.URLS:
                return self._url
            case What.CAPTURES:
                return self._capture
            case What.LINKS:
                return self._links
            case What.PAGES:
                return self._page
            case What.RECORDS:
                raise Bug("records are not made of URLs")

    def edges(self, story: Story) -> Iterator[Edge]:
        """The links of a URL as edges between pages, those that lead nowhere left out."""
        source = self._sources.identify(story.url)
        if source is None:
            return
        start = Node(source.canonical, source.host)
        for _, where, relation, nofollow in self._found(story):
            if isinstance(where, Address):
                yield Edge(start, Node(where.canonical, where.host), relation.value, nofollow)

    def sitemap(self, story: Story) -> SitemapEntry | None:
        """A URL as a sitemap lists it; None for one that no search engine should be sent to.

        Those are what is no page, copies, and pages that ask not to be indexed or declare another address.
        """
        found = story.evidence
        listed = story.state is UrlState.DONE and story.copy_of is None and len(story.url) < URL_LIMIT
        if not listed or found is None or found.status != 200:
            return None
        if found.mime in ("text/html", "application/xhtml+xml") and not self._may_be_listed(story):
            return None
        changed = read_time(found.last_modified or "")
        return SitemapEntry(story.url, None if changed is None else date_text(changed))

    def _may_be_listed(self, story: Story) -> bool:
        read = self._sources.page(story)
        if read is None or read.page.noindex:
            return False
        declared = read.page.canonical
        return declared is None or self._canonical(declared) in (None, self._canonical(story.url))

    # -- rows -----------------------------------------------------------------------------------------------

    def _url(self, story: Story) -> Iterator[Row]:
        row = {
            **self._facts(story),
            "depth": story.depth,
            "parent": story.parent,
            "attempts": story.attempts,
            "found_at": date_text(story.found_at),
            "settled_at": None if story.settled_at is None else date_text(story.settled_at),
            "copy_of": story.copy_of,
            "redirects_to": story.target,
            "label": story.label,
            "meta": _json(story.meta),
        }
        yield _row(What.URLS, row)

    def _capture(self, story: Story) -> Iterator[Row]:
        found = story.evidence
        if found is None or found.pointer is None:
            return
        row = {
            **self._facts(story),
            "at": date_text(found.at),
            "elapsed_ms": found.elapsed_ms,
            "etag": found.etag,
            "last_modified": found.last_modified,
        }
        yield _row(What.CAPTURES, row)

    def _page(self, story: Story) -> Iterator[Row]:
        found = story.evidence
        if story.state is not UrlState.DONE or found is None or not _is_success(found):
            return
        read = self._sources.page(story)
        text = None if read is None else text_of(read)
        if read is None or text is None:
            return
        row = {
            **self._facts(story),
            "at": date_text(found.at),
            "language": read.page.language,
            "title": plain(read.page.title),
            "text": plain(text),
            "declared": None if read.page.canonical is None else plain(read.page.canonical),
            "noindex": read.page.noindex,
            "noai": read.page.noai,
            "copy_of": story.copy_of,
        }
        yield _row(What.PAGES, row)

    def _facts(self, story: Story) -> dict[str, Cell]:
        """What a row of most kinds tells."""
        found = story.evidence or _NO_REQUEST
        file, offset, length = found.pointer or (None, None, None)
        return {
            "url": story.url,
            "canonical": self._canonical(story.url),
            "host": story.host,
            "state": story.state.name.lower(),
            "reason": story.reason,
            "status": found.status,
            "mime": found.mime,
            "size": None if found is _NO_REQUEST else found.size,
            "digest": None if found.digest is None else found.digest.hex(),
            "file": file,
            "offset": offset,
            "length": length,
        }

    def _links(self, story: Story) -> Iterator[Row]:
        canonical = self._canonical(story.url)
        for text, where, relation, nofollow in self._found(story):
            told = (relation.value, nofollow)
            if isinstance(where, Unusable):
                yield (story.url, canonical, plain(text), None, None, *told, where.reason)
            else:
                yield (story.url, canonical, where.fetch_url, where.canonical, where.host, *told, None)

    def _found(self, story: Story) -> Iterator[tuple[str, Address | Unusable, Relation, bool]]:
        """The redirect of a URL, or the links of its page: text, address, relation, and whether it is nofollow."""
        if story.target is not None:
            where = self._sources.identify(story.target)
            yield story.target, where or Unusable(story.target, "syntax"), Relation.REDIRECT, False
        read = self._sources.page(story) if story.state in (UrlState.DONE, UrlState.STORED) else None
        if read is not None:
            yield from self._links_of(read)

    def _links_of(self, read: Read) -> Iterator[tuple[str, Address | Unusable, Relation, bool]]:
        page = read.page
        for link, where in zip(page.links, self._sources.identify_all(page), strict=True):
            yield link.url, where, link.relation, link.nofollow or page.nofollow

    def _canonical(self, url: str) -> str | None:
        address = self._sources.identify(url)
        return None if address is None else address.canonical


def _row(what: What, cells: dict[str, Cell]) -> Row:
    return [cells[column.name] for column in COLUMNS[what]]


def _is_success(found: Evidence) -> bool:
    return found.status is not None and 200 <= found.status < 300


def _json(text: str | None) -> Cell:
    """JSON that a person gave, on one line and of one piece with the JSON around it."""
    if text is None:
        return None
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.json.decode(text)))
    except msgspec.DecodeError:
        return text
