"""The seams: what the engine needs of the world, as small protocols that speak in batches.

The contract suites in `crawlspace.testing` say what each must do; a backend is right when it passes them.
`now` is given by tests and by embedded stores; None means the store's own clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from crawlspace.exchange import Capture, FetchRequest, FetchResult, Rendered, RobotsFile, Unrendered
from crawlspace.parsers import Parsed
from crawlspace.policy.commands import Asked, Hold, News
from crawlspace.policy.evidence import KnownRule, Lesson
from crawlspace.policy.review import Browsed, Cursor, Ruling, Shelf
from crawlspace.types import (
    Answer,
    Captured,
    Claim,
    Claimed,
    Copied,
    Counts,
    Crew,
    DeadLetter,
    GenerationFigures,
    HostFigures,
    Joined,
    Lease,
    PageContent,
    Plan,
    Pointer,
    Probe,
    Reason,
    Round,
    RouteFigures,
    Settlement,
    ShapeFigures,
    Story,
    Wish,
    Yield,
)


class Frontier(Protocol):
    """Every URL known, its state, and the order in which the queued ones leave."""

    async def claim(self, claims: Sequence[Claim], now: int | None = None) -> list[Claimed]:
        """Make these URLs known; one answer each, in order. Whoever claims a key first, wins.

        A known URL that is still queued takes a better class or depth from the claim, and one that was skipped
        for a reason that depends on the path, or that the claim lifts, is queued when the claim carries no refusal.
        """
        ...

    async def lease(self, wish: Wish, now: int | None = None) -> list[Lease]:
        """Due hosts, each with its best URLs, its pace and a fresh token; nobody else gets them meanwhile.

        Tokens increase and are never used again. A suspect URL is leased alone.
        """
        ...

    async def renew(self, tokens: Sequence[int], ttl_ms: int, now: int | None = None) -> list[bool]:
        """Extend leases; False for one that is lost, whose holder must stop at once."""
        ...

    async def settle(
        self, settlements: Sequence[Settlement], claims: Sequence[Claim], now: int | None = None
    ) -> list[Answer]:
        """Claim the links and apply the settlements in one transaction; one answer for each settlement.

        A settlement whose token is not its host's current one changes nothing and is answered STALE (or ALREADY
        when that lease had settled the URL before).
        """
        ...

    async def reclaim(self, now: int | None = None) -> int:
        """Put the URLs of expired leases back as suspects; how many leases ended."""
        ...

    async def due_in(self, now: int | None = None) -> int | None:
        """In how many milliseconds `lease` or `reclaim` has something to do, 0 when it has now; None when never.

        A span, by the store's own clock: a worker whose clock is ahead or behind waits no shorter and no longer.
        """
        ...

    async def counts(self) -> Counts:
        """Totals at this moment; the states add up to the distinct URLs claimed."""
        ...

    async def dead(self, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        """Dead letters in order of their numbers, from the first above `after`."""
        ...

    async def revive(self, ids: Sequence[int], now: int | None = None) -> int:
        """Queue dead URLs again with all their tries; how many were dead."""
        ...


class Company(Protocol):
    """The workers of a crawl, as far as they share hosts out among them."""

    async def meet(self, worker: int, most: int, ttl_ms: int, now: int | None = None) -> Crew:
        """Say that this worker takes hosts until so much time has passed, up to `most` at once; who else does?

        With 0 it takes none from now on, and others count no longer on what it holds.
        """
        ...


class Ledger(Protocol):
    """What a crawl remembers beside its URLs: its own facts, robots files, and answers for those who ask."""

    async def notes(self) -> Mapping[str, str]:
        """Facts of the crawl: format, hash key, URL rules, scope as it has grown."""
        ...

    async def note(self, facts: Mapping[str, str]) -> None:
        """Write facts; durable on return."""
        ...

    async def revise(self, name: str, old: str | None, new: str) -> bool:
        """Write a fact unless it is not what it was (None: not there); whether it is written. Durable on return."""
        ...

    async def robots(self, origins: Sequence[str]) -> list[RobotsFile | None]:
        """Stored robots.txt answers, expired ones too."""
        ...

    async def keep_robots(self, files: Sequence[RobotsFile]) -> None:
        """Store robots.txt answers, replacing older ones of the same origin."""
        ...

    async def find(self, keys: Sequence[bytes]) -> list[Story | None]:
        """All that is known of these fingerprints."""
        ...

    async def hosts(self, after: str = "", limit: int = 100) -> list[HostFigures]:
        """Hosts by name, from the first above `after`."""
        ...

    async def refused(self, hid: int, reason: Reason, after: int = 0, limit: int = 100) -> list[Story]:
        """A host's URLs that were skipped for this reason, by number, from the first above `after`."""
        ...

    async def unprocessed(self, after: int = 0, limit: int = 100) -> list[Story]:
        """URLs in state stored, by number, from the first above `after`."""
        ...


