"""The loop of a crawl: lease what is due, let visits spend it, wait for what happens next, end when nothing is left.

It waits for events and for the frontier's next due time; it never polls. Memory is bounded by the number of hosts
leased at once and by the basket, not by the number of URLs known.
"""

from __future__ import annotations

import asyncio
from enum import Enum, unique
from typing import Annotated

from msgspec import Meta, Struct, field

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.engine.commit import Committer
from crawlspace.engine.control import Controller
from crawlspace.engine.reading import Reader
from crawlspace.engine.sharing import Sharing
from crawlspace.engine.sweep import Sweeper
from crawlspace.engine.visit import Run, Visit
from crawlspace.errors import DiskFull
from crawlspace.events import Ending
from crawlspace.policy.pace import HostSettings
from crawlspace.policy.priority import AT_ONCE, Order
from crawlspace.ports import Company, Frontier
from crawlspace.states import UrlState
from crawlspace.types import Wish

LEASE_MS = 120_000
VISIT_MS = 30_000
URLS_PER_HOST = 300
IDLE_SECONDS = 3600.0
RACE_SECONDS = 0.05
"""Wait when something was due and others had it first."""
IN_HAND_MS = 200
OTHERS_MS = 1_000
"""Wait when all that is due is for other workers. That it is not any more is told before."""
_LEASE = "lease"


@unique
class _Pages(Enum):
    """What is left of the page budget."""

    LEFT = 1
    IN_HAND = 2
    """Leased URLs stand for all that is left: some may turn out to be none."""
    USED = 3


class ConcurrencySettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much happens at once."""

    total: Annotated[int, Meta(ge=1, le=10_000, description="Requests under way at once, over all hosts.")] = field(
        default=64, name="global"
    )
    hosts: Annotated[int, Meta(ge=1, le=100_000, description="Hosts visited at once, waiting ones included.")] = 1000
    workers: Annotated[
        int,
        Meta(ge=1, le=256, description="Processes that crawl together; the limits above are those of all together."),
    ] = 1


class BudgetSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much a crawl may use. What is left out has no limit."""

    pages: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="Requests in the whole crawl.")] = None
    bytes: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Response bytes on the wire in the whole crawl.")
    ] = None
    seconds: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="Seconds that one run may take.")] = None
    pages_per_host: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Requests for a host that is no seed's; then it is parked."),
    ] = 10_000
    pages_per_seed_host: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Requests for a host of a seed; then it is parked.")
    ] = None
    dead_letters: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Dead letters above which a finished crawl ends with exit code 6."),
    ] = None


class Allowance(Struct, frozen=True):
    """What one of several processes may use of a budget that they share. Pages the store counts for all of them."""

    bytes: int | None = None


def urls_per_visit(order: Order, host: HostSettings) -> int:
    """How many of a host's URLs are leased together: where order counts, no more than are asked for at once."""
    if order not in AT_ONCE:
        return URLS_PER_HOST
    return max([host.concurrency, *(rule.concurrency or 0 for rule in host.rules)])


class CrawlSettings(Struct, frozen=True):
    """What the loop needs to know; made from the parts' own settings."""

    concurrency: ConcurrencySettings
    budget: BudgetSettings
    worker: int = 0
    allowance: Allowance | None = None
    """None: what earlier runs left of the budgets is for this process alone."""
    urls_per_visit: int = URLS_PER_HOST
    """URLs that a host is visited for at once, at most."""


