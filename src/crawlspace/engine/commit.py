"""From fetched to settled: the one place where a URL becomes done, and the order in which that happens.

Bytes first: every capture of a group is appended to the archive and flushed. Only then one call settles the group,
claims its links and moves its hosts on, in one transaction. A crash before that call leaves expired leases and at
worst copies in the archive that no URL points to.

One cadence: a group closes at 300 pages, at 0.5 s, at 32 MiB, at 20,000 links, or at once when no fetch is running.
Where each group becomes an object of a remote storage, time and bytes are others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.engine.recent import Recent
from crawlspace.engine.space import Space
from crawlspace.errors import ArchiveSuspect, DiskFull
from crawlspace.exchange import Capture, Reference
from crawlspace.parsers import Parsed
from crawlspace.ports import Archive, Captures, Frontier, RecordSink
from crawlspace.types import (
    Answer,
    Captured,
    Claim,
    Died,
    Finished,
    Moved,
    Pointer,
    ProcessingFailed,
    Refused,
    Released,
    Rerouted,
    RetryAt,
    Settlement,
    Unchanged,
    WasRedirect,
)

GROUP_ITEMS = 300
GROUP_SECONDS = 0.5
GROUP_BYTES = 32 << 20
GROUP_CLAIMS = 20_000
SUSPECT_TRIES = 3
APPENDS_PER_BREATH = 16
_COMMIT = "commit"


class Cadence(NamedTuple):
    """When a group closes."""

    seconds: float = GROUP_SECONDS
    bytes: int = GROUP_BYTES


REMOTE = Cadence(5.0, 16 << 20)
"""For storages where each group costs a request and becomes a file."""
_USUAL = Cadence()


class Item(Struct):
    """What a visit hands over: captures to keep, a settlement if a lease ends with it, and the links found."""

    captures: Sequence[Capture] = ()
    settlement: Settlement | None = None
    claims: Sequence[Claim] = ()
    parsed: Sequence[Parsed] = ()
    """What parsers made of the last capture."""
    size: int = 0
    """Bytes that wait in memory for the disk; counted here."""

    def __post_init__(self) -> None:
        self.size = sum(len(capture.payload) + len(capture.response_head) for capture in self.captures)


class Basket:
    """Items on their way to the committer: bounded, and closed into groups by the cadence."""

    def __init__(self, is_idle: Callable[[], bool], cadence: Cadence = _USUAL) -> None:
        self._is_idle = is_idle
        self._cadence = cadence
        self._items: list[Item] = []
        self._bytes = 0
        self._claims = 0
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._items)

    async def put(self, item: Item) -> None:
        """Hand over; waits while the committer is behind."""
        while not self._room.is_set():
            await self._room.wait()
        self._items.append(item)
        self._bytes += item.size
        self._claims += len(item.claims)
        if self._is_full(2):
            self._room.clear()
        if len(self._items) == 1 or self._is_full() or self._is_idle():
            self._wake.set()

    def nudge(self) -> None:
        """A fetch has ended: an idle crawl waits for nothing."""
        if self._items and self._is_idle():
            self._wake.set()

    def close(self) -> None:
        """No more items will come."""
        self._closed = True
        self._wake.set()

    async def take(self) -> list[Item]:
        """The next group; empty when closed and drained."""
        while not self._items and not self._closed:
            self._wake.clear()
            await self._wake.wait()
        await self._fill()
        end = self._end_of_group()
        group, self._items = self._items[:end], self._items[end:]
        self._bytes = sum(item.size for item in self._items)
        self._claims = sum(len(item.claims) for item in self._items)
        self._room.set()
        return group

    async def _fill(self) -> None:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self._cadence.seconds, self._wake.set)
        ends = loop.time() + self._cadence.seconds
        try:
            while not (self._closed or self._is_full() or self._is_idle() or loop.time() >= ends):
                self._wake.clear()
                await self._wake.wait()
        finally:
            timer.cancel()

    def _end_of_group(self) -> int:
        """How many items the next group has: never more links or bytes than fit, unless one item alone has them."""
        claims = size = 0
        for place, item in enumerate(self._items[:GROUP_ITEMS]):
            claims += len(item.claims)
            size += item.size
            if (claims > GROUP_CLAIMS or size > self._cadence.bytes) and place:
                return place
        return min(len(self._items), GROUP_ITEMS)

    def _is_full(self, groups: int = 1) -> bool:
        """Whether what waits fills as many groups."""
        return (
            len(self._items) >= groups * GROUP_ITEMS
            or self._bytes >= groups * self._cadence.bytes
            or self._claims >= groups * GROUP_CLAIMS
        )


class Committer:
    """Takes groups from the basket and makes them durable, one after another."""

    def __init__(
        self, frontier: Frontier, archive: Archive, recent: Recent, clock: Clock, watch: events.Watcher
    ) -> None:
        self._frontier = frontier
        self._archive = archive
        self._recent = recent
        self._clock = clock
        self._watch = watch
        self.space = Space(clock, watch)
        self.progress = asyncio.Event()
        """Set after every settled group: the frontier may have something new to lease."""
        self.released: Callable[[int], None] = _ignore
        """Told the token of each lease that was given back: until then it must be kept alive."""
        self.captures: Captures | None = None
        """Asked where bytes lie that a settled page has already; None: all are written again."""
        self.records: RecordSink | None = None
        """Where records go; None: no parser runs."""
        self.prepare: Callable[[list[Item]], Awaitable[None]] | None = None
        """Told each group before any of it is stored; may leave out links."""
        self.settled: Callable[[Sequence[Settlement]], Awaitable[None]] | None = None
        """Told what each group settled, releases included."""
        self.tells_refused = False
        """Whether links that were refused where they were found are told one by one."""
        self.bytes = 0
        """Response bytes settled in this run."""
        self._committing = False

    async def run(self, basket: Basket) -> None:
        """Until the basket is closed and empty."""
        while group := await basket.take():
            self._committing = True
            if self.captures is not None:
                await _refer(group, self.captures)
            if self.prepare is not None:
                await self.prepare(group)
            await self._commit(group)
            self._committing = False
            self.bytes += sum(item.size for item in group)
            self.progress.set()

    def pending(self, basket: Basket) -> bool:
        """True while something handed over is not settled yet."""
        return self._committing or len(basket) > 0

    def is_paused(self) -> bool:
        """True while nothing can be stored, for want of space."""
        return self.space.is_short(_COMMIT)

    async def _commit(self, group: list[Item]) -> None:
        pointers: list[Pointer | None] | None = None
        suspects = 0
        while True:
            try:
                if pointers is None:
                    pointers = await self._store(group)
                await self._settle(group, pointers)
                self.space.found(_COMMIT)
                return
            except DiskFull as full:
                await self.space.wait(_COMMIT, full)
            except ArchiveSuspect as suspect:
                suspects += 1
                if suspects >= SUSPECT_TRIES:
                    raise
                self._watch(events.Warned(f"{suspect}; the group is written again into a new file"))

    async def _store(self, group: list[Item]) -> list[Pointer | None]:
        pointers: list[Pointer | None] = []
        appended = 0
        for item in group:
            pointer = None
            for capture in item.captures:
                pointer = await self._archive.append(capture)
                appended += 1
                if appended % APPENDS_PER_BREATH == 0:
                    await asyncio.sleep(0)
            pointers.append(pointer)
            if self.records is not None:
                await _record(self.records, item, _captured(item, pointer))
        if appended:
            await self._archive.flush()
        if self.records is not None:
            await self.records.flush()
        return pointers

    async def _settle(self, group: list[Item], pointers: list[Pointer | None]) -> None:
        settlements = [
            _with_pointer(item.settlement, pointer)
            for item, pointer in zip(group, pointers, strict=True)
            if item.settlement is not None
        ]
        claims = [claim for item in group for claim in item.claims]
        answers = await self._frontier.settle(settlements, claims)
        self._recent.commit(claims)
        if self.records is not None and Answer.STALE in answers:
            await self._take_back(group, pointers, [each is Answer.STALE for each in answers], self.records)
        for settlement, answer in zip(settlements, answers, strict=True):
            if isinstance(settlement, Released):
                self.released(settlement.token)
            if answer is Answer.SETTLED and not isinstance(settlement, Released):
                self._watch(_seen(settlement))
        if self.tells_refused:
            self._tell_refused(claims)
        late = answers.count(Answer.STALE)
        if late:
            self._watch(events.Warned(f"{late} settlements came too late: others have their hosts now"))
        if self.settled is not None:
            done = zip(settlements, answers, strict=True)
            await self.settled([each for each, answer in done if answer is Answer.SETTLED])

    def _tell_refused(self, claims: Sequence[Claim]) -> None:
        now = self._clock.now()
        for claim in claims:
            if claim.refusal is not None:
                self._watch(events.LinkRefused(claim.address.fetch_url, claim.refusal, claim.parent, now))

    async def _take_back(
        self, group: list[Item], pointers: list[Pointer | None], stale: list[bool], records: RecordSink
    ) -> None:
        """Records of captures that did not become their page's own do not count."""
        settling = [place for place, item in enumerate(group) if item.settlement is not None]
        late = [place for place, is_stale in zip(settling, stale, strict=True) if is_stale]
        lost = [captured for place in late if (captured := _captured(group[place], pointers[place])) is not None]
        if lost:
            await records.void(lost)


