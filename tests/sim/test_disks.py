"""The disk fails at any one step of a whole crawl: it waits, goes on, and ends as if nothing had been.

The real engine in virtual time, on the real archive or the real store; the web's truth is what it must end with.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crawlspace import events
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.errors import StoreDamaged, StoreError
from crawlspace.exchange import Capture
from crawlspace.ports import Archive
from crawlspace.testing.disk import Fault, FaultyDisk
from crawlspace.testing.sim import Report, Size, simulate
from crawlspace.testing.sim.faults import Plan
from crawlspace.testing.sim.worker import Worker
from crawlspace.testing.sim.world import World
from crawlspace.types import Pointer

CALM = Plan(workers=1, events=0, strikes=())
SMALL = Size(hosts=4, pages=30)
LARGER = Size(hosts=12, pages=500)
MUCH_LARGER = Size(hosts=12, pages=900)
SEED = 3
LIFTED_SECONDS = 400.0
"""A fault that lasts, lasts longer than a lease."""


class DiskWorld(World):
    """The real archive on a disk that fails."""

    def __init__(self, *arguments: Any, directory: Path, disk: FaultyDisk) -> None:
        super().__init__(*arguments)
        self._directory = directory
        self._disk = disk
        self._archive: WarcArchive
        self._lifting = False

    async def open_archive(self, worker: Worker) -> Archive:
        settings = ArchiveSettings(min_free=0)
        self._archive = WarcArchive(
            self._directory, settings, self.clock, crawl=worker.name, software="crawlspace", disk=self._disk
        )
        self._archive.recover(await self.store.segments())
        return self._archive

    def capture(self, pointer: Pointer) -> Capture | None:
        try:
            return self._archive.open(pointer)
        except StoreDamaged:
            return None

    def may_end_with(self, worker: Worker, error: BaseException) -> bool:
        """A disk that gives no reason is a person's to look at."""
        return super().may_end_with(worker, error) or (type(error) is StoreError and self._disk.steps > 0)

    def happened(self, worker: Worker, what: str) -> None:
        super().happened(worker, what)
        fault = self._disk.fault
        if fault and self._disk.steps >= fault.step and not self._lifting:
            self._lifting = True
            asyncio.get_running_loop().call_later(LIFTED_SECONDS, setattr, self._disk, "fault", None)


FAULTS = {
    "full": Fault(0, errno.ENOSPC),
    "full after some bytes": Fault(0, errno.ENOSPC, taken=100),
    "full for a while": Fault(0, errno.ENOSPC, lasting=True),
    "input or output error": Fault(0, errno.EIO),
    "short write": Fault(0, 0, taken=7),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_at_any_step_of_the_archives_disk(kind: str, tmp_path: Path) -> None:
    """The first step of the crawl fails, then the second, and so on until it ends without meeting the fault."""
    fault = FAULTS[kind]
    for step in itertools.count(2):  # at the first, the directory is made: nothing is paused then
        disk = FaultyDisk(Fault(step, fault.error, fault.taken, fault.lasting))
        make = partial(DiskWorld, directory=tmp_path / str(step), disk=disk)
        report = simulate(SEED, SMALL, CALM, make)
        assert not report.violations, report
        if disk.steps < step:
            break
        if fault.error == errno.ENOSPC:
            assert pauses(report) == 1
    assert step > 8


def pauses(report: Report) -> int:
    """How often it waited for room; each time is told at its beginning and at its end."""
    kinds = [type(event) for event in report.told]
    assert kinds.count(events.Paused) == kinds.count(events.Resumed)
    return kinds.count(events.Paused)


class FullStore(World):
    """The store may grow by so many pages; some time later it may grow again."""

    def __init__(self, *arguments: Any, room: int) -> None:
        super().__init__(*arguments)
        self._room = room

    async def opened(self) -> None:
        connection = self.checker.connection
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + self._room}")
        loop = asyncio.get_running_loop()
        loop.call_later(LIFTED_SECONDS, connection.execute, "PRAGMA max_page_count = 1000000")


@pytest.mark.parametrize("size", [LARGER, pytest.param(MUCH_LARGER, marks=pytest.mark.long)])
def test_a_store_that_may_not_grow(size: Size) -> None:
    """Room for ever more pages, until the crawl never meets the end of it."""
    waited = 0
    for room in itertools.count(1, 3):
        report = simulate(SEED, size, CALM, partial(FullStore, room=room))
        assert not report.violations, report
        if not pauses(report):
            break
        waited += 1
    assert waited > 3
