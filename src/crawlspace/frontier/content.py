"""Content identity as a frontier keeps it: what each page that becomes done is to those before it.

The same for every database. A store collects the pages that a transaction has made done, reads ahead what judging
them asks for (`Judging` names it), lets them be judged one after another, and writes what has changed. So the first
of two copies in one transaction is the first here too.

A page is only ever a copy of one that is done, and never of itself: what the index names is looked up, and where that
page says something else by now, or is not done any more, the place is taken over.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from crawlspace.content.text import LEAST_TEXT
from crawlspace.frontier.near import Slot, added, search, slots
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.policy.traps import Said, Tread, after, shape_of, tread
from crawlspace.types import (
    Answer,
    Claim,
    Claimed,
    Copied,
    Fingerprints,
    Finished,
    PageContent,
    Reason,
    Relation,
    Settlement,
    Verdict,
    host_id,
)

TEXT_BYTES: Final = 16
"""Of a text's digest: enough to tell all texts there are from each other."""
HOUR_MS: Final = 3_600_000
SHAPES: Final = 200
"""Shapes of addresses that are kept of one host; pages of further ones count for the host alone."""
LATEST: Final = 128
"""Texts of a shape that are remembered, 4 bytes each: what a page of it says is new when it is none of them."""
PAIRS: Final = 5
"""Copies of a host whose links were followed in vain, after which those with a short text are not followed either."""

EXACT = "exact"
NEAR = "near"
STOPPED = "stopped"
"""Totals: pages whose text or bytes were known; near-duplicates; pages whose links were not followed."""

_LED: Final = frozenset({Relation.HYPERLINK, Relation.FRAME, Relation.REFRESH, Relation.REDIRECT, Relation.HINT})
"""Relations in which a trap leads on. What a person or a sitemap names is taken at its word."""
_CUT: Final = frozenset({Reason.DEPTH, Reason.HOST_BUDGET})
_BITS: Final = 1 << 63


class Arrival(NamedTuple):
    """A page that a transaction has made done."""

    id: int
    hid: int
    fingerprints: Fingerprints | None
    is_copy: bool
    """Another URL had its bytes first."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the links of a transaction came to, by the page that has them."""

    new: Mapping[int, Sequence[Claim]]
    """Those that were not known, and are queued now."""
    cut: Collection[int]
    """Pages of which some links were refused for depth or budget."""

    @classmethod
    def of(cls, claims: Sequence[Claim], answers: Sequence[Claimed], refused: Mapping[bytes, Reason]) -> Found:
        """`refused` is what the frontier itself turned away, by key."""
        new: dict[int, list[Claim]] = {}
        cut: set[int] = set()
        for claim, answer in zip(claims, answers, strict=True):
            if claim.parent is None:
                continue
            reason = claim.refusal or refused.get(claim.address.key)
            if reason in _CUT or (reason is None and answer is Claimed.OVER_BUDGET):
                cut.add(claim.parent)
            elif reason is None and answer is Claimed.NEW:
                new.setdefault(claim.parent, []).append(claim)
        return cls(new, cut)


class PageRow(NamedTuple):
    """A page that is done. Numbers of 64 bits have a sign, as databases want them."""

    id: int
    text: bytes
    follow: int
    near: int | None
    kin: int | None
    length: int
    language: str
    verdict: int
    copy_of: int | None
    grp: int | None
    stopped_by: int | None
    sign: str | None
    whole: bool
    """All its links were claimed."""


@dataclass(slots=True)
class ShapeRow:
    """Pages of one host and shape. `latest` holds what the last different ones said, 4 bytes each."""

    pages: int = 0
    exact: int = 0
    near: int = 0
    run: int = 0
    last: int | None = None
    """The last page of the run."""
    latest: bytes = b""


@dataclass(slots=True)
class HostRow:
    """What a host's pages brought. `pairs`: see `PAIRS`."""

    pages: int = 0
    exact: int = 0
    near: int = 0
    shapes: int = 0
    pairs: int = 0


@dataclass(slots=True)
class YieldRow:
    """What the pages of one host and hour brought."""

    pages: int = 0
    copies: int = 0
    exact: int = 0
    near: int = 0


@dataclass(slots=True)
class Known:
    """What was read ahead."""

    said: dict[int, int] = field(default_factory=dict)
    """Who said a text first, by the text's key."""
    rows: dict[int, bytes] = field(default_factory=dict)
    """Rows of the index of near-duplicates."""
    shapes: dict[tuple[int, str], ShapeRow] = field(default_factory=dict)
    hosts: dict[int, HostRow] = field(default_factory=dict)
    pages: dict[int, PageRow] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    """Which of these pages are done."""