class Revisits(Protocol):
    """Visits beyond the first: what was planned, and how earlier ones ended."""

    async def rounds(self, keys: Sequence[bytes]) -> list[list[Round]]:
        """How the visits of these fingerprints ended that later ones have followed, the first first."""
        ...

    async def generations(self) -> list[GenerationFigures]:
        """Each generation in numbers, the first at index 0."""
        ...

    async def next_visit(self) -> int | None:
        """When the first next visit is due; None when none is planned."""
        ...

    async def plan_visits(self, after: int, limit: int, by: Plan) -> int | None:
        """Give URLs that have ended well their next visit, by number, from the first above `after`.

        The number reached, or None when there was none left. What has an interval keeps it, within the bounds.
        """
        ...


class Captures(Protocol):
    """What a crawl knows of where its captures lie."""

    async def originals(self, digests: Sequence[bytes]) -> list[Pointer | None]:
        """Where a settled page lies whose decoded body has this SHA-256; None when there is none. In order."""
        ...

    async def relocate(self, joined: Sequence[Joined]) -> None:
        """Let all that points into files which were joined point into the whole; durable on return.

        Files that no capture is known in are passed over, so that it may be repeated.
        """
        ...


class RouteBook(Protocol):
    """What routes cost and bring, and what is left of their budgets."""

    async def take_route(self, name: str, most: int) -> bool:
        """Count one request against a route's budget; False when it is used up. Holds over all workers."""
        ...

    async def give_route_back(self, name: str) -> None:
        """The request was not made after all."""
        ...

    async def route_figures(self) -> list[RouteFigures]:
        """Every route that was used, by name; plain HTTP under the empty one."""
        ...


class Learned(Protocol):
    """Rules of identity that were learned, with what speaks for them and against them."""

    async def learned(self) -> list[KnownRule]:
        """Rules, the best founded first, up to a limit."""
        ...

    async def learn(self, lessons: Sequence[Lesson], now: int | None = None) -> None:
        """Add to what is known; others may do so too."""
        ...

    async def declared(self, keys: Sequence[bytes]) -> list[str | None]:
        """What the pages with these fingerprints declare as their own address; empty where it is theirs."""
        ...


class Control(Protocol):
    """What a person changes in a crawl, also while it runs: commands, held hosts, and rulings on known URLs."""

    async def ask(self, commands: Sequence[str], now: int | None = None) -> list[int]:
        """Write commands down for whoever owns the crawl; their numbers, in order."""
        ...

    async def asked(self, limit: int = 100) -> list[Asked]:
        """Commands that are not carried out yet, in order."""
        ...

    async def answers(self, numbers: Sequence[int]) -> list[Asked | None]:
        """How far these commands are; None for one that is not known, or was answered long ago."""
        ...

    async def news(self, edition: int) -> News | None:
        """What all who work on the crawl must hear of, when it has changed since this edition; None when not."""
        ...

    async def hold(self, hosts: Sequence[tuple[int, str]], how: Hold | None) -> None:
        """Pause or block hosts, by number and name, or with None take that back; unknown hosts become known.

        A held host is leased to nobody. What is queued at a blocked one, and what is found later, is skipped.
        """
        ...

    async def browse(self, shelf: Shelf, after: Cursor = (), limit: int = 100) -> Browsed:
        """Known URLs of a shelf in its own order, from the first behind a place; an empty cursor begins it."""
        ...

    async def rule(self, rulings: Sequence[Ruling], asked: Asked | None = None, now: int | None = None) -> list[bool]:
        """Apply rulings and write down how far their command is, in one transaction; whether each changed something.

        A leased URL, and one that is no longer where the ruling saw it, is left alone; so is one that a blocked host
        or a host's full queue would not take.
        """
        ...

    async def alarm(self, hosts: Sequence[tuple[int, str]]) -> None:
        """Mark hosts, by number, whose URLs look like this kind of trap."""
        ...