class Crawl:
    """One run over a frontier, from start or resume to its end."""

    def __init__(
        self, frontier: Frontier, committer: Committer, run: Run, settings: CrawlSettings, controller: Controller
    ) -> None:
        self._controller = controller
        self._frontier = frontier
        self._committer = committer
        self._run = run
        self._settings = settings
        self._visits: dict[asyncio.Task[None], Visit] = {}
        self._held: dict[int, Visit] = {}
        """Visits by token until their release is settled, however long that takes: their leases are kept alive."""
        self._sweeper = Sweeper(frontier, run.clock, LEASE_MS, self._held.values)
        committer.released = self._forget
        self._sharing: Sharing | None = None
        self._ending: Ending | None = None
        self._failure: BaseException | None = None
        self._bytes_left: int | None = None

    @property
    def reader(self) -> Reader:
        """What reads answers; also those that somebody else got."""
        return self._run.reader

    @property
    def committer(self) -> Committer:
        """What makes them durable."""
        return self._committer

    def share_hosts(self, company: Company, clock: Clock | None = None) -> None:
        """Leave others who work on the crawl their part of the hosts. Before `run`."""
        self._sharing = Sharing(
            company=company,
            worker=self._settings.worker,
            most=self._settings.concurrency.hosts,
            clock=clock or self._run.clock,
            visits=self._visits.values,
            takes=lambda: not (self._run.stopping or self._committer.is_paused()),
            progress=self._committer.progress,
        )

    def stop(self, ending: Ending = Ending.INTERRUPTED) -> None:
        """Start nothing new, finish what is under way, and end. May be called again."""
        if self._ending in (None, Ending.LEARNED):
            self._ending = ending
        self._run.stopping = True
        self._committer.space.stopping = True
        self._committer.progress.set()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is used up, or `stop` is called."""
        await self._open_budgets()
        loop = asyncio.get_running_loop()
        commits = asyncio.create_task(self._committer.run(self._run.basket), name="commit")
        commits.add_done_callback(self._part_ended)
        sweeps = asyncio.create_task(self._sweeper.run(), name="sweep")
        sweeps.add_done_callback(self._part_ended)
        controls = asyncio.create_task(self._controller.run(), name="control")
        controls.add_done_callback(self._part_ended)
        sharing = await self._share()
        seconds = self._settings.budget.seconds
        alarm = loop.call_later(seconds, self.stop, Ending.BUDGET) if seconds is not None else None
        try:
            await self._drive()
            await self._finish_visits(commits)
            self._run.basket.close()
            await asyncio.wait([commits])
            if self._failure is None:
                await self._controller.tell_alarms()
        finally:
            if alarm is not None:
                alarm.cancel()
            await _end([*self._visits, *sharing, sweeps, controls, commits])
        if self._failure is not None:
            raise self._failure
        return await self._how_it_ended()

    async def _share(self) -> list[asyncio.Task[None]]:
        if self._sharing is None:
            return []
        await self._sharing.meet()
        sharing = asyncio.create_task(self._sharing.run(), name="share")
        sharing.add_done_callback(self._part_ended)
        return [sharing]

    async def _open_budgets(self) -> None:
        budget, given = self._settings.budget, self._settings.allowance
        if given is not None:
            self._bytes_left = given.bytes
            return
        counts = await self._frontier.counts()
        if budget.bytes is not None:
            self._bytes_left = max(0, budget.bytes - counts.bytes)

    async def _drive(self) -> None:
        while not self._run.stopping and self._failure is None:
            if self._budget_is_used():
                self.stop(Ending.BUDGET)
                return
            self._committer.progress.clear()
            if self._committer.is_paused():
                # What cannot be stored need not be fetched.
                await self._wait(None)
                continue
            if await self._lease():
                continue
            pages = await self._page_budget()
            if pages is _Pages.USED:
                self.stop(Ending.BUDGET)
                return
            due_in = await self._frontier.due_in()
            if due_in is None and not self._visits and not self._committer.pending(self._run.basket):
                if await self._controller.finish(lambda: self._run.stopping):
                    continue
                return
            if due_in == 0 and self._left() == 0:
                # It is for others to take.
                due_in = OTHERS_MS
            elif due_in == 0 and pages is _Pages.IN_HAND:
                # It cannot be had before somebody has settled something, perhaps in another process.
                due_in = IN_HAND_MS
            await self._wait(due_in)

    async def _page_budget(self) -> _Pages:
        """What is left of the page budget, which is that of all who work on the crawl."""
        budget = self._settings.budget.pages
        if budget is None:
            return _Pages.LEFT
        counts = await self._frontier.counts()
        if counts.fetches >= budget:
            return _Pages.USED
        return _Pages.IN_HAND if counts.fetches + counts.states[UrlState.LEASED] >= budget else _Pages.LEFT

    def _budget_is_used(self) -> bool:
        return self._bytes_left is not None and self._committer.bytes >= self._bytes_left

    def _left(self) -> int | None:
        """How many hosts are left of this worker's part; None when all that there are may be taken."""
        return None if self._sharing is None else self._sharing.left()

    async def _lease(self) -> int:
        room = self._settings.concurrency.hosts - len(self._visits)
        if room <= 0:
            return 0
        urls, pages = self._settings.urls_per_visit, self._settings.budget.pages
        asked = self._run.clock.monotonic()
        wish = Wish(self._settings.worker, room, urls, LEASE_MS, VISIT_MS, pages, self._left())
        space = self._committer.space
        try:
            leases = await self._frontier.lease(wish)
        except DiskFull as full:
            await self._wait_for_space(full)
            return 1
        space.found(_LEASE)
        for lease in leases:
            visit = Visit(lease, self._run, asked + LEASE_MS / 1000)
            task = asyncio.create_task(visit.spend(), name=f"visit {lease.host.name}")
            self._visits[task] = self._held[lease.token] = visit
            task.add_done_callback(self._visit_ended)
        return len(leases)

    async def _wait_for_space(self, full: DiskFull) -> None:
        try:
            await self._committer.space.wait(_LEASE, full)
        except DiskFull:
            # What failed before is what a person must know.
            if self._failure is None:
                raise

    async def _wait(self, due_in: int | None) -> None:
        """Until something was settled, a visit ended, or the frontier has something due."""
        timeout = IDLE_SECONDS
        room = self._settings.concurrency.hosts - len(self._visits)
        if due_in is not None and room > 0:
            if due_in == 0 and await self._sweeper.once():
                return
            timeout = min(timeout, due_in / 1000 or RACE_SECONDS)
        try:
            async with asyncio.timeout(timeout):
                await self._committer.progress.wait()
        except TimeoutError:
            return

    async def _finish_visits(self, commits: asyncio.Task[None]) -> None:
        """Until all have handed over what they have; without a committer they never could."""
        while self._visits and self._failure is None:
            await asyncio.wait([*self._visits, commits], return_when=asyncio.FIRST_COMPLETED)

    def _forget(self, token: int) -> None:
        self._held.pop(token, None)

    def _visit_ended(self, task: asyncio.Task[None]) -> None:
        self._visits.pop(task, None)
        self._part_ended(task)
        self._committer.progress.set()

    def _part_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self._run.stopping = self._committer.space.stopping = True
            self._committer.progress.set()

    async def _how_it_ended(self) -> Ending:
        if self._ending is not None:
            return self._ending
        counts = await self._frontier.counts()
        parked = counts.states[UrlState.QUEUED]
        if parked:
            self._run.watch(
                events.Warned(
                    f"{parked} queued URLs wait on hosts that are paused, out of budget, or that are too many "
                    "at their address"
                )
            )
            return Ending.BUDGET
        return Ending.FINISHED


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
