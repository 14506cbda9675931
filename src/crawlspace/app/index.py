"""The index of a crawl's archive, made from the WARC files alone: it needs no store and may run beside a crawl.

A file that ends within a record is being written, or was when its writer was killed: what is whole before is indexed,
and that is no damage. Anything else that cannot be read is told, and the rest is indexed all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.output import directory_of, output
from crawlspace.archive.cdxj import Damage, Indexer, archive_files
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.runs import Runs
from crawlspace.errors import CrawlDirError, StoreDamaged
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
        self.damaged += 1
        if len(self.damages) < DAMAGES_KEPT:
            self.damages.append(str(damage))


def index_archive(directory: CrawlDirectory, settings: Settings, target: Path, *, force: bool = False) -> Indexed:
    """Write one sorted index of all archive files to `target`; raises `CrawlDirError`, `UsageError` or `DiskFull`."""
    done = Indexed()
    indexer = _indexer(directory, settings, done)
    names = _names(directory)
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
    for name in _names(directory):
        target = directory.archive / f"{name.removesuffix('.warc.gz')}{SUFFIX}"
        with output(target, force=True) as out, Runs(directory.archive) as runs:
            for line in _lines(indexer, name, done):
                runs.add(line)
            out.writelines(runs.sorted())
    return done


def _indexer(directory: CrawlDirectory, settings: Settings, done: Indexed) -> Indexer:
    return Indexer(RealDisk(), directory.archive, settings.archive.max_record, done.see)


def _names(directory: CrawlDirectory) -> list[str]:
    try:
        return archive_files(RealDisk(), directory.archive)
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