class ContentIndex(Protocol):
    """What a crawl knows of the content of its pages. It is written by `Frontier.settle`, with the pages themselves.

    A page is a copy only of one that is done, and never of itself.
    """

    async def copies(self, pages: Sequence[Copied]) -> list[int | None]:
        """For each page that was read, the one on whose account its links need not be followed; None: they must be.

        That one is done, has the same text and the same links, volatile parts masked, and is no deeper; its links
        were all claimed and its text is not short, unless the host has shown that its copies bring nothing new.
        """
        ...

    async def contents(self, numbers: Sequence[int]) -> list[PageContent | None]:
        """What these pages are known by; None for one that is not done or has no text."""
        ...

    async def groups(self, after: tuple[int, int] = (0, 0), limit: int = 1000) -> list[PageContent]:
        """Members of groups of copies, by group and number, from the first behind a place (group, number)."""
        ...

    async def addresses(self, numbers: Sequence[int]) -> list[str | None]:
        """Fetch URLs of these, as far as they have an outcome."""
        ...

    async def shapes(self, hid: int | None = None, run: int = 0, limit: int = 100) -> list[ShapeFigures]:
        """Shapes of addresses, of one host or of all, whose run has this length: longest first, then by pages."""
        ...

    async def yields(self, hid: int | None = None) -> list[Yield]:
        """What each hour's pages brought, of one host or of all together."""
        ...

    async def content_totals(self) -> Mapping[str, int]:
        """How many pages are `exact` and `near` copies, and of how many the links were not followed, `stopped`.

        Also how many URLs pages have named, `links`, and how many of those were `known` already.
        """
        ...

    async def probe(self, hid: int) -> Probe | None:
        """A host's answer to a path that nobody links to; None when it was not asked."""
        ...

    async def keep_probe(self, hid: int, probe: Probe) -> None:
        """Keep such an answer."""
        ...


class Archive(Protocol):
    """Raw captures, kept for ever and never changed."""

    async def append(self, capture: Capture) -> Pointer:
        """Write a capture; durable only after the next `flush`."""
        ...

    async def flush(self) -> None:
        """Return when all that was appended is durable.

        Raises `DiskFull` or `ArchiveSuspect`; nothing appended since the last flush then counts, and the caller
        appends it again.
        """
        ...

    def open(self, pointer: Pointer) -> Capture:
        """Read one capture back; raises `StoreDamaged` when it is not there or its digest differs."""
        ...

    def scan(self) -> Iterator[tuple[Pointer, Capture]]:
        """Every capture in order of writing."""
        ...

    async def close(self) -> None:
        """Flush and end the current file."""
        ...


class RecordSink(Protocol):
    """Where the records of pages go. Idempotent: of a parser, a URL and a generation what was written last holds."""

    async def write(self, captured: Captured, parsed: Sequence[Parsed]) -> None:
        """Take what parsers made of a capture; durable only after the next `flush`."""
        ...

    async def again(self, captured: Captured) -> None:
        """A visit that was answered with 304: what was made of the page's last capture was seen again."""
        ...

    async def void(self, captured: Sequence[Captured]) -> None:
        """Captures that did not become their page's own: what was written of them does not count."""
        ...

    async def flush(self) -> None:
        """Return when all that was written is durable.

        Raises `DiskFull` or `ArchiveSuspect`; nothing written since the last flush then counts.
        """
        ...

    async def close(self) -> None:
        """Flush and let go."""
        ...


class Fetcher(Protocol):
    """Gets one response, or the reason why there is none."""

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Raises on cancellation only."""
        ...

    async def close(self) -> None:
        """End all connections."""
        ...


class Renderer(Protocol):
    """Runs the scripts of a page that was fetched."""

    async def render(self, result: FetchResult, why: str) -> Rendered | Unrendered:
        """The document as it stands then; `why` is kept with it. Raises on cancellation only."""
        ...

    async def close(self) -> None:
        """End what runs."""
        ...
