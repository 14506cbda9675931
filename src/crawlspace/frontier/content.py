"""Content identity as a frontier keeps it: what each page that becomes done is to those before it.

The same for every database. A store collects the pages that a transaction has made done, reads ahead what judging
them asks for (`Judging` names it), lets them be judged one after another, and writes what has changed. So the first
of two copies in one transaction is the first here too.

A page is only ever a copy of one that is done, and never of itself: what the index names is looked up, and where that
page says something else by now, or is not done any more, the place is taken over.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crawlspace.content.text import LEAST_TEXT
from crawlspace.frontier.content_rows import (
    TEXT_BYTES,
    Arrival,
    Found,
    HostRow,
    Known,
    PageRow,
    ShapeRow,
    Written,
    YieldRow,
    number_of,
    signed,
    text_key,
)
from crawlspace.frontier.near import Slot, added, search, slots
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.traps import Said, after, shape_of
from crawlspace.types import Fingerprints, Verdict, host_id

HOUR_MS: Final = 3_600_000
SHAPES: Final = 200
"""Shapes of addresses that are kept of one host; pages of further ones count for the host alone."""
DRY: Final = 3
"""Pages of a shape in a row that said nothing new, after which links to the shape lead nowhere."""
LATEST: Final = 256
"""Numbers of 4 bytes that are remembered of what a shape's pages said, two for each: half a year of days."""
EXACT = "exact"
NEAR = "near"
STOPPED = "stopped"
LINKS = "links"
KNOWN = "known"
"""Totals: pages whose text or bytes were known; near-duplicates; pages whose links were not followed; URLs that pages
named, and those of them that were known already."""


@dataclass(slots=True)
class _Page:
    """One page that is judged."""

    arrival: Arrival
    seen: Fingerprints
    key: int
    slots: list[Slot]


