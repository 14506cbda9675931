"""Links in: resolved, judged, classed, and dropped when they were claimed a short while ago.

Every URL enters here, whether from a seed list, a page, a redirect or a handler, so that identity, scope and
priority apply to all of them alike. Nothing here waits: between the question whether a key is known and the claim
that marks it, no other task runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from crawlspace.engine.recent import REFUSED, Recent
from crawlspace.errors import UsageError
from crawlspace.pages.links import Page
from crawlspace.policy.priority import PrioritySettings, front_class
from crawlspace.policy.scope import Scope
from crawlspace.types import Address, Claim, QueuedUrl, Relation, RequestSpec, Unusable
from crawlspace.urls import Identity

META_LIMIT = 1024
FOLLOWED = frozenset({Relation.HYPERLINK, Relation.FRAME, Relation.REFRESH})


@dataclass(frozen=True, slots=True)
class Request:
    """A URL to be crawled, as a user gives it: a seed, or a link that a handler follows."""

    url: str
    label: str | None = None
    """A word that the handler finds again on the page."""
    meta: Mapping[str, object] = field(default_factory=dict)
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


@dataclass(slots=True)
class Intake:
    """Turns text with its origin into claims. `scope` is replaced when the crawl's scope grows."""

    identity: Identity
    scope: Scope
    priority: PrioritySettings
    recent: Recent
    follow: bool = True
    """False when only the list given is fetched."""

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
                    front_class=front_class(self.priority, 0, Relation.SEED),
                    relation=Relation.SEED,
                    label=request.label,
                    meta=request.meta_text(),
                    request=spec,
                    refusal=self.scope.judge(address, depth=0, hops=0, relation=Relation.SEED),
                    seed_host=self.scope.is_seed_host(address),
                )
            )
        return claims, unusable

    def page(self, page: Page, source: QueuedUrl) -> list[Claim]:
        """Claims for the links of a page; those held by the recent set are left out."""
        if not self.follow:
            return []
        links = [link for link in page.links if link.relation in FOLLOWED]
        addresses = self.identity.identify_many([link.url for link in links], page.base_url, encoding=page.charset)
        claims: list[Claim] = []
        taken: set[bytes] = set()
        for link, address in zip(links, addresses, strict=True):
            if isinstance(address, Unusable) or address.key in taken or address.key == source.key:
                continue
            taken.add(address.key)
            claim = self._linked(address, source, link.relation, nofollow=link.nofollow or page.nofollow)
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
            claim = self._linked(address, source, Relation.USER)
            if claim is not None:
                claims.append(claim._replace(label=request.label, meta=request.meta_text(), request=spec))
        return claims

    def redirect(self, target: Address, source: QueuedUrl) -> Claim:
        """The claim for a redirect's target, which has the depth, class and label of its source."""
        hops = source.hops + 1
        return Claim(
            address=target,
            depth=source.depth,
            hops=hops,
            front_class=source.front_class,
            parent=source.id,
            relation=Relation.REDIRECT,
            label=source.label,
            meta=source.meta,
            refusal=self.scope.judge(target, depth=source.depth, hops=hops, relation=Relation.REDIRECT),
            seed_host=self.scope.is_seed_host(target),
        )

    def _linked(
        self, address: Address, source: QueuedUrl, relation: Relation, *, nofollow: bool = False
    ) -> Claim | None:
        depth = source.depth + 1
        best = front_class(self.priority, depth, relation)
        if self.recent.holds(address.key, best, depth):
            return None
        refusal = self.scope.judge(address, depth=depth, hops=0, relation=relation, nofollow=nofollow)
        if refusal is not None and self.recent.holds(address.key, *REFUSED):
            return None
        return Claim(
            address=address,
            depth=depth,
            front_class=best,
            parent=source.id,
            relation=relation,
            refusal=refusal,
            seed_host=self.scope.is_seed_host(address),
        )
