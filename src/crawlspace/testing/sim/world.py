"""One simulation from its seed to its verdict: the web, the store, the workers, and who restarts them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from msgspec import Struct

from crawlspace.errors import DiskFull, StoreError
from crawlspace.events import Ending, Event
from crawlspace.exchange import Capture
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.ports import Archive
from crawlspace.settings import convert, nested
from crawlspace.testing.clock import START
from crawlspace.testing.sim import faults
from crawlspace.testing.sim.breakable import Breakable
from crawlspace.testing.sim.checker import Checker, Repeated
from crawlspace.testing.sim.faults import Fault, Strike
from crawlspace.testing.sim.history import History
from crawlspace.testing.sim.loop import Stuck, VirtualLoop, WorldClock
from crawlspace.testing.sim.seams import SimArchive, Troubles
from crawlspace.testing.sim.web import draw
from crawlspace.testing.sim.worker import Worker, owned_task
from crawlspace.types import Pointer
from crawlspace.urls import Identity, policy_from

LONGEST_SECONDS = 12 * 3600.0
"""Within this time every crawl of the size ends, with clocks that are set back by hours."""
EVENTS_BESIDE, EVENTS_EACH = 3_000, 60
"""A crawl that has more events than these, each host and page counted, runs in circles. The worst seeds have half.
Where things go wrong for longer than the first of them, so many events as they do."""
REPEATED = 0.1
"""Share of calls that are made a second time, to see that nothing changes."""


class Size(NamedTuple):
    """How large a simulation is: at most so many hosts, about so many pages, faults during so many events."""

    hosts: int = 24
    pages: int = 70
    events: int = 500
    least: int = 1
    """Hosts, at least: most seeds draw few."""


class Report(Struct, frozen=True):
    """What came of one seed."""

    seed: int
    plan: faults.Plan
    events: int
    digest: str
    hours: float
    """Simulated."""
    violations: tuple[str, ...]
    last: tuple[str, ...]
    hosts: int
    pages: int
    size: Size = Size()
    is_drawn: bool = True
    """The faults are the seed's own."""
    told: tuple[Event, ...] = ()

    def __str__(self) -> str:
        """All that is needed to look into it, and to have it again."""
        head = f"seed {self.seed}: {self.hosts} hosts, {self.pages} pages, {self.plan}"
        told = f"{self.events} events in {self.hours:.1f} simulated hours, history {self.digest}"
        if not self.violations:
            return f"{head}\n{told}: all invariants hold"
        return "\n".join((head, *self.last, told, *self.violations, f"again: {self._again()}"))

    def _again(self) -> str:
        """How to have this simulation once more."""
        if not self.is_drawn:
            return f"simulate({self.seed}, {self.size}, {self.plan!r})"
        usual = Size()._asdict()
        sizes = "".join(f" --{name} {n}" for name, n in self.size._asdict().items() if n != usual[name])
        return f"python -m crawlspace.testing.sim --seed {self.seed}{sizes}"