async def _record(records: RecordSink, item: Item, captured: Captured | None) -> None:
    if captured is None:
        return
    if isinstance(item.settlement, Unchanged):
        await records.again(captured)
    else:
        await records.write(captured, item.parsed)


def _captured(item: Item, pointer: Pointer | None) -> Captured | None:
    """The capture that an item's records are of; None when it has none."""
    settlement = item.settlement
    if pointer is None or settlement is None or isinstance(settlement, Refused | Released):
        return None
    if not item.parsed and not isinstance(settlement, Unchanged):
        return None
    url = settlement.url
    return Captured(url.id, url.generation, item.captures[-1].url, pointer, settlement.evidence.at)


def _ignore(_token: int) -> None:
    """Nobody asks."""


async def _refer(group: list[Item], captures: Captures) -> None:
    """Let captures of bytes that a settled page has refer to that page: the archive looks whether they can."""
    waiting: dict[bytes, list[Item]] = {}
    for item in group:
        digest = _repeated(item.settlement)
        if digest is not None and item.captures:
            waiting.setdefault(digest, []).append(item)
    for found, items in zip(await captures.originals(list(waiting)), waiting.values(), strict=True):
        for item in items if found is not None else ():
            last = item.captures[-1]
            refers = last.refers_to or Reference(last.url, last.at)
            referring = replace(last, refers_to=replace(refers, pointer=found))
            item.captures = [*item.captures[:-1], referring]


