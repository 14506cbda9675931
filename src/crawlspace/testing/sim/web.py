"""A made-up web from one seed, and the truth about it: which pages a right crawl finds, and how each ends.

What a host does depends on the time and on how often it was asked, never on chance at the time of asking. Where the
end of a page depends on when it is asked (a host dies, rules change), the truth names every end that is right.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto, unique

from msgspec import Struct

from crawlspace.exchange import FetchError, Truncated
from crawlspace.states import UrlState

ZONE = "sim.test"
"""Registrable domain of all hosts that belong to the crawl."""
FENCED = "/private/"
NEVER = float("inf")

_DONE = frozenset({UrlState.DONE})
_DEAD = frozenset({UrlState.DEAD})


@unique
class Kind(Enum):
    """What a page does when it is asked for."""

    PLAIN = auto()
    SLOW = auto()
    """Takes its time, and less than the time-out."""
    MIRROR = auto()
    """The same bytes as the page behind its first link."""
    MISSING = auto()
    BROKEN = auto()
    """500, always."""
    FLAKY = auto()
    """500 once or twice, then the page."""
    THROTTLED = auto()
    """429 with Retry-After once, then the page."""
    RESET = auto()
    """The connection breaks once, then the page."""
    CUT = auto()
    """The body breaks off once, then the page."""
    REDIRECT = auto()
    """To the page behind its first link."""
    COOKIE = auto()
    """Redirects to itself until its cookie comes back."""
    CIRCLE = auto()
    """Redirects to itself, always."""
    PRIVATE = auto()
    """Forbidden by robots.txt where there is a fence."""


_STATES = {
    **dict.fromkeys(Kind, _DONE),
    Kind.MISSING: _DEAD,
    Kind.BROKEN: _DEAD,
    Kind.CIRCLE: _DEAD,
    Kind.REDIRECT: frozenset({UrlState.REDIRECTED}),
}
_LEADS_ON = frozenset({UrlState.DONE, UrlState.REDIRECTED})
_WEIGHTS = {
    Kind.PLAIN: 50,
    Kind.SLOW: 6,
    Kind.MIRROR: 4,
    Kind.MISSING: 5,
    Kind.BROKEN: 2,
    Kind.FLAKY: 5,
    Kind.THROTTLED: 4,
    Kind.RESET: 3,
    Kind.CUT: 3,
    Kind.REDIRECT: 8,
    Kind.COOKIE: 2,
    Kind.CIRCLE: 1,
    Kind.PRIVATE: 7,
}


@unique
class Fence(Enum):
    """What a host's robots.txt says."""

    NONE = auto()
    """404: no rules."""
    OPEN = auto()
    FENCED = auto()
    """`/private/` is disallowed."""
    LATER = auto()
    """Allowed at first, disallowed from some time on."""
    NEVER_READ = auto()
    """503, always: nothing may be fetched."""


@dataclass(slots=True)
class Host:
    """One host and its moods. Times are seconds of the simulation."""

    name: str
    fence: Fence = Fence.NONE
    crawl_delay: int = 0
    changes_at: float = NEVER
    """The fence of LATER goes up."""
    rules_from: float = 0.0
    """Before, robots.txt is 503."""
    dies_at: float = NEVER
    """From here on it answers nobody."""
    storms: tuple[tuple[float, float, int], ...] = ()
    """From, to, and the seconds that its 503 ask for."""
    resets: int = 0
    """Pages that break the connection; a few, or the host would be given up for them."""

    def is_sane(self) -> bool:
        """Whether its pages end as their kind says, whenever they are asked for."""
        return self.dies_at == NEVER and not self.storms and self.fence is not Fence.NEVER_READ

    def storm(self, at: float) -> int:
        """Seconds that it wants to be left alone; 0 in good weather."""
        return next((wait for start, end, wait in self.storms if start <= at < end), 0)

    def rules(self, at: float) -> str | None:
        """Its robots.txt at a time; None for 404."""
        if self.fence is Fence.NONE and not self.crawl_delay:
            return None
        closed = self.fence is Fence.FENCED or (self.fence is Fence.LATER and at >= self.changes_at)
        delay = f"Crawl-delay: {self.crawl_delay}\n" if self.crawl_delay else ""
        return f"User-agent: *\n{delay}Disallow: {FENCED if closed else ''}\n"

    def forbids(self, path: str, at: float) -> bool:
        """Whether its rules of that time keep us from this path."""
        return (self.rules(at) or "").endswith(f"{FENCED}\n") and path.startswith(FENCED)


