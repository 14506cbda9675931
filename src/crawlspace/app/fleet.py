"""Several processes that crawl together on one machine, and who starts them.

The owner of the crawl directory starts them, hears what happens, carries out what people ask of the crawl, and
fetches nothing itself. Hosts are shared among them by leases, budgets and limits in equal parts. Whoever dies is
replaced: his leases are given up at once, so that nothing waits for their end. When the owner dies, all end.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crawlspace import events
from crawlspace.app.compose import OpenCrawl
from crawlspace.app.judged import judge_again_if_grown, several_judge
from crawlspace.app.reports import LONGEST_LINE, STOP, Ended, Failed, Happened, Job, Report, line, read_report
from crawlspace.app.store import note_members, open_member
from crawlspace.engine.control import Controller
from crawlspace.engine.crawl import Crawl
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.events import Ending
from crawlspace.settings import Settings
from crawlspace.states import UrlState

FRUITLESS = 3
"""Deaths of one worker in a row without a page in between, after which the crawl ends."""
DEATHS = 100
"""Deaths in one run after which it ends."""
WAIT_SECONDS = 0.5
"""Before a worker that died is replaced; twice as long each time that it comes to nothing."""
DRAIN_SECONDS = 5.0
LEAST_CACHE_MB = 4
WARNINGS_KEPT = 100


class _Child:
    """One process, and what it has said."""

    def __init__(self, number: int, process: subprocess.Popen[bytes], share: _Share) -> None:
        self.number = number
        self.process = process
        self.share = share
        self.pages = 0
        """Pages that it has settled."""
        self.last: Report | None = None

    def tell(self, data: bytes) -> None:
        """Write to it; it may have ended."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def close(self) -> None:
        """Let go of it: if it lives, it ends."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def how_it_died(self) -> str:
        """In words."""
        code = self.process.returncode
        if code is not None and code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended by itself with code {code}" if self.last is None else "was stopped"


@dataclass(slots=True)
class _Share:
    """What is left of one worker's part of the budget of bytes."""

    bytes: int | None

    def use(self, event: events.PageSettled) -> None:
        if self.bytes is not None:
            self.bytes = max(0, self.bytes - event.size)


