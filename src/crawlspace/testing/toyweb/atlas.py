"""The map of a toy web while it is drawn, and the answers of its hosts once it is.

A page has one address (its id: the canonical URL under the safe rules) and is served under every spelling that some
page links to. What has no entry is answered by its origin's wild reply, or with 404.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from enum import StrEnum, unique
from urllib.parse import urlsplit

from msgspec import Struct

from crawlspace.testing.toyweb.answer import HTML, NOT_FOUND, Answer, Ask, Reply, always, plain, redirect
from crawlspace.testing.toyweb.prose import Href, Sheet, write
from crawlspace.testing.toyweb.recipe import Feature, Recipe
from crawlspace.testing.toyweb.spelling import Fold, folds_of, spell


@unique
class Kind(StrEnum):
    """What becomes of an address when a right crawler asks for it."""

    PAGE = "page"
    REDIRECT = "redirect"
    DEAD = "dead"
    BROKEN = "broken"


class Node(Struct, frozen=True):
    """One address of the web."""

    id: str
    reply: Reply
    kind: Kind = Kind.PAGE
    links: tuple[Href, ...] = ()
    detail: str = ""
    """Target of a redirect, or class of death."""
    permanent: bool = False


class Trap(Struct, frozen=True):
    """Addresses without end, or far more of them than there is to read."""

    prefix: str
    """Every address that begins with it belongs to the trap."""
    kind: Feature
    combinations: int | None = None
    """Distinct canonical URLs, where their number is finite."""


class Atlas:
    """Hosts, pages, spellings and what is known of them. Drawn once, then only asked."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.seeds: list[Href] = []
        self.hosts: dict[str, None] = {}
        self.nodes: dict[str, Node] = {}
        self.spellings: dict[str, str] = {}
        self.fronts: list[str] = []
        self.traps: list[Trap] = []
        self.fenced: set[str] = set()
        """Ids that robots.txt forbids."""
        self.crawl_delays: dict[str, int] = {}
        """Milliseconds, by host."""
        self.lost: dict[str, str] = {}
        """Hosts that do not answer (for long), with the class of the failure."""
        self.deferred: set[str] = set()
        """Hosts whose robots.txt cannot be had."""
        self.mirrors: dict[str, str] = {}
        self.print_views: dict[str, str] = {}
        self.soft_404: set[str] = set()
        self.own_folds: list[dict[str, str | list[str]]] = []
        self._special: dict[str, Reply] = {}
        self._wild: dict[tuple[str, str], Reply] = {}
        self._bodies: dict[str, bytes] = {}

    # -- drawing ------------------------------------------------------------------------------------------------

    def has(self, feature: Feature) -> bool:
        return feature in self.recipe.features

    def host(self, name: str, robots: str | None = None) -> str:
        """Open a host; gives its http origin. Without `robots` its robots.txt is 404."""
        self.hosts[name] = None
        if robots is not None:
            self.special(f"http://{name}/robots.txt", always(plain(200, robots)))
        return f"http://{name}"

    def seed(self, text: str, page: str) -> None:
        self.seeds.append(Href(text, page, page))

    def front(self, page: str) -> None:
        """A page that the shop's first page links to."""
        self.fronts.append(page)

    def special(self, url: str, reply: Reply) -> None:
        """Answer this URL so; it is no page of the map."""
        self._special[url] = reply

    def wild(self, origin: str, reply: Reply) -> None:
        """Answer whatever this origin has no entry for."""
        parts = urlsplit(origin)
        self._wild[parts.scheme, parts.netloc] = reply

    def add(self, node: Node) -> None:
        """Put an address on the map, with the spellings of its links."""
        if node.id in self.nodes:
            raise ValueError(f"the toy web has two pages at {node.id}")
        self.nodes[node.id] = node
        self._know(node.id, node.id)
        for link in node.links:
            self._know(link.url, link.page)

    def _know(self, url: str, page: str) -> None:
        if self.spellings.setdefault(url, page) != page:
            raise ValueError(f"the toy web has two pages for {url}: {page} and {self.spellings[url]}")

    def page(self, page: str, sheet: Sheet, reply: Reply | None = None) -> None:
        """A page written from `sheet`, answered plainly unless a `reply` says otherwise."""
        self.add(Node(page, reply or self.honest(page, sheet), links=sheet.links))

    def honest(self, page: str, sheet: Sheet) -> Reply:
        """Answer 200 with the written page."""
        fields = HTML if sheet.charset == "utf-8" else (("Content-Type", f"text/html; charset={sheet.charset}"),)
        return lambda _ask: Answer(200, fields, self.body(page, sheet))

    def body(self, page: str, sheet: Sheet) -> bytes:
        """The bytes of a page; written once."""
        body = self._bodies.get(page)
        if body is None:
            body = self._bodies[page] = write(sheet, self.recipe.chance("voice", sheet.voice or page))
        return body

    def moved(self, url: str, target: str, status: int = 301, location: str = "") -> None:
        """A redirect; `location` is its text where that differs from the target."""
        reply = always(redirect(status, location or target))
        self.add(Node(url, reply, Kind.REDIRECT, (Href(target, target, target),), target, status in (301, 308)))

    def dead(self, url: str, failure: str, reply: Reply) -> None:
        """An address that ends in the dead letters, class `failure`."""
        self.add(Node(url, reply, Kind.DEAD, detail=failure))

    def broken(self, url: str, reply: Reply) -> None:
        """A page whose body breaks off every time: tried once more, then kept as far as it came."""
        self.add(Node(url, reply, Kind.BROKEN))

    # -- links --------------------------------------------------------------------------------------------------

    def plain(self, pages: Iterable[str]) -> tuple[Href, ...]:
        return tuple(Href(page, page, page) for page in pages)

    def near(self, pages: Iterable[str]) -> tuple[Href, ...]:
        """Links from the root of the same origin."""
        return tuple(spell(page, Fold.NEAR, random.Random(0)) for page in pages)

    def spelled(self, pages: Iterable[str], *key: object) -> tuple[Href, ...]:
        """Links in spellings drawn by `key`, or plain ones when spellings are left out."""
        if not self.has(Feature.SPELLINGS):
            return self.plain(pages)
        chance = self.recipe.chance("spelling", *key)
        return tuple(spell(page, chance.choice(folds_of(page)), chance) for page in pages)

    def spelled_in_turn(self, pages: Sequence[str], *key: object) -> tuple[Href, ...]:
        """Links in one spelling after the other, so that each kind is used somewhere."""
        if not self.has(Feature.SPELLINGS):
            return self.plain(pages)
        chance = self.recipe.chance("turn", *key)
        links = []
        for place, page in enumerate(pages):
            folds = folds_of(page)
            links.append(spell(page, folds[place % len(folds)], chance))
        return tuple(links)

    # -- answering ----------------------------------------------------------------------------------------------

    def reply(self, ask: Ask) -> Answer:
        """What the web answers; depends on the ask alone."""
        url = ask.url
        special = self._special.get(url)
        if special is not None:
            return special(ask)
        page = self.spellings.get(url)
        node = self.nodes.get(page) if page is not None else None
        if node is not None:
            return node.reply(ask)
        wild = self._wild.get((ask.scheme, ask.host))
        return wild(ask) if wild is not None else NOT_FOUND

    def page_at(self, url: str) -> str:
        """The id of the page that a URL spells; empty where the map has none."""
        return self.spellings.get(url, "")

    def knows(self, host: str) -> bool:
        return host in self.hosts

    def trap_of(self, url: str) -> Trap | None:
        return next((trap for trap in self.traps if url.startswith(trap.prefix)), None)
