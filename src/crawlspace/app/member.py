"""One of several processes that crawl together: `python -m crawlspace.app.member`, started by `app.fleet` alone.

Its job comes on standard input, where it also hears when it is to stop; when that input ends, its owner is gone and
it ends at once, as if killed. What happens goes to standard output. It holds the lock of the crawl directory as long
as it lives. Ctrl-C on the terminal is its owner's to hear.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from crawlspace.app.circles import seldom_looked_for
from crawlspace.app.compose import Member, Plan, join_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.loop import run_loop
from crawlspace.app.reports import STOP, Ended, Failed, Happened, Job, Report, line, read_job
from crawlspace.engine.crawl import Allowance, Crawl
from crawlspace.errors import Bug, CrawlspaceError
from crawlspace.events import Ending, Event

REPORT_SECONDS = 0.2
BUNDLE = 1_000
UNTOLD = 50_000
"""Events kept for an owner that does not listen; further ones push out the oldest."""
ORPHANED = 3
_ORDERS = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 -- no buffer, whose lock a thread would hold


class Reporter:
    """Tells the owner what happens, from a thread of its own: an owner that is stopped does not stop us."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._untold: deque[Event] = deque(maxlen=UNTOLD)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)
        self._thread.start()

    def see(self, event: Event) -> None:
        """Take an event in."""
        self._untold.append(event)

    def close(self, last: Report) -> None:
        """Tell what is left, then how it ended."""
        self._over.set()
        self._thread.join()
        self._write(last)

    def _run(self) -> None:
        while not self._over.wait(REPORT_SECONDS):
            self._tell()
        self._tell()

    def _tell(self) -> None:
        while self._untold:
            self._write(Happened.of([self._untold.popleft() for _ in range(min(BUNDLE, len(self._untold)))]))

    def _write(self, report: Report) -> None:
        data = memoryview(line(report))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except BrokenPipeError:
            os._exit(ORPHANED)


async def crawl(job: Job, watch: Callable[[Event], None]) -> Ending:
    """Do the job until nothing is left, its share of a budget is used up, or it is asked to stop."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    listener = threading.Thread(
        target=_listen, args=(lambda: loop.call_soon_threadsafe(asked.set),), name="orders", daemon=True
    )
    listener.start()
    loop.add_signal_handler(signal.SIGTERM, asked.set)
    plan = Plan(job.settings, watch=watch, member=Member(job.number, Allowance(job.bytes)))
    async with join_crawl(CrawlDirectory(Path(job.directory)), plan) as opened, opened.engine() as engine:
        stopping = asyncio.create_task(_stop_when(asked, engine))
        try:
            return await engine.run()
        finally:
            stopping.cancel()
            await asyncio.gather(stopping, return_exceptions=True)


async def _stop_when(asked: asyncio.Event, engine: Crawl) -> None:
    await asked.wait()
    engine.stop()


def _listen(stop: Callable[[], object]) -> None:
    """Until there is nobody who could tell us anything: then end, whatever is under way."""
    for order in _ORDERS:
        if order == STOP:
            with suppress(RuntimeError):  # the loop is over: we end anyway
                stop()
    os._exit(ORPHANED)


def main() -> None:
    """Read the job, do it, and say how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    text = _ORDERS.readline()
    if not text:
        os._exit(ORPHANED)
    job = read_job(text)
    if job.lock is not None:
        os.set_inheritable(job.lock, False)
    reporter = Reporter(os.dup(sys.stdout.fileno()))
    # What a library prints is no report.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with seldom_looked_for():
        reporter.close(_done(job, reporter))


def _done(job: Job, reporter: Reporter) -> Report:
    try:
        return Ended(run_loop(lambda: crawl(job, reporter.see)))
    except CrawlspaceError as error:
        return Failed.of(error)
    except Exception as error:
        traceback.print_exc()
        return Failed.of(Bug(f"worker {job.number} ended with {type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
