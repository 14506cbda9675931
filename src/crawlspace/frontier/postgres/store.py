"""The frontier of a fleet: `ports.Frontier` and `ports.Ledger` over one PostgreSQL schema.

Any number of workers share it, in any number of processes. Each call is one transaction: what is raised inside leaves
the store as it was. Time is the server's; a worker's own clock may differ, and what it says of its hosts is
translated, always to the later side, so that no host is visited early.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TypeVar

from crawlspace.clock import Clock
from crawlspace.errors import StoreError
from crawlspace.exchange import RobotsFile
from crawlspace.frontier.crowds import FIRST
from crawlspace.frontier.crowds import Place as Crowded
from crawlspace.frontier.postgres import captures, control, revisit
from crawlspace.frontier.postgres.adopt import adopt
from crawlspace.frontier.postgres.audit import contradictions
from crawlspace.frontier.postgres.book import Book
from crawlspace.frontier.postgres.claim import claim
from crawlspace.frontier.postgres.content import Contents
from crawlspace.frontier.postgres.crew import meet
from crawlspace.frontier.postgres.fence import Fence, look
from crawlspace.frontier.postgres.learned import declare, declared, learn, learned
from crawlspace.frontier.postgres.lease import affordable, lease, next_due, renew
from crawlspace.frontier.postgres.ledger import Ledger
from crawlspace.frontier.postgres.loss import clamp, reclaim, void
from crawlspace.frontier.postgres.place import Place, Shards
from crawlspace.frontier.postgres.reprocess import finish_stored
from crawlspace.frontier.postgres.review import browse, rule
from crawlspace.frontier.postgres.revive import revive
from crawlspace.frontier.postgres.routes import RouteTable
from crawlspace.frontier.postgres.schema import migrate, require, steps
from crawlspace.frontier.postgres.sessions import Connection, Sessions
from crawlspace.frontier.postgres.settle import settle
from crawlspace.frontier.postgres.times import Time, ours, theirs
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.frontier.postgres.wake import free_crowded, wake
from crawlspace.frontier.quotas import Quotas
from crawlspace.frontier.settings import FrontierSettings
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
"""As long as anything is under way anywhere, a worker without work looks again after this time."""
NOBODY = 0
"""The number of a store that was opened without the name of a worker."""


class PostgresFrontier(RouteTable):
    """One worker's way to a frontier. Make it with `open`."""

    def __init__(self, place: Place, settings: FrontierSettings, clock: Clock) -> None:
        self._place = place
        self._settings = settings
        self._clock = clock
        self._sessions = Sessions(place, settings, clock)
        self._shards = Shards(place.shards)
        self._quotas = Quotas(settings.class_quotas)
        self._slot = os.getpid()
        self._fence = Fence()
        self._closed = False
        self._crowded: Crowded | None = FIRST
        """How far hosts that rest for their address were looked at again since the start; None when all were."""
        self._asking = NOBODY
        """The worker that asked for leases last."""
        self.worker = NOBODY
        """This worker's number: what `Wish.worker` should be."""

    @classmethod
    async def open(
        cls,
        place: Place,
        settings: FrontierSettings,
        clock: Clock,
        *,
        worker: str = "",
    ) -> PostgresFrontier:
        """Connect to the store, made or brought up to date as needed.

        `worker` is the name of what owns an archive, the same at each start: leases and archive files go by it.
        Raises `StoreError` when the server cannot be reached and `CrawlDirError` when the schema cannot be used.
        """
        store = cls(place, settings, clock)
        return await store._opened(migrate, worker)

    @classmethod
    async def open_beside(cls, place: Place, settings: FrontierSettings, clock: Clock) -> PostgresFrontier:
        """Connect to a store that is there, to look or to ask something: its format is left as it is."""
        store = cls(place, settings, clock)
        return await store._opened(require, "")

    async def _opened(
        self, way: Callable[[Connection, Place, Sequence[str]], Awaitable[Shards]], worker: str
    ) -> PostgresFrontier:
        try:
            await self._sessions.open()
            async with self._sessions.plain() as connection:
                self._shards = await way(connection, self._place, steps())
                self._fence = Fence((await look(connection)).rekeyings)
            if worker:
                self.worker = await self._write(lambda it: Ledger(it).enlist(worker), NOBODY)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the sessions; a second call does nothing."""
        if not self._closed:
            self._closed = True
            await self._sessions.close()

    # -- the frontier ---------------------------------------------------------------------------------------

    async def claim(self, claims: Sequence[Claim], now: int | None = None) -> list[Claimed]:
        return await self._write(partial(_claim, claims), now) if claims else []

    async def lease(self, wish: Wish, now: int | None = None) -> list[Lease]:
        """As the port has it. Where the answer to a commit was lost, the leases that it gave are the answer."""
        given: list[Lease] = []
        reached = [self._crowded]

        async def work(transaction: Transaction, time: Time) -> list[Lease]:
            self._asking = wish.worker
            asked = await affordable(transaction, wish)
            kept = await renew(transaction, [each.token for each in given], wish.ttl_ms) if given else []
            if any(kept):
                return list(compress(given, kept))
            if time.rests:
                return []
            await wake(transaction, wish.worker)
            if self._crowded is not None:
                reached[:] = [await free_crowded(transaction, self._crowded)]
            leases = await Contents(transaction).warned(await lease(transaction, asked, self._quotas))
            given[:] = [theirs(each, time) for each in leases]
            return given

        leases = await self._timed(work, now)
        self._crowded = reached[0]
        return leases

    async def renew(self, tokens: Sequence[int], ttl_ms: int, now: int | None = None) -> list[bool]:
        return await self._write(lambda it: renew(it, tokens, ttl_ms), now) if tokens else []

    async def settle(
        self, settlements: Sequence[Settlement], claims: Sequence[Claim], now: int | None = None
    ) -> list[Answer]:
        async def work(transaction: Transaction, time: Time) -> list[Answer]:
            answers = await settle(transaction, [ours(each, time) for each in settlements], claims)
            await declare(transaction, settlements, answers)
            return answers

        return await self._timed(work, now) if settlements or claims else []

    async def reclaim(self, now: int | None = None) -> int:
        return await self._write(reclaim, now)

    async def void_leases(self, now: int | None = None) -> int:
        """Give up the leases that this worker held before it was started; how many.

        Their URLs come back as suspects. Those of other workers end when their time is over. Also sets right hosts
        that wait for a time which only a wrong clock can have written.
        """
        await self._write(clamp, now)
        lost = 0
        while n := await self._write(lambda it: void(it, self.worker), now):
            lost += n
        return lost

    async def due_in(self, now: int | None = None) -> int | None:
        """As the port has it; by the store's own clock never far ahead, since others may queue something any time."""

        async def work(transaction: Transaction) -> int | None:
            due = await next_due(transaction, self._asking)
            if due is None:
                return None
            wait = max(0, due - transaction.now)
            return wait if now is not None else min(wait, LOOK_AGAIN_MS)

        return await self._write(work, now)

    async def meet(self, worker: int, most: int, ttl_ms: int, now: int | None = None) -> Crew:
        return await self._write(lambda it: meet(it, worker, most, ttl_ms), now)

    async def counts(self) -> Counts:
        return await self._read(Ledger.counts)

    async def dead(self, after: int = 0, limit: int = 100) -> list[DeadLetter]:
        return await self._read(lambda ledger: ledger.dead(after, limit))

    async def revive(self, ids: Sequence[int], now: int | None = None) -> int:
        return await self._write(lambda it: revive(it, ids), now)

    # -- the ledger -----------------------------------------------------------------------------------------

    async def notes(self) -> Mapping[str, str]:
        return await self._read(Ledger.notes)

    async def note(self, facts: Mapping[str, str]) -> None:
        """Write facts. `hash_key` keeps its first value for ever: read it back."""
        await self._write(lambda it: Ledger(it).note(facts), NOBODY)

    async def revise(self, name: str, old: str | None, new: str) -> bool:
        return await self._write(lambda it: Ledger(it).revise(name, old, new), NOBODY)

    async def robots(self, origins: Sequence[str]) -> list[RobotsFile | None]:
        return await self._read(lambda ledger: ledger.robots(origins))

    async def keep_robots(self, files: Sequence[RobotsFile]) -> None:
        await self._write(lambda it: Ledger(it).keep_robots(files), NOBODY)

    async def find(self, keys: Sequence[bytes]) -> list[Story | None]:
        return await self._read(lambda ledger: ledger.find(keys))

    async def hosts(self, after: str = "", limit: int = 100) -> list[HostFigures]:
        return await self._read(lambda ledger: ledger.hosts(after, limit))

    async def refused(self, hid: int, reason: Reason, after: int = 0, limit: int = 100) -> list[Story]:
        return await self._read(lambda ledger: ledger.refused(hid, reason, after, limit))

    async def unprocessed(self, after: int = 0, limit: int = 100) -> list[Story]:
        return await self._read(lambda ledger: ledger.unprocessed(after, limit))

    async def originals(self, digests: Sequence[bytes]) -> list[Pointer | None]:
        return await self._look(lambda it: captures.originals(it, digests))

    async def relocate(self, joined: Sequence[Joined]) -> None:
        await self._write(lambda it: captures.relocate(it, joined), NOBODY)

    async def segments(self) -> dict[str, int]:
        """How far settled captures reach into each file of this worker's archive: what must be there at a start."""
        return await self._read(Ledger.segments)

    # -- visits beyond the first ----------------------------------------------------------------------------

    async def rounds(self, keys: Sequence[bytes]) -> list[list[Round]]:
        return await self._look(lambda it: revisit.rounds(it, keys))

    async def generations(self) -> list[GenerationFigures]:
        async def work(transaction: Transaction) -> list[GenerationFigures]:
            return await revisit.generations(transaction, (await Ledger(transaction).counts()).states)

        return await self._look(work)

    async def next_visit(self) -> int | None:
        return await self._look(revisit.next_visit)

    async def plan_visits(self, after: int, limit: int, by: Plan) -> int | None:
        return await self._write(lambda it: revisit.plan(it, after, limit, by), NOBODY)

    # -- learned rules --------------------------------------------------------------------------------------

    async def learned(self) -> list[KnownRule]:
        return await self._look(learned)

    async def learn(self, lessons: Sequence[Lesson], now: int | None = None) -> None:
        await self._write(lambda it: learn(it, lessons), now)

    async def declared(self, keys: Sequence[bytes]) -> list[str | None]:
        return await self._look(lambda it: declared(it, keys))

    # -- content --------------------------------------------------------------------------------------------

    async def copies(self, pages: Sequence[Copied]) -> list[int | None]:
        return await self._look(lambda it: Contents(it).copies(pages)) if pages else []

    async def contents(self, numbers: Sequence[int]) -> list[PageContent | None]:
        return await self._look(lambda it: Contents(it).contents(numbers))

    async def groups(self, after: tuple[int, int] = (0, 0), limit: int = 1000) -> list[PageContent]:
        return await self._look(lambda it: Contents(it).groups(after, limit))

    async def addresses(self, numbers: Sequence[int]) -> list[str | None]:
        return await self._look(lambda it: Contents(it).addresses(numbers))

    async def shapes(self, hid: int | None = None, run: int = 0, limit: int = 100) -> list[ShapeFigures]:
        return await self._look(lambda it: Contents(it).shapes(hid, run, limit))

    async def yields(self, hid: int | None = None) -> list[Yield]:
        return await self._look(lambda it: Contents(it).yields(hid))

    async def content_totals(self) -> Mapping[str, int]:
        return await self._look(lambda it: Contents(it).totals())

    async def probe(self, hid: int) -> Probe | None:
        return await self._look(lambda it: Contents(it).probe(hid))

    async def keep_probe(self, hid: int, probe: Probe) -> None:
        await self._write(lambda it: Contents(it).keep_probe(hid, probe), None)

    # -- control --------------------------------------------------------------------------------------------

    async def ask(self, commands: Sequence[str], now: int | None = None) -> list[int]:
        return await self._write(lambda it: control.ask(it, commands), now)

    async def asked(self, limit: int = 100) -> list[Asked]:
        """Commands that are not carried out yet; a worker gets those that no other worker has taken, and has them."""
        if self.worker == NOBODY:
            return await self._look(lambda it: control.asked(it, limit))
        return await self._write(lambda it: control.take(it, limit), None)

    async def answers(self, numbers: Sequence[int]) -> list[Asked | None]:
        return await self._look(lambda it: control.answers(it, numbers))

    async def news(self, edition: int) -> News | None:
        return await self._read(lambda ledger: ledger.news(edition))

    async def hold(self, hosts: Sequence[tuple[int, str]], how: Hold | None) -> None:
        await self._write(lambda it: control.hold(it, hosts, how), NOBODY)

    async def browse(self, shelf: Shelf, after: Cursor = (), limit: int = 100) -> Browsed:
        return await self._look(lambda it: browse(it, shelf, after, limit))

    async def rule(self, rulings: Sequence[Ruling], asked: Asked | None = None, now: int | None = None) -> list[bool]:
        async def work(transaction: Transaction) -> list[bool]:
            done = await rule(transaction, rulings)
            if asked is not None:
                await control.progress(transaction, asked)
            return done

        return await self._write(work, now)

    async def alarm(self, hosts: Sequence[tuple[int, str]]) -> None:
        await self._write(lambda it: control.alarm(it, hosts), NOBODY)

    async def adopt(
        self, settlements: Sequence[Adopted], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        async def work(transaction: Transaction) -> list[bool]:
            answers = await adopt(transaction, settlements, claims)
            await declare(transaction, settlements, answers)
            return [answer is Answer.SETTLED for answer in answers]

        return await self._write(work, now) if settlements or claims else []

    async def finish_stored(
        self, settlements: Sequence[Finished], claims: Sequence[Claim], now: int | None = None
    ) -> list[bool]:
        if not settlements:
            return []
        return await self._write(lambda it: finish_stored(it, settlements, claims), now)

    async def audit(self) -> list[str]:
        """What the store says of itself that its rows do not, one line each; reads everything."""
        return await self._look(contradictions)

    # -- one call, one transaction --------------------------------------------------------------------------

    async def _write(self, work: Callable[[Transaction], Awaitable[T]], now: int | None) -> T:
        return await self._timed(lambda transaction, _: work(transaction), now)

    async def _timed(self, work: Callable[[Transaction, Time], Awaitable[T]], now: int | None) -> T:
        async def whole(connection: Connection) -> T:
            time = await self._time(connection, now)
            transaction = self._transaction(connection, time.now)
            result = await work(transaction, time)
            await transaction.finish()
            return result

        self._require_open()
        return await self._sessions.write(whole)

    async def _read(self, work: Callable[[Ledger], Awaitable[T]]) -> T:
        return await self._look(lambda transaction: work(Ledger(transaction)))

    async def _look(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        self._require_open()
        return await self._sessions.read(lambda connection: work(self._transaction(connection, NOBODY)))

    async def _time(self, connection: Connection, now: int | None) -> Time:
        before = self._clock.now()
        moment = await self._fence.enter(connection)
        rests = moment.wanted_until > moment.now
        if now is not None:
            return Time(now, rests=rests)
        return Time(moment.now, moment.now - self._clock.now(), moment.now - before, rests)

    def _transaction(self, connection: Connection, now: int) -> Transaction:
        return Transaction(connection, self._settings, self._shards, self.worker, now, Book(self._slot))

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self._sessions.shown} is closed")


async def _claim(claims: Sequence[Claim], transaction: Transaction) -> list[Claimed]:
    return await claim(transaction, claims)