class World:
    """Everything there is in one simulation."""

    def __init__(self, seed: int, size: Size, loop: VirtualLoop, plan: faults.Plan | None = None) -> None:
        self.seed = seed
        self.size = size
        self.is_drawn = plan is None
        chance = random.Random(f"{seed}/world")
        hosts = max(size.least, min(size.hosts, int(chance.paretovariate(0.7))))
        pages = max(hosts, chance.randint(size.pages // 5, size.pages))
        self.web = draw(random.Random(f"{seed}/web"), hosts, pages)
        self.plan = plan or faults.plan(random.Random(f"{seed}/faults"), size.events)
        self.settings = convert(nested(self.drawn(chance)), "simulation")
        self.recent = chance.choice((8, 256, 1 << 16))
        self.clock = WorldClock(loop, START)
        self.history = History()
        self.troubles = Troubles(self.clock, random.Random(f"{seed}/troubles"))
        self.identity = Identity(policy_from(self.settings.identity), bytes(32))
        self.events: list[Event] = []
        """What workers told those who watch them, but for single pages."""
        self.archive: dict[Pointer, Capture] = {}
        self.checker = Checker(self)
        self.store: SqliteFrontier
        self.workers: dict[int, Worker] = {}
        self.healed = False
        self._repeats = random.Random(f"{seed}/repeats")
        self._restarts = random.Random(f"{seed}/restarts")
        self._strikes = list(reversed(self.plan.strikes))
        self._over = asyncio.Event()
        self._most_events = max(EVENTS_BESIDE, self.plan.events) + EVENTS_EACH * (
            len(self.web.hosts) + len(self.web.pages)
        )

    def drawn(self, chance: random.Random) -> dict[str, Any]:
        """The settings of the crawl, drawn from the seed."""
        return _settings(chance)

    # -- what workers tell ------------------------------------------------------------------------------------

    def happened(self, worker: Worker, what: str) -> None:
        """An event; what is due to go wrong now, does."""
        self.history.add(self.clock.monotonic(), worker.name, what)
        while self._strikes and self.history.count >= self._strikes[-1].event and not self.healed:
            self._strike(self._strikes.pop(), worker)
        if self.history.count >= self.plan.events:
            self.heal()
        if self.history.violations or self.history.count > self._most_events:
            self._over.set()

    def heal(self) -> None:
        """Nothing goes wrong from now on."""
        if self.healed:
            return
        self.healed = True
        self.troubles.heal()
        for worker in self.workers.values():
            worker.paused_until = 0.0
        self.history.add(self.clock.monotonic(), "world", "heals")

    def is_alone(self, worker: Worker) -> bool:
        """Whether no other worker lives: who owns the crawl alone, starts by giving up all leases."""
        return all(other is worker or other.dead for other in self.workers.values())

    async def opened(self) -> None:
        """The store is open and empty."""

    async def open_archive(self, worker: Worker) -> Archive:
        """The archive as a worker has it; here in memory, and shared but for what is not flushed."""
        return SimArchive(worker, self.archive)

    def capture(self, pointer: Pointer) -> Capture | None:
        """What the archive has there, durably."""
        return self.archive.get(pointer)

    def may_end_with(self, worker: Worker, error: BaseException) -> bool:
        """Whether this is how a worker rightly ends, to be started again by a person."""
        if isinstance(error, DiskFull):
            # Before it crawls, a person is told at once; a crawl that runs waits for room.
            return not worker.crawling
        return isinstance(error, StoreError) and "simulated" in str(error)

    async def repeat(self, name: str, args: tuple[Any, ...], answer: Any) -> None:
        """Make a call once more, now and then: nothing may change."""
        if name in ("claim", "settle", "renew") and self._repeats.random() < REPEATED and not self.troubles.break_off:
            before = self.checker.figures()
            again = await getattr(self.store, name)(*args)
            claims = {"claim": 0, "settle": 1}.get(name)
            told = 0 if claims is None else len(args[claims])
            self.checker.repeated(Repeated(name, told, answer, again), before)

    def _strike(self, strike: Strike, worker: Worker) -> None:
        now = self.clock.monotonic()
        self.history.add(now, "world", f"{strike.fault.value} {strike.seconds:.3f} s")
        match strike.fault:
            case Fault.KILL:
                worker.die()
            case Fault.PAUSE:
                worker.paused_until = now + strike.seconds
                self.checker.disturbed(worker, strike.seconds)
            case Fault.ARCHIVE_FULL:
                self.troubles.archive_full_until = now + strike.seconds
            case Fault.STORE_FULL:
                self.troubles.store_full_until = now + strike.seconds
                for each in self.workers.values():
                    self.checker.disturbed(each, strike.seconds)
            case Fault.SYNC_FAILS:
                self.troubles.sync_failures += self._restarts.choice((1, 1, 2, 5))
            case Fault.ANSWER_LOST:
                self.troubles.lose_answer = True
            case Fault.BROKEN_OFF:
                self.troubles.break_off = True
            case Fault.CLOCK:
                self.clock.offset_ms += int(strike.seconds * 1000)
                self.checker.clock_was_set(strike.seconds)

    # -- running ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until all workers have finished, an invariant is broken, or it takes too long."""
        self.store = await SqliteFrontier.open(":memory:", self.settings.frontier(), self.clock, threaded=False)
        try:
            self.checker.connection = self.store._connection
            self.troubles.connection = Breakable(self.store._connection, self.checker.committed)
            self.store._connected = cast("Any", self.troubles.connection)
            self.checker.begins()
            await self.opened()
            lives = [asyncio.create_task(self._lives(number)) for number in range(self.plan.workers)]
            over = asyncio.create_task(self._over.wait())
            limit = asyncio.create_task(asyncio.sleep(LONGEST_SECONDS))
            await self._wait(lives, over, limit)
            if not self.history.violations:
                self.checker.at_the_end()
        finally:
            await self.store.close()

    async def _wait(self, lives: list[asyncio.Task[None]], *ends: asyncio.Task[Any]) -> None:
        everybody = asyncio.create_task(asyncio.wait(lives))
        try:
            await asyncio.wait([everybody, *ends], return_when=asyncio.FIRST_COMPLETED)
            if not everybody.done() and not self.history.violations:
                self.history.broken("L4", "the crawl does not end")
        finally:
            for worker in self.workers.values():
                worker.die()
            for task in (everybody, *lives, *ends):
                task.cancel()
            await asyncio.gather(everybody, *lives, *ends, *self._tasks(), return_exceptions=True)
            for life in lives:
                if not life.cancelled() and (error := life.exception()) is not None:
                    raise error

    def _tasks(self) -> list[asyncio.Task[Any]]:
        return [task for worker in self.workers.values() for task in worker.tasks]

    async def _lives(self, number: int) -> None:
        """One worker, started again whenever its process ends before the crawl does."""
        life = 0
        while True:
            worker = self.workers[number] = Worker(self, number, life)
            task = worker.start()
            await asyncio.wait([task])
            if self._has_finished(worker, task):
                return
            worker.die()
            await asyncio.gather(*worker.tasks, return_exceptions=True)
            self.checker.audit()
            life += 1
            self.history.add(self.clock.monotonic(), worker.name, "ended, and starts again")
            await asyncio.sleep(self._restarts.choice((0.0, 0.5, 20.0, 200.0)))

    def _has_finished(self, worker: Worker, task: asyncio.Task[Ending]) -> bool:
        if task.cancelled():
            return False
        error = task.exception()
        if error is None:
            if task.result() is not Ending.FINISHED:
                self.history.broken("L4", f"{worker.name} ended with {task.result()}")
            return True
        if not self.may_end_with(worker, error):
            self.history.broken("L5", f"{worker.name} ended with {type(error).__name__}: {error}")
            self._over.set()
        self.history.add(self.clock.monotonic(), worker.name, f"failed: {error}")
        return False


def _settings(chance: random.Random) -> dict[str, Any]:
    return {
        "contact": "simulation@example.org",
        "host.delay": chance.choice((0, 0.2, 1, 4)),
        "host.failure_wait": 5,
        "robots.retry": 30,
        "robots.cache": chance.choice((60, 600, 86_400)),
        "retry.wait": chance.choice((0, 1, 30)),
        "concurrency.global": chance.choice((1, 4, 64)),
        "concurrency.hosts": chance.choice((2, 10, 1000)),
        "store.cache_mb": 1,
    }


def simulate(
    seed: int, size: Size | None = None, plan: faults.Plan | None = None, make: Callable[..., World] = World
) -> Report:
    """Run one seed; with a plan, these faults instead of the seed's own; in another kind of world if one is given."""
    loop = VirtualLoop()
    loop.set_task_factory(owned_task)
    try:
        world = make(seed, size or Size(), loop, plan)
        try:
            loop.run_until_complete(world.run())
        except Stuck as stuck:
            world.history.broken("L4", str(stuck))
        return _report(world)
    finally:
        loop.close()


def _report(world: World) -> Report:
    history = world.history
    return Report(
        seed=world.seed,
        plan=world.plan,
        events=history.count,
        digest=history.digest,
        hours=world.clock.monotonic() / 3600,
        violations=tuple(map(str, history.violations)),
        last=tuple(history.last),
        hosts=len(world.web.hosts),
        pages=len(world.web.pages),
        size=world.size,
        is_drawn=world.is_drawn,
        told=tuple(world.events),
    )
