"""Links in: resolved, judged, classed, and dropped when they were claimed a short while ago.

Every URL enters here, whether from a seed list, a page, a redirect or a handler, so that identity, scope and
priority apply to all of them alike. Nothing here waits: between the question whether a key is known and the claim
that marks it, no other task runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from crawlspace.engine.recent import REFUSED, Recent
from crawlspace.errors import UsageError
from crawlspace.pages.links import Page
from crawlspace.policy.priority import Found, PrioritySettings, Ranking, Score, front_class
from crawlspace.policy.scope import BELONGINGS, Scope
from crawlspace.policy.traps import LEADING, Alarm, TrapWatch, shape_of
from crawlspace.ports import Ledger
from crawlspace.types import (
    Address,
    Claim,
    Link,
    QueuedUrl,
    Reason,
    Relation,
    RequestSpec,
    Story,
    Unusable,
)
from crawlspace.urls import Identity

META_LIMIT = 1024
SCOPE = "scope"
"""The fact that holds the scope as it has grown."""
FOLLOWED = frozenset({Relation.HYPERLINK, Relation.FRAME, Relation.REFRESH, Relation.HINT})
WANTED = FOLLOWED | {Relation.REQUISITE}
KEPT_BY_REDIRECTS = BELONGINGS | {Relation.SITEMAP_FILE}


class Request(msgspec.Struct, frozen=True):
    """A URL to be crawled, as a user gives it: a seed, or a link that a handler follows."""

    url: str
    label: str | None = None
    """A word that the handler finds again on the page."""
    meta: Mapping[str, object] = {}
    """Small facts that travel with the URL; 1 KiB as JSON at most."""
    method: str = "GET"
    body: bytes = b""
    content_type: str = ""

    def spec(self) -> RequestSpec | None:
        """How it is asked for, or None for a plain GET."""
        method = self.method.upper()
        if method == "GET" and not self.body:
            return None
        content_type = self.content_type or ("application/x-www-form-urlencoded" if self.body else "")
        return RequestSpec(method, self.body, content_type)

    def meta_text(self) -> str | None:
        """`meta` as JSON; raises `UsageError` when it is too large or not JSON."""
        if not self.meta:
            return None
        try:
            text = msgspec.json.encode(self.meta).decode()
        except TypeError as error:
            raise UsageError(f"the meta of {self.url} is not JSON: {error}") from None
        if len(text) > META_LIMIT:
            raise UsageError(f"the meta of {self.url} is {len(text)} bytes as JSON; {META_LIMIT} is the most")
        return text


Resolved = tuple[Link, Address]
"""A link of a page, and where it leads. A page has dozens: plain pairs are made in a tenth of a named one's time."""


class Offered(NamedTuple):
    """What a page offers."""

    found: list[Resolved]
    """Where its links lead, each place once; the page itself is left out."""
    links: int
    """All links that are URLs, repeats too."""


class Way(NamedTuple):
    """How an address was found."""

    relation: Relation
    depth: int
    front_class: int
    parent: int | None = None
    nofollow: bool = False
    barred: bool = False
    """The page that gave it asks that none of its links be followed."""
    modified: int | None = None
    """When it was changed last, as whoever names it has it."""
    text: str = ""
    """The words of the link, where they are read."""