@dataclass(slots=True)
class Page:
    """One page; `links` are places in `Web.pages`."""

    place: int
    host: Host
    path: str
    kind: Kind
    links: list[int] = field(default_factory=list)
    latency: float = 0.05
    failing: int = 0
    """How many times it fails before it answers."""

    @property
    def url(self) -> str:
        return f"http://{self.host.name}{self.path}"

    def states(self) -> frozenset[UrlState]:
        """Every state in which it may rightly end."""
        states = _STATES[self.kind]
        if self.kind is Kind.PRIVATE:
            if self.host.fence is Fence.FENCED:
                states = frozenset({UrlState.SKIPPED})
            elif self.host.fence is Fence.LATER:
                states = states | {UrlState.SKIPPED}
        if self.host.fence is Fence.NEVER_READ:
            return _DEAD
        return states if self.host.is_sane() else states | _DEAD


class Answer(Struct, frozen=True):
    """What comes back for one request; `latency` in seconds, for ever when the host is silent."""

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    latency: float = 0.05
    error: FetchError | None = None
    truncated: Truncated | None = None
    wait: int = 0
    """Seconds that Retry-After asks for."""


@dataclass(slots=True)
class Web:
    """The hosts and pages, and how often each page was asked for."""

    hosts: list[Host]
    pages: list[Page]
    seeds: list[int]
    strangers: int
    """Hosts outside the crawl's scope that are linked to."""
    chance: random.Random
    asked: dict[int, int] = field(default_factory=dict)
    _by_name: dict[str, Host] = field(default_factory=dict)
    _by_url: dict[str, Page] = field(default_factory=dict)
    spelled: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """Each page's own links as they stand in it, those that leave the crawl's scope last."""

    def __post_init__(self) -> None:
        self._by_name = {host.name: host for host in self.hosts}
        self._by_url = {page.url: page for page in self.pages}
        for page in self.pages:
            links = [self._spelling(page, self.pages[place]) for place in page.links]
            if self.strangers and self.chance.random() < 0.2:
                links.append(f"http://away{self.chance.randrange(self.strangers)}.example/{page.place}")
            self.spelled[page.place] = tuple(links)

    # -- the truth --------------------------------------------------------------------------------------------

    def reachable(self, *, surely: bool, without: frozenset[int] = frozenset()) -> set[int]:
        """Pages that every right crawl finds, or with `surely` off those that some right crawl finds.

        Those in `without` were never read.
        """
        found = set(self.seeds)
        waiting = list(found)
        while waiting:
            page = self.pages[waiting.pop()]
            states = page.states()
            leads_on = states <= _LEADS_ON if surely else bool(states & _LEADS_ON)
            if not leads_on or page.place in without:
                continue
            fresh = set(self.source(page).links) - found
            found |= fresh
            waiting += fresh
        return found

    # -- asking -----------------------------------------------------------------------------------------------

    def answer(self, url: str, at: float, *, cookie: bool = False) -> Answer:
        """What this URL gives at a time. Spellings of one page are folded by `page_of`."""
        host = self.host_of(url)
        if host is None or at >= host.dies_at:
            return Answer(latency=0.2, error=FetchError.CONNECT)
        if wait := host.storm(at):
            return Answer(503, (("Retry-After", str(wait)),), b"later", wait=wait)
        if url == f"http://{host.name}/robots.txt":
            return _robots(host, at)
        page = self.page_of(url)
        if page is None:
            return Answer(404, body=b"no such page")
        self.asked[page.place] = times = self.asked.get(page.place, 0) + 1
        return self._page(page, times, cookie=cookie)

    def host_of(self, url: str) -> Host | None:
        """The host of a URL as it is requested; None when there is none of that name."""
        return self._by_name.get(url.split("/")[2])

    def page_of(self, url: str) -> Page | None:
        """The page behind a URL as it is requested."""
        return self._by_url.get(url.partition("?utm_source=")[0])

    def _page(self, page: Page, times: int, *, cookie: bool) -> Answer:
        failing = times <= page.failing
        match page.kind:
            case Kind.MISSING:
                return Answer(404, body=b"gone", latency=page.latency)
            case Kind.BROKEN:
                return Answer(500, body=b"broken", latency=page.latency)
            case Kind.FLAKY if failing:
                return Answer(500, body=b"not now", latency=page.latency)
            case Kind.THROTTLED if failing:
                wait = 3 + page.place % 20
                return Answer(429, (("Retry-After", str(wait)),), b"slower", latency=page.latency, wait=wait)
            case Kind.RESET if failing:
                return Answer(latency=page.latency, error=FetchError.RESET)
            case Kind.REDIRECT:
                target = self.spelled[page.place][0]
                return Answer(302 if page.place % 2 else 301, (("Location", target),), latency=page.latency)
            case Kind.COOKIE if not cookie:
                return Answer(302, (("Location", page.url), ("Set-Cookie", "seen=1")), latency=page.latency)
            case Kind.CIRCLE:
                return Answer(302, (("Location", page.url),), latency=page.latency)
        body = self.body(page)
        if page.kind is Kind.CUT and failing:
            cut = body[: len(body) // 2]
            return Answer(200, _HTML, cut, page.latency, FetchError.RESET, Truncated.DISCONNECT)
        return Answer(200, _HTML, body, page.latency)

    def body(self, page: Page) -> bytes:
        """The page as HTML; a mirror is its original, byte for byte."""
        page = self.source(page)
        anchors = "".join(f'<a href="{link}">{n}</a>\n' for n, link in enumerate(self.spelled[page.place]))
        return f"<!doctype html><title>{page.url}</title><body>{anchors}</body>".encode()

    def source(self, page: Page) -> Page:
        """The page whose links are found on this one: itself, or the original of a mirror."""
        return self.pages[page.links[0]] if page.kind is Kind.MIRROR else page

    def _spelling(self, source: Page, target: Page) -> str:
        """One of the many ways to write a link, always with its host, so that mirrors hold the same bytes."""
        host, path = target.host.name, target.path
        spellings = (
            f"http://{host}{path}",
            f"HTTP://{host.upper()}:80{path}",
            f"http://{host}/x/..{path}",
            f"http://{host}{path}#part-{source.place}",
            f"http://{host}/.{path}",
            f"http://{host}{path}?utm_source=p{source.place}",
        )
        return spellings[0] if self.chance.random() < 0.5 else self.chance.choice(spellings)


_HTML = (("Content-Type", "text/html; charset=utf-8"),)


def _robots(host: Host, at: float) -> Answer:
    if host.fence is Fence.NEVER_READ or at < host.rules_from:
        return Answer(503, body=b"not now")
    rules = host.rules(at)
    if rules is None:
        return Answer(404, body=b"no rules")
    return Answer(200, (("Content-Type", "text/plain"),), rules.encode())


# -- drawing it -------------------------------------------------------------------------------------------------


def draw(chance: random.Random, hosts: int, pages: int) -> Web:
    """A web of about this size: a few large hosts and many small ones."""
    names = [_host(chance, number) for number in range(hosts)]
    sizes = [max(1, round(pages / (number + 1) / _harmonic(hosts))) for number in range(hosts)]
    drawn: list[Page] = []
    for host, size in zip(names, sizes, strict=True):
        for number in range(size):
            drawn.append(_page(chance, len(drawn), host, number))
    for page in drawn:
        page.links = list(_links(chance, page, drawn))
    fronts = [page.place for page in drawn if page.path == "/"]
    seeds = [fronts[0], *chance.sample(fronts[1:], min(len(fronts) - 1, chance.randrange(3)))]
    return Web(names, drawn, seeds, chance.choice((0, 3, 30)), chance)


def _harmonic(n: int) -> float:
    return sum(1 / (k + 1) for k in range(n))


def _host(chance: random.Random, number: int) -> Host:
    host = Host(f"h{number}.{ZONE}" if number else ZONE)
    weights = (30, 30, 25, 10, 5 if number else 0)
    host.fence = chance.choices(list(Fence), weights)[0]
    if chance.random() < 0.1:
        host.crawl_delay = chance.choice((2, 7))
    if host.fence is Fence.LATER:
        host.changes_at = chance.uniform(1, 300)
    if number and chance.random() < 0.08:
        host.dies_at = chance.uniform(0, 200)
    if number and chance.random() < 0.15:
        start = chance.uniform(0, 60)
        host.storms = ((start, start + chance.uniform(5, 200), chance.choice((5, 30, 90))),)
    if number and chance.random() < 0.05:
        host.rules_from = chance.uniform(1, 60)
    return host


def _page(chance: random.Random, place: int, host: Host, number: int) -> Page:
    if number == 0:
        return Page(place, host, "/", Kind.PLAIN, latency=chance.uniform(0.01, 0.3))
    kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    if kind is Kind.RESET:
        host.resets += 1
        if host.resets > 2:
            kind = Kind.PLAIN
    path = f"{FENCED}p{number}" if kind is Kind.PRIVATE else f"/p{number}"
    latency = chance.uniform(3, 25) if kind is Kind.SLOW else chance.uniform(0.01, 0.5)
    failing = chance.randint(1, 2) if kind is Kind.FLAKY else 1
    return Page(place, host, path, kind, latency=latency, failing=failing)


def _links(chance: random.Random, page: Page, pages: list[Page]) -> Iterator[int]:
    """A page leads to the next one of the list, so that all are found, and to others at random."""
    if page.kind in (Kind.REDIRECT, Kind.MIRROR):
        plain = [other.place for other in pages if other.kind is Kind.PLAIN]
        anywhere = chance.randrange(len(pages))
        to_any = page.kind is Kind.REDIRECT and anywhere != page.place and chance.random() < 0.3
        yield anywhere if to_any else chance.choice(plain)
        return
    near = range(page.place + 1, min(len(pages), page.place + 4))
    yield from near
    for _ in range(chance.randrange(6)):
        yield chance.randrange(len(pages))
