"""What a right crawl of the toy web finds, known without crawling it.

A right crawl follows hyperlinks, frames, meta refreshes and redirects from the seeds, within the registrable
domains of the seeds and the domain to which a seed moved for good. It obeys robots.txt, folds spellings by the safe
URL rules, repeats what failed for now, and sends cookies back within one chain of redirects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct

from crawlspace.testing.toyweb.atlas import Atlas, Kind, Node, Trap

MAX_DEPTH = 20
"""Default limit of a crawl's depth; it bounds the traps that have no end of their own."""


class Page(Struct, frozen=True):
    """One page that a right crawl gets."""

    id: str
    """Its one address."""
    spellings: frozenset[str]
    """Every fetch URL under which some page links to it, its own address included."""
    depth: int
    """Fewest links and redirects from a seed."""


class Difference(NamedTuple):
    """What a crawl's pages have against the truth."""

    missing: frozenset[str]
    """Pages that should have been fetched and were not."""
    strange: frozenset[str]
    """URLs fetched as pages that are no page, no trap and on no failing host."""


class FoundTrap(Struct, frozen=True):
    """A trap that a crawl meets, and how deep."""

    trap: Trap
    depth: int

    def bound(self, max_depth: int = MAX_DEPTH) -> int:
        """Most pages of it that a crawl with this depth limit fetches when nothing else stops it."""
        if self.trap.combinations is not None:
            return self.trap.combinations
        return max(max_depth - self.depth + 1, 0)


@dataclass(frozen=True)
class Truth:
    """The answers. Addresses are fetch URLs; hosts are names without port."""

    seeds: tuple[str, ...]
    pages: Mapping[str, Page]
    """Every page to be fetched, by id. Pages of traps and of failing hosts are not among them."""
    page_of: Mapping[str, str]
    """Fetch URL in any spelling to page id, for the whole map."""
    redirects: Mapping[str, str]
    """Redirect edges met on the way."""
    dead: Mapping[str, str]
    """URLs that end in the dead letters, with the class."""
    broken: frozenset[str]
    """Pages whose body breaks off every time: kept as far as they came, after one more try."""
    disallowed: frozenset[str]
    """URLs met that robots.txt forbids."""
    out_of_scope: frozenset[str]
    """URLs met on other domains."""
    traps: Mapping[str, FoundTrap]
    """By prefix: every URL that begins with it belongs to the trap."""
    mirrors: Mapping[str, str]
    """Page id to the page that has the same bytes."""
    print_views: Mapping[str, str]
    """Page id to the page that has the same text."""
    soft_404: frozenset[str]
    """Pages that answer 200 and say that they do not exist."""
    own_folds: Sequence[Mapping[str, str | list[str]]]
    """Entries for the setting `identity.hosts` that fold what only a host's own rule can fold.

    Without them a right crawl fetches those spellings as pages of their own.
    """
    lost_hosts: Mapping[str, str]
    """Hosts that do not answer (for long), with the class of the failure."""
    deferred_hosts: frozenset[str]
    """Hosts whose robots.txt is down: nothing but that may be asked of them."""
    crawl_delays: Mapping[str, int]
    """Host to the milliseconds its robots.txt asks for."""

    @property
    def reachable(self) -> frozenset[str]:
        """Ids of all pages to be fetched."""
        return frozenset(self.pages)

    def trap_of(self, url: str) -> FoundTrap | None:
        """The trap that a URL belongs to."""
        return next((found for prefix, found in self.traps.items() if url.startswith(prefix)), None)

    def compare(self, done: Iterable[str]) -> Difference:
        """Hold the fetch URLs of a crawl's pages (state done, answer a success) against the truth."""
        got: set[str] = set()
        strange: set[str] = set()
        for url in done:
            page = self.page_of.get(url)
            if page in self.pages:
                got.add(str(page))
            elif not self._excused(url):
                strange.add(url)
        return Difference(self.reachable - got, frozenset(strange))

    def _excused(self, url: str) -> bool:
        if url in self.broken or self.trap_of(url) is not None:
            return True
        return urlsplit(url).hostname in self.lost_hosts


@dataclass
class _Walk:
    """What has been met so far."""

    atlas: Atlas
    scope: set[str]
    depths: dict[str, int] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    dead: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    disallowed: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    traps: dict[str, FoundTrap] = field(default_factory=dict)

    def admit(self, url: str, depth: int) -> Node | None:
        """The node behind a URL, or None when a right crawl stops here; says why in its own sets."""
        host = urlsplit(url).hostname or ""
        if _domain(host) not in self.scope:
            self.outside.add(url)
            return None
        if host in self.atlas.lost or host in self.atlas.deferred:
            return None
        trap = self.atlas.trap_of(url)
        if trap is not None:
            self.traps.setdefault(trap.prefix, FoundTrap(trap, depth))
            return None
        page = self.atlas.spellings[url]
        if page in self.atlas.fenced:
            self.disallowed.add(url)
            return None
        return self.atlas.nodes[page]

    def visit(self, node: Node, depth: int, *, seed: bool) -> None:
        """Note what becomes of a node; a seed that moved for good takes its new domain into scope."""
        if node.kind is Kind.PAGE:
            self.depths[node.id] = depth
        elif node.kind is Kind.DEAD:
            self.dead[node.id] = node.detail
        elif node.kind is Kind.BROKEN:
            self.broken.add(node.id)
        else:
            self.redirects[node.id] = node.detail
            if seed and node.permanent:
                self.scope.add(_domain(urlsplit(node.detail).hostname or ""))


def survey(atlas: Atlas) -> Truth:
    """Walk the map from its seeds."""
    walk = _Walk(atlas, {_domain(urlsplit(seed.url).hostname or "") for seed in atlas.seeds})
    queue = deque((seed.url, 0) for seed in atlas.seeds)
    seen: set[str] = set()
    while queue:
        url, depth = queue.popleft()
        node = walk.admit(url, depth)
        if node is None or node.id in seen:
            continue
        seen.add(node.id)
        walk.visit(node, depth, seed=depth == 0)
        queue.extend((link.url, depth + 1) for link in node.links)
    return _truth(atlas, walk)


def _truth(atlas: Atlas, walk: _Walk) -> Truth:
    spellings: dict[str, set[str]] = {}
    for url, page in atlas.spellings.items():
        spellings.setdefault(page, set()).add(url)
    pages = {page: Page(page, frozenset(spellings[page]), depth) for page, depth in walk.depths.items()}
    return Truth(
        seeds=tuple(seed.url for seed in atlas.seeds),
        pages=pages,
        page_of=dict(atlas.spellings),
        redirects=walk.redirects,
        dead=walk.dead,
        broken=frozenset(walk.broken),
        disallowed=frozenset(walk.disallowed),
        out_of_scope=frozenset(walk.outside),
        traps=walk.traps,
        mirrors={page: original for page, original in atlas.mirrors.items() if page in pages},
        print_views={page: original for page, original in atlas.print_views.items() if page in pages},
        soft_404=frozenset(atlas.soft_404 & set(pages)),
        own_folds=tuple(atlas.own_folds),
        lost_hosts=dict(atlas.lost),
        deferred_hosts=frozenset(atlas.deferred),
        crawl_delays=dict(atlas.crawl_delays),
    )


def _domain(host: str) -> str:
    """The registrable domain of a toy host: its last two labels."""
    return ".".join(host.split(".")[-2:])
