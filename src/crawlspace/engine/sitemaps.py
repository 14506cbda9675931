"""A sitemap file becomes claims: in bounded batches, while it is read, and only for hosts it may speak for.

A batch is handed over as soon as it is full, so that a file of 50,000 addresses never is one transaction. A crash in
the middle loses nothing: the file is not settled, is read again, and finds its first batches known.

A site speaks for its own hosts, that is for its registrable domain. For any other it speaks when that host's own
robots.txt names a sitemap on this one (sitemaps.org, "cross submits"); what it says of strangers is passed over, and
can still be found by a link. Indexes are followed three files deep.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from crawlspace.engine.intake import Intake, Way
from crawlspace.exchange import FetchResult
from crawlspace.pages.mime import content_type
from crawlspace.pages.packed import pieces
from crawlspace.pages.robots import RobotsRules
from crawlspace.pages.sitemap import Entry, Kind, SitemapReader
from crawlspace.policy.priority import announced_class, front_class
from crawlspace.ports import Ledger
from crawlspace.types import Address, Claim, QueuedUrl, Relation, Unusable
from crawlspace.urls import host_name, origin_of, registrable_domain

NESTING = 3
"""Files above one another: an index, an index of indexes, and the sitemaps below them."""
BATCH = 1000
STRANGERS = 1000
"""Foreign hosts whose robots.txt one file can have looked at."""


class Announced:
    """One sitemap file while it is read."""

    def __init__(self, intake: Intake, ledger: Ledger, source: QueuedUrl, result: FetchResult, now: int) -> None:
        self._intake = intake
        self._ledger = ledger
        self._source = source
        self._result = result
        self._now = now
        self._reader = SitemapReader(content_type(result.headers).charset)
        self._level = source.depth if source.relation is Relation.SITEMAP_FILE else 1
        own = intake.identity.identify(result.url)
        self._host = "" if isinstance(own, Unusable) else own.host
        self._voices: dict[str, bool] = {}
        self._passed_over = 0

    @property
    def detail(self) -> str:
        """What came of the file, in words."""
        reader = self._reader
        if not reader.count:
            return reader.problem or f"{reader.kind} without addresses"
        parts = [f"{reader.kind} with {reader.count} addresses"]
        if reader.cut:
            parts.append("the rest was left out")
        if self._passed_over:
            parts.append(f"{self._passed_over} of other sites passed over")
        if reader.kind is Kind.INDEX and self._level >= NESTING:
            parts.append("too many indexes above one another, so not followed")
        if reader.problem:
            parts.append(f"stopped by {reader.problem}")
        return ", ".join(parts)

    async def claims(self) -> AsyncIterator[list[Claim]]:
        """The claims of the file, in batches."""
        waiting: list[Entry] = []
        for entries in self._entries():
            waiting += entries
            while len(waiting) >= BATCH:
                yield await self._batch(waiting[:BATCH])
                waiting = waiting[BATCH:]
            await asyncio.sleep(0)
        if waiting:
            yield await self._batch(waiting)

    def _entries(self) -> Iterator[list[Entry]]:
        for piece in pieces(self._result.body):
            yield self._reader.feed(piece)
            if self._reader.over:
                break
        yield self._reader.close()

    async def _batch(self, entries: list[Entry]) -> list[Claim]:
        if self._reader.kind is Kind.INDEX and self._level >= NESTING:
            return []
        claims: dict[bytes, Claim] = {}
        for entry in entries:
            for text in (entry.url, *entry.alternates):
                address = self._intake.identity.identify(text, self._result.url)
                if isinstance(address, Unusable) or address.key in claims:
                    continue
                if not await self._speaks_for(address):
                    self._passed_over += 1
                    continue
                claim = self._intake.found(address, self._way(entry))
                if claim is not None:
                    claims[address.key] = claim
        return list(claims.values())

    def _way(self, entry: Entry) -> Way:
        priority = self._intake.priority
        modified = entry.lastmod if self._intake.revisits else None
        if self._reader.kind is Kind.INDEX:
            best = front_class(priority, 1, Relation.SITEMAP_FILE)
            return Way(Relation.SITEMAP_FILE, self._level + 1, best, self._source.id, modified=modified)
        age = None if entry.lastmod is None else self._now - entry.lastmod
        best = announced_class(priority, 1, entry.priority, age)
        return Way(Relation.SITEMAP, 1, best, self._source.id, modified=modified)

    # -- for whom it may speak ------------------------------------------------------------------------------

    async def _speaks_for(self, address: Address) -> bool:
        host = address.host
        if host == self._host:
            return True
        known = self._voices.get(host)
        if known is None:
            if len(self._voices) >= STRANGERS:
                return False
            known = self._voices[host] = self._same_site(host) or await self._is_named_by(address)
        return known

    def _same_site(self, host: str) -> bool:
        return registrable_domain(host_name(host)) == registrable_domain(host_name(self._host))

    async def _is_named_by(self, address: Address) -> bool:
        """Whether the other host's robots.txt, as far as the crawl has it, names a sitemap on this one."""
        (file,) = await self._ledger.robots([origin_of(address.fetch_url)])
        if file is None:
            return False
        for text in RobotsRules(file.text, "*").sitemaps:
            named = self._intake.identity.identify(text, address.fetch_url)
            if not isinstance(named, Unusable) and named.host == self._host:
                return True
        return False