@dataclass(slots=True)
class Written:
    """What judging has changed."""

    said: dict[int, int] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    shapes: set[tuple[int, str]] = field(default_factory=set)
    hosts: set[int] = field(default_factory=set)
    pages: set[int] = field(default_factory=set)
    yields: dict[tuple[int, int], YieldRow] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)


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

    def keys(self) -> list[int]:
        """Keys of texts."""
        return sorted({page.key for page in self._pages.values()})

    def rows(self) -> list[int]:
        """Keys of rows in the index of near-duplicates."""
        return sorted({slot.key for page in self._pages.values() for slot in page.slots})

    def shapes(self) -> list[tuple[int, str]]:
        """Hosts and shapes."""
        return sorted({(page.arrival.hid, page.seen.shape) for page in self._pages.values()})

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
        if first is not None and first.follow == row.follow and row.stopped_by is None:
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
            follow=_number(seen.follow),
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
        latest = array("I", row.latest)
        said = seen.novelty & 0xFFFF_FFFF
        repeats = said in latest
        if not repeats:
            latest.append(said)
            row.latest = latest[-LATEST:].tobytes()
        new = not repeats and verdict is not Verdict.EXACT
        into, elsewhere = (0, 0) if new else self._leads(arrival, seen.shape)
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

    def _leads(self, arrival: Arrival, shape: str) -> tuple[int, int]:
        """How many new URLs the page has made known within its shape, and elsewhere."""
        new = self._found.new.get(arrival.id, ())
        within = sum(
            1
            for claim in new
            if host_id(claim.address.key) == arrival.hid and shape_of(claim.address.canonical) == shape
        )
        return within, len(new) - within


def _page(arrival: Arrival, seen: Fingerprints, distance: int) -> _Page:
    of = [] if seen.simhash is None or seen.length < LEAST_TEXT else slots(seen.simhash ^ seen.kin, distance)
    return _Page(arrival, seen, text_key(seen.text, seen.language), of)


def text_key(text: bytes, language: str) -> int:
    """The number under which a text in a language is looked up: language versions stay apart."""
    return _number(blake2b(text + language.encode("utf-8", "replace"), digest_size=8).digest())


def signed(number: int) -> int:
    """64 bits as a number with a sign."""
    return number - 2 * _BITS if number >= _BITS else number


def unsigned(number: int) -> int:
    """And back."""
    return number + 2 * _BITS if number < 0 else number


def _number(digest: bytes) -> int:
    return int.from_bytes(digest[:8], "big", signed=True)


def content_of(row: PageRow) -> PageContent:
    """A row for those who ask."""
    return PageContent(
        id=row.id,
        text=row.text,
        length=row.length,
        simhash=None if row.near is None else unsigned(row.near),
        kin=None if row.kin is None else unsigned(row.kin),
        language=row.language,
        verdict=Verdict(row.verdict),
        copy_of=row.copy_of,
        group=row.grp,
        stopped_by=row.stopped_by,
        sign=row.sign,
    )


# -- traps ------------------------------------------------------------------------------------------------------


Treads = Mapping[int, Mapping[str, int]]
"""Runs of the shapes that are slowed or stopped, by host and shape."""


def led(claims: Iterable[Claim]) -> list[int]:
    """Numbers of the hosts of claims that a trap could have led to."""
    return sorted({host_id(claim.address.key) for claim in claims if _is_led(claim)})


def trodden(claims: Sequence[Claim], treads: Treads, settings: FrontierSettings) -> Sequence[Claim]:
    """The claims, those of slowed shapes in the last class, those of stopped ones refused."""
    if not treads:
        return claims
    return [_trod(claim, treads.get(host_id(claim.address.key)), settings) for claim in claims]


def _trod(claim: Claim, shapes: Mapping[str, int] | None, settings: FrontierSettings) -> Claim:
    run = shapes.get(shape_of(claim.address.canonical)) if shapes and _is_led(claim) else None
    match Tread.FREELY if run is None else tread(run, settings.traps):
        case Tread.NOT:
            return claim._replace(refusal=Reason.TRAP)
        case Tread.SLOWLY:
            return claim._replace(front_class=CLASSES - 1)
        case _:
            return claim


def _is_led(claim: Claim) -> bool:
    return claim.refusal is None and claim.relation in _LED


def least_run(settings: FrontierSettings) -> int:
    """The shortest run that matters; 0 when none does."""
    asked = [run for run in (settings.traps.slow_after, settings.traps.stop_after) if run]
    return min(asked, default=0)


# -- at a settlement, and before it -----------------------------------------------------------------------------


def arrived(settlements: Sequence[Settlement], answers: Sequence[Answer]) -> list[Arrival]:
    """The pages that these settlements have finished, the last of each URL."""
    found = {
        settlement.url.id: Arrival(settlement.url.id, settlement.hid, settlement.evidence.fingerprints, is_copy=False)
        for settlement, answer in zip(settlements, answers, strict=True)
        if isinstance(settlement, Finished) and answer is Answer.SETTLED
    }
    return list(found.values())


def stopped_by(
    page: Copied, said: Mapping[int, int], firsts: Mapping[int, PageRow], depths: Mapping[int, int], *, proven: bool
) -> int | None:
    """The page on whose account the links of another need not be followed; None when they are.

    `depths` holds those of `firsts` that are done; `proven`: the host has shown that its copies bring nothing.
    """
    seen = page.fingerprints
    first = firsts.get(said.get(text_key(seen.text, seen.language), -1))
    if first is None or first.id == page.id or first.text != seen.text[:TEXT_BYTES]:
        return None
    depth = depths.get(first.id)
    # Links of a page that is nearer to a seed may yet get further than those of the first did.
    if depth is None or depth > page.depth or first.follow != _number(seen.follow):
        return None
    return first.id if proven or (first.whole and seen.length >= LEAST_TEXT) else None
