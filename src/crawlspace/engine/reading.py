"""From answer to item: what a fetched URL comes to, before anything is written.

Reads the page, runs the user's handler, collects the claims and decides the settlement. What goes wrong while
reading is kept with the capture and stops nothing: the URL is `stored`, and is read again from the archive.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawlspace import events
from crawlspace.clock import Chance, Clock
from crawlspace.content.digest import body_digest
from crawlspace.engine.asking import request_for
from crawlspace.engine.commit import Item
from crawlspace.engine.documents import Documents
from crawlspace.engine.facts import Known, with_facts
from crawlspace.engine.fingerprints import Content, Fingerprinting
from crawlspace.engine.intake import Intake
from crawlspace.engine.page import Handler, Page
from crawlspace.engine.rendering import Rendering
from crawlspace.engine.routes import Ways
from crawlspace.engine.sitemaps import Announced
from crawlspace.engine.trial import Trial
from crawlspace.engine.walls import Look, Walls
from crawlspace.errors import StoreError
from crawlspace.exchange import Capture, FetchRequest, FetchResult, Reference
from crawlspace.pages.links import Page as ReadPage
from crawlspace.pages.links import PageSettings
from crawlspace.pages.sitemap import looks_like_sitemap
from crawlspace.parsers import Parsed, Parser
from crawlspace.policy.decide import Case, decide, missing, widens_scope
from crawlspace.policy.outcome import REDIRECT_LOOP, Kind, Outcome, dead_end
from crawlspace.policy.recrawl import RecrawlSettings, with_next_visit
from crawlspace.policy.retry import RetrySettings
from crawlspace.ports import Ledger
from crawlspace.types import (
    Address,
    Claim,
    Died,
    Evidence,
    Fingerprints,
    Finished,
    Link,
    ProcessingFailed,
    QueuedUrl,
    Reason,
    Relation,
    Settlement,
    Unchanged,
    Unusable,
)

DETAIL_LIMIT = 500
MIME_LIMIT = 100
VALIDATOR_LIMIT = 200


class Spent(Struct, frozen=True):
    """One leased URL with the answers it got; more than one where the same page redirected to itself."""

    token: int
    hid: int
    url: QueuedUrl
    results: Sequence[FetchResult]
    outcome: Outcome
    gone: tuple[str, ...] = ()
    """The routes that the URL was sent on, the one by which it was asked for last."""


class _Read(NamedTuple):
    """What came of reading a page."""

    claims: list[Claim]
    failure: str | None
    fingerprints: Fingerprints | None = None
    page: ReadPage | None = None
    parsed: tuple[Parsed, ...] = ()
    links: int = 0
    """URLs that it names, repeats too."""


@dataclass(slots=True)
class Reader:
    """Reads answers. One for a run; it holds nothing of a page once the page's item is made."""

    intake: Intake
    ledger: Ledger
    pages: PageSettings
    retry: RetrySettings
    clock: Clock
    chance: Chance
    watch: events.Watcher
    handler: Handler | None = None
    parsers: Sequence[Parser] = ()
    fingerprinting: Fingerprinting | None = None
    walls: Walls | None = None
    """Knows pages that are not there although their status says so."""
    recrawl: RecrawlSettings = field(default_factory=RecrawlSettings)
    rendering: Rendering | None = None
    """What gives pages to a browser before they are read; None: none is."""
    documents: Documents | None = None
    """Reads links of documents that are no web pages; None: nobody does."""
    trial: Trial | None = None
    """Tries what may have brought a worker down."""
    facts: bool = True
    """Whether captures tell what was made of them."""
    ways: Ways = field(default_factory=Ways)
    """Knows where blocked pages go on."""
    see_page: Callable[[ReadPage], None] | None = None
    """Shown each page."""

    async def request(self, url: QueuedUrl, route: str) -> FetchRequest:
        """The request for a URL. What is to be rendered comes whole, whether or not its own bytes have changed."""
        whole = url.before is not None and self.rendering is not None and await self.rendering.expects(url)
        return request_for(url, route, whole=whole)

    async def items(self, spent: Spent) -> AsyncIterator[Item]:
        """The items for one spent URL: what a sitemap announces in parts, and last the one that settles it."""
        if self.rendering is not None:
            shown = await self.rendering.of(spent.url, spent.results[-1], spent.outcome)
            spent = replace(spent, results=[*spent.results[:-1], shown])
        poison = await self._try(spent)
        if poison is not None:
            yield await self.read(spent, failure=poison)
            return
        if not self._announces(spent):
            yield await self.read(spent)
            return
        announced = Announced(self.intake, self.ledger, spent.url, spent.results[-1], self.clock.now())
        failure: str | None = None
        try:
            async for claims in announced.claims():
                yield Item(claims=claims)
        except StoreError:
            raise
        except Exception as error:  # whatever a file does to us is kept, and stops nothing
            failure = _told(error)
        yield await self.read(spent, announced.detail, failure)

    async def read(self, spent: Spent, told: str = "", failure: str | None = None) -> Item:
        """The item that settles one spent URL; `told` and `failure` are what came of reading it so far."""
        captures = [capture_of(result) for result in spent.results if result.response_head]
        evidence = _evidence(spent)
        if told:
            evidence = replace(evidence, detail=told[:DETAIL_LIMIT])
        case, claims = await self._case(spent, evidence)
        settlement: Settlement = decide(case, self.clock.now(), self.chance, self.retry)
        page: ReadPage | None = None
        parsed: tuple[Parsed, ...] = ()
        look = cache(partial(Content.of, spent.results[-1], self.pages))
        if isinstance(settlement, Finished) and failure is None:
            settlement = await self._if_there(settlement, look)
        if isinstance(settlement, Finished):
            # Also a page that broke off on its last try: half of its links are better than none.
            if failure is None and spent.url.relation is not Relation.SITEMAP_FILE:
                read = await self._page(spent.url, spent.results[-1], look)
                claims, failure, page, parsed = read.claims, read.failure, read.page, read.parsed
                settlement = self._known_by(settlement, read)
                if self.walls is not None:
                    await self.walls.read(spent.url, spent.hid, read.fingerprints)
            if failure is not None:
                failed = replace(evidence, error="processing", detail=failure)
                settlement = ProcessingFailed(spent.token, spent.hid, spent.url, failed)
        settlement = with_next_visit(settlement, self.recrawl)
        if isinstance(settlement, Unchanged):
            captures = _referring(captures, spent.url)
        return Item(self._with_facts(captures, spent, settlement, page), settlement, claims, parsed)

    async def _if_there(self, settlement: Finished, look: Look) -> Finished | Died:
        """The settlement, or another when the page is a soft 404."""
        if self.walls is None or settlement.evidence.error is not None or settlement.url.request is not None:
            return settlement
        why = await self.walls.why_missing(settlement.url, settlement.hid, look)
        return settlement if why is None else missing(settlement, why)

    async def again(self, settlement: Finished, result: FetchResult) -> Item | None:
        """The item that lets a stored URL be done, read from its capture; None when that fails again."""
        read = await self._page(settlement.url, result, partial(Content.of, result, self.pages))
        if read.failure is not None:
            return None
        return Item((), self._known_by(settlement, read), read.claims, read.parsed)

    def _with_facts(
        self, captures: list[Capture], spent: Spent, settlement: Settlement, page: ReadPage | None
    ) -> list[Capture]:
        """The captures, the last with what was made of it."""
        if not self.facts:
            return captures
        address = self.intake.identity.identify(spent.url.url, request=spent.url.request)
        known = None if isinstance(address, Unusable) else address
        return with_facts(captures, Known(spent.url, known, spent.results[-1], settlement, page))

    async def _case(self, spent: Spent, evidence: Evidence) -> tuple[Case, list[Claim]]:
        """What is to be decided, and for a redirect the claim of its target."""
        outcome = spent.outcome
        target = self._target(spent) if outcome.kind is Kind.REDIRECT else None
        claims: list[Claim] = []
        if target is not None and target.key == spent.url.key:
            outcome = dead_end(REDIRECT_LOOP)
        elif target is not None:
            claims = [await self._redirect(spent, target)]
        case = Case(
            spent.token,
            spent.hid,
            spent.url,
            outcome,
            evidence,
            target.fetch_url if target else None,
            gone=spent.gone,
            onward=self.ways.onward(spent.url, spent.gone, outcome),
            tries=self.ways.tries(evidence.route),
        )
        return case, claims

    async def _try(self, spent: Spent) -> str | None:
        """Why a suspect is not to be read here; None when it is, or is none."""
        if not spent.url.suspect or self.trial is None or spent.outcome.kind is not Kind.SUCCESS:
            return None
        return await self.trial(spent.results[-1])

    def _announces(self, spent: Spent) -> bool:
        """Whether the answer is to be read as a sitemap: one that was wanted as such, or that shows itself as one."""
        if spent.outcome.kind is not Kind.SUCCESS or not (self.pages.sitemaps and self.intake.follow):
            return False
        return spent.url.relation is Relation.SITEMAP_FILE or looks_like_sitemap(spent.results[-1].body)

    async def _page(self, url: QueuedUrl, result: FetchResult, look: Look) -> _Read:
        try:
            content = look()
            if self.documents is not None and not content.read.links:
                await self._add_links(content, result)
            read = content.read
            page = Page(url, result, read, content.source)
            if self.handler is not None:
                waits = self.handler(page)
                if inspect.isawaitable(waits):
                    await waits
            # What the handler asks for comes first: the page's own link to the same URL has no label to give.
            claims = self.intake.followed(page.requests, read.base_url, url) if page.requests else []
            resolved, links = self.intake.offered(read, url)
            if self.see_page is not None:
                self.see_page(read)
            claims += self.intake.page(read, url, resolved)
            parsed = tuple(found for each in self.parsers if (found := each.run(page)) is not None)
            # Last, since a tree may lose parts by it.
            fingerprints = await self._fingerprints(url, content, [address for _, address in resolved])
        except Exception as error:  # whatever a page or a user's code does to us is kept, and stops nothing
            return _Read([], _told(error))
        return _Read(claims, None, fingerprints, read, parsed, links + len(page.requests))

    async def _add_links(self, content: Content, result: FetchResult) -> None:
        """Links of a document that is no web page."""
        assert self.documents is not None
        links = await self.documents.links(result)
        if links:
            content.read = replace(content.read, links=tuple(map(Link, links)))

    async def _fingerprints(self, url: QueuedUrl, content: Content, links: list[Address]) -> Fingerprints | None:
        address = self.intake.identity.identify(url.url, request=url.request)
        if self.fingerprinting is None or isinstance(address, Unusable):
            return None
        return await self.fingerprinting.of(content, address, links, url.depth)

    def _known_by(self, settlement: Finished, read: _Read) -> Finished:
        """The settlement with what the page is known by, the number of its links, and what it calls its own address.

        Half a page is known by no fingerprints.
        """
        evidence, page = settlement.evidence, read.page
        canonical: str | None = None
        if page is not None and page.canonical is not None:
            address = self.intake.identity.identify(page.canonical, page.base_url)
            canonical = None if isinstance(address, Unusable) else address.fetch_url
        fingerprints = read.fingerprints if evidence.error is None else None
        if fingerprints is not None or canonical is not None:
            fingerprints = fingerprints or evidence.fingerprints
            evidence = replace(evidence, fingerprints=fingerprints, canonical=canonical or evidence.canonical)
        return replace(settlement, links=read.links, evidence=evidence)

    def _target(self, spent: Spent) -> Address | None:
        address = self.intake.identity.identify(spent.outcome.location or "", spent.results[-1].url)
        return None if isinstance(address, Unusable) else address

    async def _redirect(self, spent: Spent, target: Address) -> Claim:
        claim = self.intake.redirect(target, spent.url)
        if claim.refusal is Reason.OUT_OF_SCOPE and widens_scope(spent.url, spent.outcome):
            await self._widen(spent.results[-1].url, target)
            claim = self.intake.redirect(target, spent.url)
        return claim

    async def _widen(self, source: str, target: Address) -> None:
        """A seed that moved for good takes the crawl with it; the new root is written before it is used."""
        await self.intake.widen(self.ledger, target)
        self.watch(events.ScopeWidened(source, target.fetch_url, target.host))