@dataclass(slots=True)
class Intake:
    """Turns text with its origin into claims. `scope` is replaced when the crawl's scope grows."""

    identity: Identity
    scope: Scope
    priority: PrioritySettings
    recent: Recent
    follow: bool = True
    """False when only the list given is fetched."""
    obey_meta: bool = True
    """Whether a page's wish that none of its links be followed holds."""
    score: Score | None = None
    """A user's own word on the class of a new URL."""
    revisits: bool = False
    """Whether pages are visited again: only then it matters when a sitemap says that one was changed."""
    growth: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the scope is replaced and written, so that no two changes take each other back."""
    alarms: list[Alarm] = field(default_factory=list)
    """Hosts that began to look like traps and were not told yet."""
    _ranking: Ranking = field(init=False)
    _ranks: bool = field(init=False)
    """Whether people have a word on the order."""
    _traps: TrapWatch = field(default_factory=TrapWatch)

    def __post_init__(self) -> None:
        self._ranking = Ranking.of(self.priority, self.score)
        self._ranks = bool(self.priority.rules) or self.score is not None

    async def widen(self, ledger: Ledger, *seeds: Address) -> None:
        """Draw the scope around these too, and what others drew meanwhile; it is written before it is used."""
        async with self.growth:
            while self.scope.widen(*seeds) is not self.scope:
                kept = (await ledger.notes()).get(SCOPE)
                scope = self.scope.as_kept(kept).widen(*seeds)
                if scope.roots == kept or await ledger.revise(SCOPE, kept, scope.roots):
                    self.scope = scope

    async def hear(self, kept: str | None, ignored: Sequence[str]) -> None:
        """Take the scope over as it is kept, which others may have changed."""
        async with self.growth:
            self.scope = self.scope.as_kept(kept).ignoring(ignored)

    def refusal(self, url: QueuedUrl, traps: Collection[str] = frozenset()) -> Reason | None:
        """Why the scope of now refuses a URL that was queued under another; `traps` are shapes refused by now."""
        address = self.identity.identify(url.url, request=url.request)
        if isinstance(address, Unusable):
            return Reason.URL_LENGTH
        if traps and url.relation in LEADING and shape_of(address.canonical) in traps:
            return Reason.TRAP
        return self.scope.judge(address, depth=url.depth, hops=url.hops, relation=url.relation)

    def seeds(self, requests: Iterable[Request]) -> tuple[list[Claim], list[Unusable]]:
        """Claims for seeds, and those of them that are no URL we could fetch."""
        claims: list[Claim] = []
        unusable: list[Unusable] = []
        for request in requests:
            spec = request.spec()
            address = self.identity.identify(request.url, request=spec)
            if isinstance(address, Unusable):
                unusable.append(address)
                continue
            claims.append(
                Claim(
                    address=address,
                    front_class=self._ranking.front_class(
                        address, Found(0, Relation.SEED), front_class(self.priority, 0, Relation.SEED)
                    ),
                    relation=Relation.SEED,
                    label=request.label,
                    meta=request.meta_text(),
                    request=spec,
                    refusal=self.scope.judge(address, depth=0, hops=0, relation=Relation.SEED),
                    seed_host=self.scope.is_seed_host(address),
                )
            )
        return claims, unusable

    def offered(self, page: Page, source: QueuedUrl) -> Offered:
        """The links of a page that are to be claimed."""
        links = self._wanted(page, source)
        addresses = self.identity.identify_many([link.url for link in links], page.base_url, encoding=page.charset)
        found: list[Resolved] = []
        taken: set[bytes] = {source.key}
        unusable = 0
        for link, address in zip(links, addresses, strict=True):
            if isinstance(address, Unusable):
                unusable += 1
            elif address.key not in taken:
                taken.add(address.key)
                found.append((link, address))
        return Offered(found, len(links) - unusable)

    def page(self, page: Page, source: QueuedUrl, resolved: Sequence[Resolved] | None = None) -> list[Claim]:
        """Claims for the links of a page, resolved already or not; those held by the recent set are left out."""
        barred = page.nofollow and self.obey_meta
        claims: list[Claim] = []
        words = {link: each.text for link, each in zip(page.links, page.contexts, strict=False)}
        way: Way | None = None
        marked = False
        for link, address in self.offered(page, source).found if resolved is None else resolved:
            if way is None or way.relation is not link.relation or marked is not link.nofollow:
                marked = link.nofollow
                way = self._way(source, link.relation, nofollow=marked or page.nofollow, barred=barred)
            claim = self.found(address, way._replace(text=words.get(link, "")) if words else way)
            if claim is not None:
                claims.append(claim)
        return claims

    def followed(self, requests: Sequence[Request], base: str, source: QueuedUrl) -> list[Claim]:
        """Claims for what a handler asked to follow from a page."""
        claims: list[Claim] = []
        for request in requests:
            spec = request.spec()
            address = self.identity.identify(request.url, base, request=spec)
            if isinstance(address, Unusable):
                continue
            claim = self.found(address, self._way(source, Relation.USER))
            if claim is not None:
                claims.append(replace(claim, label=request.label, meta=request.meta_text(), request=spec))
        return claims

    def sitemap_files(self, texts: Iterable[str], base: str) -> list[Claim]:
        """Claims for the sitemaps of a host, resolved against `base`."""
        if not self.follow:
            return []
        way = Way(Relation.SITEMAP_FILE, 1, front_class(self.priority, 1, Relation.SITEMAP_FILE))
        addresses = (self.identity.identify(text, base) for text in texts)
        usable = {address.key: address for address in addresses if not isinstance(address, Unusable)}
        return [claim for address in usable.values() if (claim := self.found(address, way)) is not None]

    def lifted(self, story: Story, reason: Reason) -> Claim | None:
        """The claim that undoes a URL's refusal for this reason; None when scope would refuse it now."""
        address = self.identity.identify(story.url)
        if isinstance(address, Unusable) or self.scope.judge(
            address, depth=story.depth, hops=story.hops, relation=story.relation
        ):
            return None
        best = front_class(self.priority, story.depth, story.relation)
        return Claim(address, story.depth, story.hops, best, relation=story.relation, lifts=reason)

    def redirect(self, target: Address, source: QueuedUrl) -> Claim:
        """The claim for a redirect's target, which has the depth, class and label of its source.

        What the source was wanted for, other than as a page, is still wanted of the target.
        """
        hops = source.hops + 1
        relation = source.relation if source.relation in KEPT_BY_REDIRECTS else Relation.REDIRECT
        return Claim(
            address=target,
            depth=source.depth,
            hops=hops,
            front_class=source.front_class,
            parent=source.id,
            relation=relation,
            label=source.label,
            meta=source.meta,
            refusal=self.scope.judge(target, depth=source.depth, hops=hops, relation=relation),
            seed_host=self.scope.is_seed_host(target),
        )

    def _wanted(self, page: Page, source: QueuedUrl) -> list[Link]:
        """Links that are claimed; of what only belongs to a page none, but what its style sheet loads.

        What belongs to a page comes with it, also where links are not followed.
        """
        if source.relation not in BELONGINGS or self._is_page(source):
            if self.follow:
                # Nearly all are, and looking into a set of relations takes longer than this.
                hyperlink = Relation.HYPERLINK
                return [link for link in page.links if link.relation is hyperlink or link.relation in WANTED]
            return [link for link in page.links if link.relation in BELONGINGS]
        if page.is_style and source.relation is Relation.REQUISITE:
            return [link._replace(relation=Relation.STYLED) for link in page.links]
        return []

    def _is_page(self, source: QueuedUrl) -> bool:
        """Whether the crawl would also have followed a link to it."""
        address = self.identity.identify(source.url)
        if isinstance(address, Unusable):
            return False
        verdict = self.scope.judge(address, depth=source.depth, hops=source.hops, relation=Relation.HYPERLINK)
        return verdict is None

    def _way(self, source: QueuedUrl, relation: Relation, *, nofollow: bool = False, barred: bool = False) -> Way:
        """One link further than the page it is on."""
        depth = source.depth + 1
        return Way(relation, depth, front_class(self.priority, depth, relation), source.id, nofollow, barred)

    def found(self, address: Address, way: Way) -> Claim | None:
        """The claim for an address that was found this way; None when the recent set holds it."""
        best = way.front_class
        if self._ranks:
            best = self._ranking.front_class(address, Found(way.depth, way.relation, way.text), best)
        if way.modified is None and self.recent.holds(address.key, best, way.depth):
            return None
        refusal = self.scope.judge(address, depth=way.depth, hops=0, relation=way.relation, nofollow=way.nofollow)
        if refusal is None and way.barred:
            refusal = Reason.NOFOLLOW
        if refusal is not None and self.recent.holds(address.key, *REFUSED):
            return None
        alarm = self._traps.see(address) if refusal is None else None
        if alarm is not None:
            self.alarms.append(alarm)
        return Claim(
            address=address,
            depth=way.depth,
            front_class=best,
            parent=way.parent,
            relation=way.relation,
            refusal=refusal,
            seed_host=self.scope.is_seed_host(address),
            modified=way.modified,
        )
