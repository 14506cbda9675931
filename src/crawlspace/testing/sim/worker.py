"""One process of the simulated crawl: the product's own composition over simulated ports, to be killed and paused."""

from __future__ import annotations

import asyncio
import random
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from crawlspace import events
from crawlspace.app.compose import OpenCrawl
from crawlspace.app.compose import Plan as CrawlPlan
from crawlspace.app.directory import CrawlDirectory
from crawlspace.engine.intake import Intake, Request
from crawlspace.engine.recent import Recent
from crawlspace.events import Ending
from crawlspace.policy.scope import Scope
from crawlspace.testing.sim.seams import SELDOM_MET, SimFetcher, SimFrontier

if TYPE_CHECKING:
    from crawlspace.testing.sim.world import World

OWNER: ContextVar[Worker | None] = ContextVar("OWNER", default=None)
"""Whose task this is: a killed worker takes all of its tasks along."""

SELDOM_SECONDS = 30.0


def owned_task(loop: asyncio.AbstractEventLoop, coro: Any, **named: Any) -> asyncio.Task[Any]:
    """The loop's task factory: remembers each task with its worker."""
    task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **named)
    owner = OWNER.get()
    if owner is not None:
        owner.tasks.append(task)
    return task


class _WorkerClock:
    """The world's clock; a worker that is paused does not wake."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def now(self) -> int:
        return self._worker.world.clock.now()

    def monotonic(self) -> float:
        return self._worker.world.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._worker.gate()


class _SeldomClock(_WorkerClock):
    """For who looks for commands twice a second: nobody commands, and hours of looking would be most of the work."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(max(seconds, SELDOM_SECONDS))


class _MeetingClock(_WorkerClock):
    """For who looks twice a second how others do."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds * SELDOM_MET)


class Worker:
    """One life of one worker: what comes after a kill is another."""

    def __init__(self, world: World, number: int, life: int) -> None:
        self.world = world
        self.number = number
        self.name = f"w{number}.{life}"
        self.dead = False
        self.crawling = False
        self.started_at = world.clock.monotonic()
        self.paused_until = 0.0
        self.disturbed_at = -1.0
        """When it was last paused, or was at the mercy of a full store: leases may be lost by that."""
        self.idle_asks = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self._chance = random.Random(f"{world.seed}/{self.name}")

    # -- effects ----------------------------------------------------------------------------------------------

    async def step(self, what: str) -> None:
        """An effect boundary: an event, and a moment at which anything may happen to the worker."""
        await self.gate()
        self.world.happened(self, what)
        await self.gate()
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.choice((0.0, 0.001, 0.02, 0.4)))
            await self.gate()

    async def gate(self) -> None:
        """Go on only if alive, and not before a pause is over."""
        while True:
            if self.dead:
                raise asyncio.CancelledError
            left = self.paused_until - self.world.clock.monotonic()
            if left <= 0:
                return
            await asyncio.sleep(left)

    def die(self) -> None:
        """SIGKILL: nothing that was going on comes to an end."""
        self.dead = True
        for task in self.tasks:
            task.cancel()

    # -- the crawl --------------------------------------------------------------------------------------------

    def start(self) -> asyncio.Task[Ending]:
        """Begin or resume the crawl."""
        token = OWNER.set(self)
        try:
            return asyncio.get_running_loop().create_task(self._run(), name=self.name)
        finally:
            OWNER.reset(token)

    async def _run(self) -> Ending:
        opened = await self._open()
        await opened.inject([Request(self.world.web.pages[place].url) for place in self.world.web.seeds])
        async with opened.engine() as crawl:
            # The composition makes the parts of production; network and chance are what a simulation must own.
            crawl._settings = replace(crawl._settings, worker=self.number)
            crawl._controller.clock = _SeldomClock(self)
            run = crawl._run
            await run.fetcher.close()
            run.fetcher = SimFetcher(self, self.world.settings.fetch.timeout)
            run.reader.chance = self._chance
            if run.reader.walls is not None:
                run.reader.walls._chance = self._chance
            run.address_of = None
            if self.world.plan.workers > 1:
                crawl.share_hosts(opened.frontier, _MeetingClock(self))
            self.crawling = True
            return await crawl.run()

    async def _open(self) -> OpenCrawl:
        world = self.world
        frontier = SimFrontier(self)
        if world.is_alone(self):
            await frontier.void_leases()
        scope = Scope.restore(world.settings.scope, (await frontier.notes()).get("scope"))
        recent = Recent(world.recent)
        intake = Intake(identity=world.identity, scope=scope, priority=world.settings.priority, recent=recent)
        plan = CrawlPlan(world.settings, watch=self._watch, clock=_WorkerClock(self), trial=lambda _: None)
        return OpenCrawl(
            directory=CrawlDirectory(Path("nowhere")),
            frontier=cast("Any", frontier),
            archive=cast("Any", await world.open_archive(self)),
            identity=world.identity,
            intake=intake,
            plan=plan,
        )

    def _watch(self, event: events.Event) -> None:
        if isinstance(event, events.Paused | events.Resumed | events.Warned | events.HostWaits):
            self.world.events.append(event)
            self.world.history.add(self.world.clock.monotonic(), self.name, str(event))