class Judging:
    """The pages of one transaction. Ask what it needs, give it, let it judge, write what has changed."""

    def __init__(self, arrivals: Sequence[Arrival], found: Found, settings: FrontierSettings, now: int) -> None:
        self._arrivals = arrivals
        self._found = found
        self._settings = settings
        self._hour = now - now % HOUR_MS
        self._pages = {
            arrival.id: _page(arrival, arrival.fingerprints, settings.near_distance)
            for arrival in arrivals
            if arrival.fingerprints is not None
        }
        self.known = Known()
        self.written = Written()

    # -- what is to be read ---------------------------------------------------------------------------------

    def firsts(self) -> dict[int, int]:
        """Keys of texts in order, and who of these pages says each first."""
        found: dict[int, int] = {}
        for number, page in self._pages.items():
            found.setdefault(page.key, number)
        return dict(sorted(found.items()))

    def follows(self) -> list[int]:
        """Keys of texts with their links."""
        return sorted({number_of(page.seen.follow) for page in self._pages.values()})

    def rows(self) -> list[int]:
        """Keys of rows in the index of near-duplicates."""
        return sorted({slot.key for page in self._pages.values() for slot in page.slots})

    def shapes(self) -> list[tuple[int, str]]:
        """Hosts and shapes."""
        return sorted({(page.arrival.hid, page.seen.shape) for page in self._pages.values()})

    def led_to(self) -> list[tuple[int, str]]:
        """Hosts and shapes that pages lead to which say nothing new, once `known.shapes` is filled."""
        led: set[tuple[int, str]] = set()
        for page in self._pages.values():
            row = self.known.shapes.get((page.arrival.hid, page.seen.shape))
            if row is not None and _repeats(row, page):
                led.update(self._within(page.arrival))
        return sorted(led - self.known.shapes.keys())

    def hosts(self) -> list[int]:
        """Numbers of hosts."""
        return sorted({arrival.hid for arrival in self._arrivals})

    def pages(self) -> list[int]:
        """Numbers of pages, once `known.said` and `known.rows` are filled: these and those they may be copies of."""
        asked = {arrival.id for arrival in self._arrivals} | set(self.known.said.values())
        for page in self._pages.values():
            if page.slots:
                asked.update(hit.number for hit in search(page.slots, self._settings.near_distance, self.known.rows))
        return sorted(asked)

    # -- judging --------------------------------------------------------------------------------------------

    def judge(self) -> None:
        """Judge all pages, in order."""
        for arrival in self._arrivals:
            self.known.done.add(arrival.id)
            if arrival.links and arrival.id not in self.known.pages:
                self._count_links(arrival)
            self._uncount(arrival)
            page = self._pages.get(arrival.id)
            if page is None:
                self._count(arrival, Verdict.SHORT)
            else:
                self._judge(page)

    def _judge(self, page: _Page) -> None:
        arrival, seen = page.arrival, page.seen
        first = self._first(page)
        verdict, of = (Verdict.FIRST, None) if first is None else (Verdict.EXACT, first.id)
        if seen.length < LEAST_TEXT:
            verdict, of = Verdict.SHORT, None
        elif first is None and (near := self._near(page)) is not None:
            verdict, of = Verdict.NEAR, near
        row = self._row(page, verdict, of)
        self.known.pages[arrival.id] = row
        self.written.pages.add(arrival.id)
        if first is not None and self._leads_alike(first, row) and row.stopped_by is None:
            self._pair(arrival)
        if row.stopped_by is not None:
            self.written.totals[STOPPED] += 1
        self._count(arrival, verdict)
        self._tread(page, verdict)

    def _first(self, page: _Page) -> PageRow | None:
        """The page that said this first, and still does; None when this one is the first now."""
        known, own = self.known, page.arrival.id
        number = known.said.get(page.key)
        row = None if number is None else known.pages.get(number)
        if row is not None and number != own and number in known.done and row.text == page.seen.text[:TEXT_BYTES]:
            return row
        if number != own:
            known.said[page.key] = self.written.said[page.key] = own
        return None

    def _leads_alike(self, first: PageRow, row: PageRow) -> bool:
        """Whether a page has the text and the links of one that is done.

        Where the first with the text has other links, the first with these links too is kept under them.
        """
        if first.follow == row.follow:
            return True
        number = self.known.said.get(row.follow)
        other = None if number is None else self.known.pages.get(number)
        if other is not None and number in self.known.done and other.follow == row.follow:
            return other.id != row.id
        self.known.said[row.follow] = self.written.said[row.follow] = row.id
        return False

    def _near(self, page: _Page) -> int | None:
        """The nearest page before this one; it is found by those that come."""
        if not page.slots:
            return None
        of, own = None, page.arrival.id
        nearest = self._settings.near_distance + 1
        for hit in search(page.slots, self._settings.near_distance, self.known.rows):
            if hit.number == own:
                nearest = 0
            elif of is None and self._is_kin(page, hit.number):
                of, nearest = hit.number, min(nearest, hit.distance)
        # One that is there already, or whose like is, need not be there twice.
        if nearest > 0:
            self._keep(page)
        return of

    def _is_kin(self, page: _Page, number: int) -> bool:
        row = self.known.pages.get(number)
        if row is None or number not in self.known.done or row.near is None or row.kin is None:
            return False
        assert page.seen.simhash is not None, "only pages with a SimHash have slots"
        same = row.kin == signed(page.seen.kin) and row.language == page.seen.language
        return same and (row.near ^ signed(page.seen.simhash)).bit_count() <= self._settings.near_distance

    def _keep(self, page: _Page) -> None:
        for slot in page.slots:
            row = added(slot, page.arrival.id, self.known.rows.get(slot.key, b""))
            if row is not None:
                self.known.rows[slot.key] = row
                self.written.rows.add(slot.key)

    def _row(self, page: _Page, verdict: Verdict, of: int | None) -> PageRow:
        arrival, seen = page.arrival, page.seen
        return PageRow(
            id=arrival.id,
            text=seen.text[:TEXT_BYTES],
            follow=number_of(seen.follow),
            near=None if seen.simhash is None else signed(seen.simhash),
            kin=None if seen.simhash is None else signed(seen.kin),
            length=seen.length,
            language=seen.language,
            verdict=int(verdict),
            copy_of=of,
            grp=None if of is None else self._group(of),
            stopped_by=seen.stopped_by,
            sign=seen.sign,
            whole=not seen.partial and arrival.id not in self._found.cut,
        )

    def _group(self, of: int) -> int:
        """The group of a page, which it begins when it has none."""
        row = self.known.pages[of]
        if row.grp is None:
            self.known.pages[of] = row._replace(grp=of)
            self.written.pages.add(of)
        return row.grp or of

    def _pair(self, arrival: Arrival) -> None:
        """Two pages alike whose links were followed both times: did the second bring anything?"""
        host = self._host(arrival.hid)
        host.pairs = 0 if self._found.new.get(arrival.id) else min(host.pairs + 1, 100)

    # -- figures --------------------------------------------------------------------------------------------

    def _host(self, hid: int) -> HostRow:
        self.written.hosts.add(hid)
        return self.known.hosts.setdefault(hid, HostRow())

    def _uncount(self, arrival: Arrival) -> None:
        """A page that was done before counts once: as what it is now."""
        old = self.known.pages.get(arrival.id)
        if old is None:
            return
        host = self._host(arrival.hid)
        host.pages -= host.pages > 0
        for name, kind in ((EXACT, Verdict.EXACT), (NEAR, Verdict.NEAR)):
            if old.verdict == kind and getattr(host, name) > 0:
                setattr(host, name, getattr(host, name) - 1)
                self.written.totals[name] -= 1

    def _count_links(self, arrival: Arrival) -> None:
        """How many URLs did the page name, and how many of them were known? At its first visit: later all are."""
        known = max(0, arrival.links - self._found.unknown.get(arrival.id, 0))
        of_hour = self.written.yields.setdefault((arrival.hid, self._hour), YieldRow())
        for row in (self._host(arrival.hid), of_hour):
            row.links += arrival.links
            row.known += known
        self.written.totals[LINKS] += arrival.links
        self.written.totals[KNOWN] += known

    def _count(self, arrival: Arrival, verdict: Verdict) -> None:
        of_hour = self.written.yields.setdefault((arrival.hid, self._hour), YieldRow())
        of_hour.copies += arrival.is_copy
        counted: tuple[HostRow | YieldRow, ...] = (self._host(arrival.hid), of_hour)
        for row in counted:
            row.pages += 1
            row.exact += verdict is Verdict.EXACT
            row.near += verdict is Verdict.NEAR
        self.written.totals[EXACT] += verdict is Verdict.EXACT
        self.written.totals[NEAR] += verdict is Verdict.NEAR

    # -- shapes ---------------------------------------------------------------------------------------------

    def _tread(self, page: _Page, verdict: Verdict) -> None:
        """Count the page for its shape: is it one more of an endless row?"""
        arrival, seen = page.arrival, page.seen
        row = self._shape(arrival.hid, seen.shape)
        if row is None:
            return
        row.pages += 1
        row.exact += verdict is Verdict.EXACT
        row.near += verdict is Verdict.NEAR
        new = not _repeats(row, page)
        _remember(row, page)
        row.new += new
        row.dry = 0 if new else row.dry + 1
        into, elsewhere = (0, 0) if new else self._leads(arrival)
        run = after(row.run, Said(new, seen.length, into, elsewhere))
        row.last = arrival.id if run > row.run else row.last
        row.run = run

    def _shape(self, hid: int, shape: str) -> ShapeRow | None:
        row = self.known.shapes.get((hid, shape))
        if row is None:
            host = self._host(hid)
            if host.shapes >= SHAPES:
                return None
            host.shapes += 1
            row = self.known.shapes[hid, shape] = ShapeRow()
        self.written.shapes.add((hid, shape))
        return row

    def _leads(self, arrival: Arrival) -> tuple[int, int]:
        """How many new URLs the page has made known where nothing new is said, and elsewhere.

        A trap may have several shapes that lead to each other.
        """
        found = self._within(arrival)
        known = [self.known.shapes.get(shape) for shape in found]
        into = sum(row is not None and row.dry >= DRY for row in known)
        return into, len(self._found.new.get(arrival.id, ())) - into

    def _within(self, arrival: Arrival) -> list[tuple[int, str]]:
        """The shapes of the new URLs of its own host that a page has made known."""
        return [
            (arrival.hid, shape_of(claim.address.canonical))
            for claim in self._found.new.get(arrival.id, ())
            if host_id(claim.address.key) == arrival.hid
        ]


def _repeats(row: ShapeRow, page: _Page) -> bool:
    """Whether a page of the shape said this lately, with its address or without.

    What other shapes and hosts say does not matter: a mirror repeats another host, a trap repeats itself.
    """
    latest = array("I", row.latest)
    return any(said in latest for said in _said(page))


def _remember(row: ShapeRow, page: _Page) -> None:
    latest = array("I", row.latest)
    latest.extend(each for each in _said(page) if each not in latest)
    row.latest = latest[-LATEST:].tobytes()


def _said(page: _Page) -> tuple[int, int]:
    return page.seen.novelty & 0xFFFF_FFFF, page.key & 0xFFFF_FFFF


def _page(arrival: Arrival, seen: Fingerprints, distance: int) -> _Page:
    of = [] if seen.simhash is None or seen.length < LEAST_TEXT else slots(seen.simhash ^ seen.kin, distance)
    return _Page(arrival, seen, text_key(seen.text, seen.language), of)