class Fleet:
    """One run of a crawl by several processes. It is driven like `engine.crawl.Crawl`."""

    def __init__(self, crawl: OpenCrawl, workers: int) -> None:
        self._crawl = crawl
        self._workers = workers
        self._settings = settings_of_one(crawl.plan.settings, workers)
        self._watch = crawl.plan.watch
        self._ending: Ending | None = None
        self._failure: BaseException | None = None
        self._children: dict[int, _Child] = {}
        self._paused: set[int] = set()
        self._warnings: set[str] = set()
        self._deaths = 0
        self._scope_has_grown = False
        self._stop = asyncio.Event()
        self._threads = ThreadPoolExecutor(2 * workers, "fleet")

    def stop(self, ending: Ending = Ending.INTERRUPTED) -> None:
        """Have all finish what is under way, and end. May be called again."""
        if self._ending is None:
            self._ending = ending
        self._end_all()

    async def run(self) -> Ending:
        """Crawl until nothing is left, a budget is used up, or `stop` is called."""
        note_members(self._crawl.directory, self._workers)
        await several_judge(self._crawl.frontier)
        controller = self._crawl.controller()
        controls = asyncio.create_task(controller.run(), name="control")
        controls.add_done_callback(self._part_ended)
        seconds = self._crawl.plan.settings.budget.seconds
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(seconds, self.stop, Ending.BUDGET) if seconds is not None else None
        try:
            endings = await self._round()
            while self._goes_on(endings) and await self._has_more(controller):
                endings = await self._round()
            await self._ask_for_what_the_scope_lets_in()
        finally:
            if alarm is not None:
                alarm.cancel()
            controls.cancel()
            await asyncio.gather(controls, return_exceptions=True)
            self._let_go()
        if self._failure is not None:
            raise self._failure
        return await self._how_it_ended(endings)

    async def _has_more(self, controller: Controller) -> bool:
        """Whether what was asked for at last has brought new work."""
        await self._ask_for_what_the_scope_lets_in()
        asked = await controller.finish(self._stop.is_set)
        return asked and await self._crawl.frontier.due_in() is not None

    async def _ask_for_what_the_scope_lets_in(self) -> None:
        """Until they had heard that the scope has grown, the others refused what one of them now lets in."""
        if self._scope_has_grown:
            self._scope_has_grown = False
            await judge_again_if_grown(self._crawl.frontier)

    def _goes_on(self, endings: list[Ending]) -> bool:
        return not self._stop.is_set() and set(endings) <= {Ending.FINISHED}

    async def _round(self) -> list[Ending]:
        """Start all workers, and wait for their ends."""
        shares = await self._shares()
        lives = [asyncio.create_task(self._life(number, share)) for number, share in enumerate(shares, 1)]
        for life in lives:
            life.add_done_callback(self._part_ended)
        try:
            await asyncio.wait(lives)
        finally:
            for life in lives:
                life.cancel()
            await asyncio.gather(*lives, return_exceptions=True)
        return [life.result() for life in lives if not life.cancelled() and life.exception() is None]

    async def _shares(self) -> list[_Share]:
        """What the budget of bytes leaves, in equal parts; no more of them than there are pages left.

        Pages are nobody's part: the store gives out no more URLs than the budget has left.
        """
        budget = self._crawl.plan.settings.budget
        counts = await self._crawl.frontier.counts()
        pages = None if budget.pages is None else max(0, budget.pages - counts.fetches)
        size = None if budget.bytes is None else max(0, budget.bytes - counts.bytes)
        of = self._workers if pages is None else max(1, min(self._workers, pages))
        return [_Share(_part(size, place, of)) for place in range(of)]

    # -- one worker, and those that take its place ------------------------------------------------------------

    async def _life(self, number: int, share: _Share) -> Ending:
        fruitless = 0
        while not self._stop.is_set():
            child = await self._lived(number, share)
            if isinstance(child.last, Failed):
                raise child.last.error()
            if isinstance(child.last, Ended) and not self._was_stopped_alone(child.last):
                return child.last.ending
            fruitless = 0 if child.pages else fruitless + 1
            await self._give_up(child, fruitless)
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS * 2**fruitless):
                    await self._stop.wait()
        return self._ending or Ending.INTERRUPTED

    def _was_stopped_alone(self, last: Ended) -> bool:
        return last.ending is Ending.INTERRUPTED and not self._stop.is_set()

    async def _lived(self, number: int, share: _Share) -> _Child:
        """One process from its start to its end."""
        child = self._children[number] = self._start(number, share)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(LONGEST_LINE)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), child.process.stdout)
        listening = asyncio.create_task(self._listen(child, reader))
        try:
            await loop.run_in_executor(self._threads, child.tell, line(self._job(number, share)))
            if self._stop.is_set():
                child.tell(STOP)
            await loop.run_in_executor(self._threads, child.process.wait)
            # What it said before it ended; somebody that it started may hold the pipe for longer.
            await asyncio.wait([listening], timeout=DRAIN_SECONDS)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            child.close()
            self._paused.discard(number)
        return child

    def _start(self, number: int, share: _Share) -> _Child:
        lock = self._crawl.lock
        # It finds our modules where we do, and nothing else in the directory where it happens to start.
        paths = [path or str(Path.cwd()) for path in sys.path]
        # Ctrl-C reaches the whole terminal: from its first moment on, a worker leaves that to us.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "crawlspace.app.member"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=() if lock is None else (lock,),
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return _Child(number, process, share)

    def _job(self, number: int, share: _Share) -> Job:
        directory = str(self._crawl.directory.path.absolute())
        return Job(directory, number, self._crawl.lock, self._settings, share.bytes)

    async def _listen(self, child: _Child, reader: asyncio.StreamReader) -> None:
        async for text in reader:
            try:
                report = read_report(text)
            except msgspec.MsgspecError:
                continue  # the last line of one who was killed
            if isinstance(report, Happened):
                for event in report:
                    self._see(child, event)
            else:
                child.last = report

    async def _give_up(self, child: _Child, fruitless: int) -> None:
        """Give up what a dead worker held; raises when they die again and again."""
        self._deaths += 1
        plan = self._crawl.plan
        opened = await open_member(self._crawl.directory, plan.settings.frontier(), plan.clock, child.number)
        try:
            lost = await opened.store.void_leases()
        finally:
            await opened.store.close()
        told = f"worker {child.number} {child.how_it_died()}"
        if fruitless >= FRUITLESS or self._deaths >= DEATHS:
            raise CrawlspaceError(
                f"{told}, as its predecessors did",
                hint="what has killed them? with --workers 1 it may be seen better",
            )
        self._watch(events.Warned(f"{told}; the {lost} hosts that it had are free, and it is started again"))

    # -- what is seen -----------------------------------------------------------------------------------------

    def _see(self, child: _Child, event: events.Event) -> None:
        """Pass on what happens, as of one crawl: all wait for room on the same disk."""
        match event:
            case events.PageSettled():
                child.pages += 1
                child.share.use(event)
            case events.ScopeWidened():
                self._scope_has_grown = True
            case events.Paused():
                self._paused.add(child.number)
                if len(self._paused) > 1:
                    return
            case events.Resumed():
                self._paused.discard(child.number)
                if self._paused:
                    return
            case events.Warned(message):
                if message in self._warnings:
                    return
                if len(self._warnings) < WARNINGS_KEPT:
                    self._warnings.add(message)
        self._watch(event)

    async def _how_it_ended(self, endings: list[Ending]) -> Ending:
        if self._ending is not None:
            return self._ending
        for ending in (Ending.DISK_FULL, Ending.INTERRUPTED):
            if ending in endings:
                return ending
        waits = (await self._crawl.frontier.counts()).states[UrlState.QUEUED]
        return Ending.BUDGET if Ending.BUDGET in endings and waits else Ending.FINISHED

    # -- the end ----------------------------------------------------------------------------------------------

    def _part_ended(self, task: asyncio.Task[Ending] | asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
            self._end_all()

    def _end_all(self) -> None:
        self._stop.set()
        for child in self._children.values():
            child.tell(STOP)

    def _let_go(self) -> None:
        """Whoever still lives, ends."""
        for child in self._children.values():
            if child.process.poll() is None:
                child.close()
                child.process.kill()
                child.process.wait()
        self._threads.shutdown(wait=False)


@asynccontextmanager
async def driven(crawl: OpenCrawl) -> AsyncIterator[Crawl | Fleet]:
    """What crawls: the loop in this process, or several processes as the settings want it."""
    workers = crawl.plan.settings.concurrency.workers
    if workers == 1:
        async with crawl.engine() as engine:
            yield engine
    else:
        require_alone(crawl)
        yield Fleet(crawl, workers)


def require_alone(crawl: OpenCrawl) -> None:
    """Raise `UsageError` when the work cannot be given to other processes."""
    concurrency = crawl.plan.settings.concurrency
    plan = crawl.plan
    if plan.handler is not None or plan.score is not None or plan.parsers or plan.hooks:
        raise UsageError(
            f"handlers and scorers run in this process, so do hooks, and {concurrency.workers} workers are asked for",
            hint="set concurrency.workers to 1, or read the captures when the crawl has ended",
        )
    if concurrency.workers > min(concurrency.total, concurrency.hosts):
        raise UsageError(
            f"{concurrency.workers} workers cannot share {concurrency.total} requests and {concurrency.hosts} hosts",
            hint="raise concurrency.global and concurrency.hosts, or take fewer workers",
        )


def settings_of_one(settings: Settings, workers: int) -> Settings:
    """The settings of one of so many workers: limits that hold for the whole crawl are shared out."""
    replace = msgspec.structs.replace
    concurrency, fetch, store = settings.concurrency, settings.fetch, settings.store
    return replace(
        settings,
        concurrency=replace(
            concurrency, total=concurrency.total // workers, hosts=concurrency.hosts // workers, workers=1
        ),
        fetch=replace(
            fetch,
            connections_per_address=max(1, fetch.connections_per_address // workers),
            idle_connections=fetch.idle_connections // workers,
        ),
        budget=replace(settings.budget, seconds=None),
        store=replace(store, cache_mb=max(min(store.cache_mb, LEAST_CACHE_MB), store.cache_mb // workers)),
    )


def _part(whole: int | None, place: int, of: int) -> int | None:
    return None if whole is None else whole // of + (place < whole % of)
