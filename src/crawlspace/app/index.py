"""The indexes of a crawl's archive, made from the WARC files alone: it needs no store and may run beside a crawl.

A file that ends within a record is being written, or was when its writer was killed: what is whole before is indexed,
and that is no damage. Anything else that cannot be read is told, and the rest is indexed all the same.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.output import PARTIAL, directory_of, output
from crawlspace.app.raw import disk_of
from crawlspace.archive.cdxj import Damage, Indexer, archive_files
from crawlspace.archive.reader import Reader
from crawlspace.archive.rows import Row, row_of_stored
from crawlspace.archive.runs import Runs
from crawlspace.archive.table import CaptureTable
from crawlspace.errors import CrawlDirError, DiskFull, StoreDamaged
from crawlspace.settings import Settings

MERGED = "index.cdxj"
SUFFIX = ".cdxj"
DAMAGES_KEPT = 1000
"""Places that a report lists; the rest is counted."""


@dataclass(slots=True)
class Indexed:
    """What was indexed."""

    files: int = 0
    """Archive files."""
    captures: int = 0
    torn: int = 0
    """Files that end within a record."""
    damages: list[str] = field(default_factory=list)
    """What could not be read, in words, no more than `DAMAGES_KEPT`."""
    damaged: int = 0

    def see(self, damage: Damage) -> None:
        """Count something that could not be read."""
        if damage.torn:
            self.torn += 1
            return
        self.refuse(str(damage))

    def refuse(self, why: str) -> None:
        """Count a record that makes no capture."""
        self.damaged += 1
        if len(self.damages) < DAMAGES_KEPT:
            self.damages.append(why)


def index_archive(directory: CrawlDirectory, settings: Settings, target: Path, *, force: bool = False) -> Indexed:
    """Write one sorted index of all archive files to `target`; raises `CrawlDirError`, `UsageError` or `DiskFull`."""
    done = Indexed()
    indexer = _indexer(directory, settings, done)
    names = _names(directory, settings)
    with output(target, force=force) as out, Runs(directory_of(target)) as runs:
        for name in names:
            for line in _lines(indexer, name, done):
                runs.add(line)
        out.writelines(runs.sorted())
    return done


def index_each(directory: CrawlDirectory, settings: Settings) -> Indexed:
    """Write a sorted index beside each archive file, over an older one; raises as `index_archive` does."""
    done = Indexed()
    indexer = _indexer(directory, settings, done)
    for name in _names(directory, settings):
        target = directory.archive / f"{name.partition('.warc')[0]}{SUFFIX}"
        with output(target, force=True) as out, Runs(directory.archive) as runs:
            for line in _lines(indexer, name, done):
                runs.add(line)
            out.writelines(runs.sorted())
    return done


def index_table(directory: CrawlDirectory, settings: Settings) -> Indexed:
    """Make the table of captures again, for a crawl that does not run, and put it in the place of the old one.

    Raises `CrawlDirInUse`, `UsageError` without pyarrow, `DiskFull`, and as `index_archive` does. A kill leaves the
    old table, or for a moment none: the next call makes it.
    """
    done = Indexed()
    new, old = (directory.captures.with_name(directory.captures.name + end) for end in (PARTIAL, ".old"))
    with directory.locked():
        try:
            _remove(new)
            new.mkdir()
            _fill(CaptureTable(new, "index"), directory, settings, done)
            _remove(old)
            if directory.captures.is_dir():
                directory.captures.rename(old)
            new.rename(directory.captures)
            _remove(old)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFull(f"no space left to write {new}", hint="free some and start again") from error
            raise CrawlDirError(f"{new} cannot be written: {why}") from error
    return done


def _fill(table: CaptureTable, directory: CrawlDirectory, settings: Settings, done: Indexed) -> None:
    indexer = _indexer(directory, settings, done)
    reader = Reader(disk_of(settings.archive), directory.archive, settings.archive.max_record)
    for name in _names(directory, settings):
        done.files += 1
        table.add(_rows(indexer, reader, name, done))
    table.close()
    if table.failure is not None:
        raise table.failure


def _rows(indexer: Indexer, reader: Reader, name: str, done: Indexed) -> Iterator[Row]:
    try:
        for stored in indexer.stored(name):
            try:
                yield row_of_stored(stored, reader.capture(stored))
                done.captures += 1
            except StoreDamaged as error:
                done.refuse(str(error))
    except OSError as error:
        raise StoreDamaged(f"the archive file {name} cannot be read: {error.strerror or error}") from error


def _remove(tree: Path) -> None:
    if tree.is_dir():
        shutil.rmtree(tree)


def _indexer(directory: CrawlDirectory, settings: Settings, done: Indexed) -> Indexer:
    return Indexer(disk_of(settings.archive), directory.archive, settings.archive.max_record, done.see)


def _names(directory: CrawlDirectory, settings: Settings) -> list[str]:
    try:
        return archive_files(disk_of(settings.archive), directory.archive)
    except FileNotFoundError:
        raise CrawlDirError(
            f"there is no archive in {directory.path}", hint=f"WARC files are looked for in {directory.archive}"
        ) from None
    except OSError as error:
        raise CrawlDirError(
            f"{directory.archive} cannot be read: {(error.strerror or str(error)).lower()}"
        ) from error


def _lines(indexer: Indexer, name: str, done: Indexed) -> Iterator[bytes]:
    done.files += 1
    try:
        for line in indexer.lines(name):
            done.captures += 1
            yield line
    except OSError as error:
        raise StoreDamaged(f"the archive file {name} cannot be read: {error.strerror or error}") from error
