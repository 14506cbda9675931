"""The embedded frontier: `ports.Frontier` and `ports.Ledger` over one SQLite file.

One process owns the file; the lock on the crawl directory is taken elsewhere. All work runs on one thread of its own,
one call after the other, each in one transaction: what is raised inside leaves the store as it was.
A claim that was answered, and a settlement, survive the death of the process at once, and a power cut as the
durability setting says.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from crawlspace.clock import Clock
from crawlspace.errors import StoreError
from crawlspace.exchange import RobotsFile
from crawlspace.frontier.content_rows import Found
from crawlspace.frontier.crowds import FIRST, Place
from crawlspace.frontier.quotas import Quotas
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import captures, connection, control, revisit
from crawlspace.frontier.sqlite.adopt import Adopting
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.claim import Claiming
from crawlspace.frontier.sqlite.condemned import bury_some
from crawlspace.frontier.sqlite.connection import MEMORY, durably, reading, translated, writing
from crawlspace.frontier.sqlite.content import Contents
from crawlspace.frontier.sqlite.crew import meet
from crawlspace.frontier.sqlite.learned import declare, declared, learn, learned
from crawlspace.frontier.sqlite.lease import Leasing, next_due, renew
from crawlspace.frontier.sqlite.ledger import Ledger
from crawlspace.frontier.sqlite.loss import Losing, clamp
from crawlspace.frontier.sqlite.reprocess import Reprocessing
from crawlspace.frontier.sqlite.review import Reviewing, browse
from crawlspace.frontier.sqlite.revive import revive
from crawlspace.frontier.sqlite.routes import RouteTable
from crawlspace.frontier.sqlite.schema import migrate, require, steps
from crawlspace.frontier.sqlite.settle import Settling
from crawlspace.policy.commands import Asked, Hold, News
from crawlspace.policy.evidence import KnownRule, Lesson
from crawlspace.policy.review import Browsed, Cursor, Ruling, Shelf
from crawlspace.types import (
    Adopted,
    Answer,
    Claim,
    Claimed,
    Copied,
    Counts,
    Crew,
    DeadLetter,
    Finished,
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
    Settlement,
    ShapeFigures,
    Story,
    Wish,
    Yield,
)

T = TypeVar("T")

LOOK_AGAIN_MS = 1_000
"""As long as anything is under way anywhere, one of several processes without work looks again after this time."""


class SqliteFrontier(RouteTable):
    """A frontier in one file. Make it with `open`."""

    def __init__(self, path: Path | str, settings: FrontierSettings, clock: Clock, *, threaded: bool) -> None:
        self._path = str(path) if str(path) == MEMORY else str(Path(path).absolute())
        self._settings = settings
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "frontier") if threaded else None
        self._quotas = Quotas(settings.class_quotas)
        self._connected: sqlite3.Connection | None = None
        self._closed = False
        self._worker = 0
        self._crowded: Place | None = FIRST
        """How far hosts that rest for their address were looked at again since the start; None when all were."""
        self._asking = 0  # the worker that asked for leases last

    @classmethod
    async def open(
        cls,
        path: Path | str,
        settings: FrontierSettings,
        clock: Clock,
        *,
        threaded: bool = True,
        read_only: bool = False,
    ) -> SqliteFrontier:
        """Open the store, made or brought up to date as needed; `:memory:` lives as long as the object.

        With `read_only` nothing is written, and a crawl may go on meanwhile. Without `threaded` every call runs
        where it is made: for simulations and tests. Raises `CrawlDirError` when the file cannot be used: not there,
        not writable, of another program, or of a newer version.
        """
        store = cls(path, settings, clock, threaded=threaded)
        return await store._opened(store._open_to_read if read_only else store._open)

    @classmethod
    async def open_beside(
        cls, path: Path | str, settings: FrontierSettings, clock: Clock, *, worker: int = 0
    ) -> SqliteFrontier:
        """Open the store to ask something of it while its owner writes: its format is left as it is.

        With the number of a `worker`, to crawl as one of several processes: what `Wish.worker` should be.
        """
        store = cls(path, settings, clock, threaded=True)
        store._worker = worker
        return await store._opened(store._open_beside)

    async def _opened(self, way: Callable[[], None]) -> SqliteFrontier:
        try:
            await self._run(way)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Finish what runs and let go of the file; a second call does nothing."""
        if self._closed:
            return
        await self._run(self._disconnect)
        self._closed = True
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    # -- the frontier ---------------------------------------------------------------------------------------

    async def claim(self, claims: Sequence[Claim], now: int | None = None) -> list[Claimed]:
        return await self._write(lambda book, at: self._claiming(book, at).run(self._contents().trodden(claims)), now)

    async def lease(self, wish: Wish, now: int | None = None) -> list[Lease]:
        leases, self._crowded = await self._write(partial(self._lease, wish), now)
        return leases

    async def renew(self, tokens: Sequence[int], ttl_ms: int, now: int | None = None) -> list[bool]:
        return await self._write(lambda _, at: [renew(self._connection, token, at + ttl_ms) for token in tokens], now)

    async def settle(
        self, settlements: Sequence[Settlement], claims: Sequence[Claim], now: int | None = None
    ) -> list[Answer]:
        return await self._write(partial(self._settle, settlements, claims), now)

    async def reclaim(self, now: int | None = None) -> int:
        return await self._write(lambda book, at: self._losing(book, at).expired(), now)

    async def void_leases(self, now: int | None = None) -> int:
        """Give up every lease at once, as the owner of the crawl directory does at its start; how many.

        One of several processes gives up those of its own number. Their URLs come back as suspects. Also sets right
        hosts that wait for a time which only a wrong clock can have written.
        """
        await self._write(lambda _, at: clamp(self._connection, at), now)
        lost = 0
        while n := await self._write(lambda book, at: self._losing(book, at).live(self._worker), now):
            lost += n
        return lost

    async def due_in(self, now: int | None = None) -> int | None:
        """As the port has it; for one of several processes never far ahead, since others may queue something."""
        at = self._at(now)
        due = await self._read(lambda _: next_due(self._connection, self._settings, self._asking, at))
        if due is None:
            return None
        wait = max(0, due - at)
        return min(wait, LOOK_AGAIN_MS) if self._worker else wait

    async def meet(self, worker: int, most: int, ttl_ms: int, now: int | None = None) -> Crew:
        return await self._write(lambda _, at: meet(self._connection, worker, most, ttl_ms, at), now)

    async def counts(self) -> Counts:
        return await self._read(Ledger.counts)

    async def dead(self, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        return await self._read(lambda ledger: ledger.dead(after, limit))

    async def revive(self, ids: Sequence[int], now: int | None = None) -> int:
        return await self._write(lambda book, _: revive(self._connection, book, ids), now)

    # -- the ledger -----------------------------------------------------------------------------------------

    async def notes(self) -> Mapping[str, str]:
        return await self._read(Ledger.notes)

    async def note(self, facts: Mapping[str, str]) -> None:
        await self._run(self._durably, lambda ledger: ledger.note(facts))

    async def revise(self, name: str, old: str | None, new: str) -> bool:
        return await self._run(self._durably, lambda ledger: ledger.revise(name, old, new))

    async def robots(self, origins: Sequence[str]) -> list[RobotsFile | None]:
        return await self._read(lambda ledger: ledger.robots(origins))

    async def keep_robots(self, files: Sequence[RobotsFile]) -> None:
        await self._write(lambda _, __: Ledger(self._connection, self._settings).keep_robots(files), None)

    async def find(self, keys: Sequence[bytes]) -> list[Story | None]:
        return await self._read(lambda ledger: ledger.find(keys))

    async def hosts(self, after: str = "", limit: int = 100) -> list[HostFigures]:
        return await self._read(lambda ledger: ledger.hosts(after, limit))

    async def refused(self, hid: int, reason: Reason, after: int = 0, limit: int = 100) -> list[Story]:
        return await self._read(lambda ledger: ledger.refused(hid, reason, after, limit))

    async def unprocessed(self, after: int = 0, limit: int = 100) -> list[Story]:
        return await self._read(lambda ledger: ledger.unprocessed(after, limit))

    # -- visits beyond the first ----------------------------------------------------------------------------

    async def rounds(self, keys: Sequence[bytes]) -> list[list[Round]]:
        return await self._read(lambda _: revisit.rounds(self._connection, keys))

    async def generations(self) -> list[GenerationFigures]:
        return await self._read(lambda ledger: revisit.generations(self._connection, dict(ledger.counts().states)))

    async def next_visit(self) -> int | None:
        return await self._read(lambda _: revisit.next_visit(self._connection))

    async def plan_visits(self, after: int, limit: int, by: Plan) -> int | None:
        return await self._write(lambda _, __: revisit.plan(self._connection, after, limit, by), None)

    async def originals(self, digests: Sequence[bytes]) -> list[Pointer | None]:
        return await self._read(lambda _: captures.originals(self._connection, digests))

    async def relocate(self, joined: Sequence[Joined]) -> None:
        await self._run(self._relocate, joined)

    async def segments(self) -> dict[str, int]:
        """How far settled captures reach into each of the archive's files: what must be there at a start."""
        return await self._read(Ledger.segments)

    # -- learned rules --------------------------------------------------------------------------------------

    async def learned(self) -> list[KnownRule]:
        return await self._read(lambda _: learned(self._connection))

    async def learn(self, lessons: Sequence[Lesson], now: int | None = None) -> None:
        await self._write(lambda _, at: learn(self._connection, lessons, at), now)

    async def declared(self, keys: Sequence[bytes]) -> list[str | None]:
        return await self._read(lambda _: declared(self._connection, keys))

    # -- content --------------------------------------------------------------------------------------------

    async def copies(self, pages: Sequence[Copied]) -> list[int | None]:
        return await self._read(lambda _: self._contents().copies(pages))

    async def contents(self, numbers: Sequence[int]) -> list[PageContent | None]:
        return await self._read(lambda _: self._contents().contents(numbers))

    async def groups(self, after: tuple[int, int] = (0, 0), limit: int = 1000) -> list[PageContent]:
        return await self._read(lambda _: self._contents().groups(after, limit))

    async def addresses(self, numbers: Sequence[int]) -> list[str | None]:
        return await self._read(lambda _: self._contents().addresses(numbers))

    async def shapes(self, hid: int | None = None, run: int = 0, limit: int = 100) -> list[ShapeFigures]:
        return await self._read(lambda _: self._contents().shapes(hid, run, limit))

    async def yields(self, hid: int | None = None) -> list[Yield]:
        return await self._read(lambda _: self._contents().yields(hid))

    async def content_totals(self) -> Mapping[str, int]:
        return await self._read(lambda _: self._contents().totals())

    async def probe(self, hid: int) -> Probe | None:
        return await self._read(lambda _: self._contents().probe(hid))

    async def keep_probe(self, hid: int, probe: Probe) -> None:
        await self._write(lambda _, __: self._contents().keep_probe(hid, probe), None)

    # -- control --------------------------------------------------------------------------------------------

    async def ask(self, commands: Sequence[str], now: int | None = None) -> list[int]:
        return await self._write(lambda _, at: control.ask(self._connection, commands, at), now)

    async def asked(self, limit: int = 100) -> list[Asked]:
        """Commands that are not carried out yet: by the owner, so that its workers get none."""
        if self._worker:
            return []
        return await self._read(lambda _: control.asked(self._connection, limit))

    async def answers(self, numbers: Sequence[int]) -> list[Asked | None]:
        return await self._read(lambda _: control.answers(self._connection, numbers))

    async def news(self, edition: int) -> News | None:
        return await self._read(lambda ledger: ledger.news(edition))

    async def hold(self, hosts: Sequence[tuple[int, str]], how: Hold | None) -> None:
        await self._write(lambda _, __: control.hold(self._connection, hosts, how), None)

    async def browse(self, shelf: Shelf, after: Cursor = (), limit: int = 100) -> Browsed:
        return await self._read(lambda _: browse(self._connection, shelf, after, limit))

    async def rule(self, rulings: Sequence[Ruling], asked: Asked | None = None, now: int | None = None) -> list[bool]:
        return await self._write(partial(self._rule, rulings, asked), now)

    async def alarm(self, hosts: Sequence[tuple[int, str]]) -> None:
        await self._write(lambda _, __: control.alarm(self._connection, hosts), None)

    async def adopt(
        self, settlements: Sequence[Adopted], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        return await self._write(partial(self._adopt, settlements, claims), now)

    async def finish_stored(
        self, settlements: Sequence[Finished], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        return await self._write(partial(self._finish, settlements, claims), now)

    # -- the work, on the store's thread --------------------------------------------------------------------

    @property
    def _connection(self) -> sqlite3.Connection:
        assert self._connected is not None, "only open() makes a store, and it connects"
        return self._connected

    def _open(self) -> None:
        self._connected = connection.connect(self._path, self._settings)
        migrate(self._connected, self._path, steps())

    def _open_to_read(self) -> None:
        self._connected = connection.connect_reading(self._path, self._settings)
        require(self._connected, self._path, len(steps()))

    def _open_beside(self) -> None:
        self._connected = connection.connect(self._path, self._settings)
        require(self._connected, self._path, len(steps()))

    def _disconnect(self) -> None:
        if self._connected is not None:
            self._connected.close()

    def _lease(self, wish: Wish, book: Book, now: int) -> tuple[list[Lease], Place | None]:
        self._asking = wish.worker
        leasing = Leasing(self._connection, self._settings, book, now)
        bury_some(self._connection, book, now)
        leasing.wake(wish.worker)
        crowded = None if self._crowded is None else leasing.free_crowded(self._crowded)
        return self._contents().warned(leasing.run(wish, self._quotas)), crowded

    def _settle(
        self, settlements: Sequence[Settlement], claims: Sequence[Claim], book: Book, now: int
    ) -> list[Answer]:
        contents, found = self._claimed(claims, book, now)
        settling = Settling(self._connection, self._settings, book, now)
        answers = settling.run(settlements)
        declare(self._connection, settlements, answers)
        contents.keep(settlements, settling.pages, found, now)
        return answers

    def _rule(self, rulings: Sequence[Ruling], asked: Asked | None, book: Book, now: int) -> list[bool]:
        if asked is not None:
            control.progress(self._connection, asked, now)
        return Reviewing(self._connection, self._settings, book, now).run(rulings)

    def _adopt(self, settlements: Sequence[Adopted], claims: Sequence[Claim], book: Book, now: int) -> list[bool]:
        contents, found = self._claimed(claims, book, now)
        adopting = Adopting(self._connection, self._settings, book, now)
        answers = adopting.adopt(settlements)
        declare(self._connection, settlements, answers)
        contents.keep(settlements, adopting.pages, found, now)
        return [answer is Answer.SETTLED for answer in answers]

    def _finish(self, settlements: Sequence[Finished], claims: Sequence[Claim], book: Book, now: int) -> list[bool]:
        contents, found = self._claimed(claims, book, now)
        reprocessing = Reprocessing(self._connection, self._settings, book, now)
        finished = reprocessing.finish(settlements)
        contents.keep(settlements, reprocessing.pages, found, now)
        return finished

    def _claimed(self, claims: Sequence[Claim], book: Book, now: int) -> tuple[Contents, Found]:
        """Claim the links of pages that are settled next; the content index, and what it is to hear of the links."""
        claiming, contents = self._claiming(book, now), self._contents()
        claims = contents.trodden(claims)
        found = Found.of(claims, claiming.run(claims), claiming.turned_away())
        book.write()
        return contents, found

    def _durably(self, work: Callable[[Ledger], T]) -> T:
        with durably(self._connection, self._settings), writing(self._connection):
            return work(Ledger(self._connection, self._settings))

    def _relocate(self, joined: Sequence[Joined]) -> None:
        # What pointed into the parts must not come back after a loss of power: they are removed next.
        with durably(self._connection, self._settings), writing(self._connection):
            captures.relocate(self._connection, joined)

    def _claiming(self, book: Book, now: int) -> Claiming:
        return Claiming(self._connection, self._settings, book, now)

    def _contents(self) -> Contents:
        return Contents(self._connection, self._settings)

    def _losing(self, book: Book, now: int) -> Losing:
        return Losing(self._connection, self._settings, book, now)

    def _at(self, now: int | None) -> int:
        return self._clock.now() if now is None else now

    # -- one call, one transaction --------------------------------------------------------------------------

    async def _write(self, work: Callable[[Book, int], T], now: int | None) -> T:
        return await self._run(self._writing, work, now)

    async def _read(self, work: Callable[[Ledger], T]) -> T:
        return await self._run(self._reading, work)

    def _writing(self, work: Callable[[Book, int], T], now: int | None) -> T:
        with writing(self._connection):
            book = Book(self._connection, self._settings)
            result = work(book, self._at(now))
            book.write()
        return result

    def _reading(self, work: Callable[[Ledger], T]) -> T:
        with reading(self._connection):
            return work(Ledger(self._connection, self._settings))

    async def _run(self, work: Callable[..., T], *arguments: object) -> T:
        if self._closed:
            raise StoreError(f"{self._path} is closed")
        if self._thread is None:
            return self._translated(work, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._translated, work, *arguments)

    def _translated(self, work: Callable[..., T], *arguments: object) -> T:
        with translated(self._path):
            return work(*arguments)