def _repeated(settlement: Settlement | None) -> bytes | None:
    """The digest of the body that this answer repeats, or says to be still right; None when there is none."""
    match settlement:
        case Finished():
            return settlement.evidence.digest
        case Unchanged() if settlement.url.before is not None:
            return settlement.url.before.digest
        case _:
            return None


def _with_pointer(settlement: Settlement, pointer: Pointer | None) -> Settlement:
    if pointer is None or isinstance(settlement, Refused | Released):
        return settlement
    return replace(settlement, evidence=replace(settlement.evidence, pointer=pointer))


_WORDS: Mapping[type[object], str] = MappingProxyType(
    {
        Finished: "done",
        Unchanged: "unchanged",
        ProcessingFailed: "stored",
        WasRedirect: "redirected",
        Moved: "moved",
        RetryAt: "retry",
        Rerouted: "rerouted",
        Died: "dead",
        Refused: "skipped",
        Released: "released",
    }
)


def kind_of(settlement: Settlement) -> str:
    """The settlement in one word, as events and logs name it."""
    return _WORDS[type(settlement)]


def _seen(settlement: Settlement) -> events.PageSettled:
    assert not isinstance(settlement, Released)
    kind = kind_of(settlement)
    if isinstance(settlement, Refused):
        return events.PageSettled(settlement.url.url, kind, None, settlement.reason, 0, 0, 0)
    evidence = settlement.evidence
    return events.PageSettled(
        url=settlement.url.url,
        kind=kind,
        status=evidence.status,
        error=evidence.error,
        size=evidence.size,
        elapsed_ms=evidence.elapsed_ms,
        at=evidence.at,
    )