def _evidence(spent: Spent) -> Evidence:
    results, last = spent.results, spent.results[-1]
    headers = last.headers
    return Evidence(
        at=results[0].started_at,
        status=last.status or None,
        detail=(spent.outcome.signature or last.detail)[:DETAIL_LIMIT],
        digest=body_digest(last.body) if last.body else None,
        mime=headers.get("content-type").split(";")[0].strip().lower()[:MIME_LIMIT] or None,
        size=sum(result.wire_size for result in results),
        elapsed_ms=last.elapsed_ms,
        etag=_validator(headers.get("etag")),
        last_modified=_validator(headers.get("last-modified")),
        route=last.route,
    )


def _validator(value: str) -> str | None:
    """What can be sent back at the next visit; one that is too long is not kept, since half of it means nothing."""
    return value if 0 < len(value) <= VALIDATOR_LIMIT else None


def _referring(captures: list[Capture], url: QueuedUrl) -> list[Capture]:
    """The captures of a page that is as it was: the last names the one that is still right."""
    if not captures or url.before is None:
        return captures
    return [*captures[:-1], replace(captures[-1], refers_to=Reference(url.before.url, url.before.at))]


def capture_of(result: FetchResult) -> Capture:
    """The exchange as the archive keeps it."""
    method = result.request_head[: result.request_head.find(b" ")].decode("latin-1")
    return Capture(
        url=result.url,
        at=result.started_at,
        status=result.status,
        request_head=result.request_head,
        request_body=result.request_body,
        response_head=result.response_head,
        payload=result.payload,
        truncated=result.truncated,
        address=result.address,
        protocol=result.protocol,
        method=method or "GET",
        rendered=result.rendered,
    )


def _told(error: Exception) -> str:
    """The failure in one line with the place where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"[:DETAIL_LIMIT]
