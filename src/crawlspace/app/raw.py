"""The raw layer of a crawl directory, as its settings have it: on the local disk, or in object storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from crawlspace import events
from crawlspace.app.directory import CrawlDirectory
from crawlspace.archive.disk import Disk, RealDisk
from crawlspace.archive.objects import ObjectDisk
from crawlspace.archive.settings import ArchiveSettings
from crawlspace.archive.table import CaptureTable, lacks_rows
from crawlspace.archive.warc import WarcArchive
from crawlspace.clock import Clock
from crawlspace.errors import UsageError
from crawlspace.settings import Settings

_REAL_DISK = RealDisk()


class Writer(NamedTuple):
    """Who writes to an archive."""

    software: str
    worker: int
    watch: events.Watcher
    disk: Disk = _REAL_DISK
    """The local one."""


def disk_of(settings: ArchiveSettings, local: Disk = _REAL_DISK, environment: Mapping[str, str] = os.environ) -> Disk:
    """Where the WARC files are; raises `UsageError` when what it needs is not installed, or `ConfigError`."""
    return ObjectDisk(settings.store, environment, local) if settings.store else local


def read_archive(directory: CrawlDirectory, settings: Settings, clock: Clock) -> WarcArchive:
    """The archive of a crawl, to read from; raises as `disk_of` does."""
    name = directory.path.resolve().name
    disk = disk_of(settings.archive)
    return WarcArchive(directory.archive, settings.archive, clock, crawl=name, software="crawlspace", disk=disk)


def open_archive(directory: CrawlDirectory, settings: Settings, clock: Clock, writer: Writer) -> WarcArchive:
    """The archive of a crawl, to write to; raises as `disk_of` does."""
    name = directory.path.resolve().name
    return WarcArchive(
        directory.archive,
        settings.archive,
        clock,
        crawl=name,
        worker=writer.worker,
        software=writer.software,
        disk=disk_of(settings.archive, writer.disk),
        robots="obey" if settings.robots.obey else "ignore",
        table=_table(directory, writer) if settings.archive.table else None,
    )


async def close_archive(archive: WarcArchive, writer: Writer) -> None:
    """End writing; what the table of captures lacks is told."""
    await archive.close()
    if archive.table_failure is not None:
        writer.watch(
            events.Warned(
                f"the table of captures could not be written: {archive.table_failure.strerror}; "
                f"make it with `crawlspace index DIR --table`"
            )
        )


def _table(directory: CrawlDirectory, writer: Writer) -> CaptureTable | None:
    """The table of captures; None where it cannot be written, which is told once."""
    if lacks_rows(directory.captures) and not writer.worker:
        writer.watch(
            events.Warned(
                f"the table of captures lacks rows of a run that was killed; "
                f"`crawlspace index {directory.path} --table` makes it whole"
            )
        )
    try:
        return CaptureTable(directory.captures, str(writer.worker))
    except UsageError as error:
        writer.watch(events.Warned(f"{error}; the crawl goes on without it"))
        return None
