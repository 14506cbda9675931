"""A copy of a whole crawl, made while it runs, that can be resumed like the crawl itself.

The store is copied first, at one moment. Whatever it points to was durable before, so each file of the archive is
then copied as far as that store has settled captures in it. The copy gets its name when it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import join

from msgspec import Struct

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.store import dump_command
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.joins import LIST
from crawlspace.archive.repair import end_of_capture
from crawlspace.errors import CrawlDirError, DiskFull, StoreDamaged, UsageError
from crawlspace.frontier.sqlite.backup import copy_store
from crawlspace.settings import Settings

PARTIAL = ".partial"
CHUNK = 1 << 20


class Copied(Struct, frozen=True):
    """What a backup holds."""

    files: int
    """Files of the archive."""
    bytes: int
    """Bytes of store and archive."""


def back_up(directory: CrawlDirectory, target: Path, settings: Settings) -> Copied:
    """Copy a crawl to a directory that is not there yet; raises `UsageError`, `CrawlDirError` or `DiskFull`."""
    directory.require()
    target = target.absolute()
    if directory.shared.exists():
        dump, copy = dump_command(directory, target.with_suffix(".dump")), [str(directory.path), str(target)]
        raise UsageError(
            f"the frontier of {directory.path} lies in PostgreSQL, whose own tools copy it",
            hint=f"first: {dump} ; then copy this directory, and those of other workers: cp -a {join(copy)}",
        )
    if target.exists():
        raise UsageError(f"{target} is there already", hint="a backup goes to a directory of its own")
    if target.is_relative_to(directory.path.resolve()):
        raise UsageError("a crawl cannot be backed up into itself", hint="choose a directory elsewhere")
    partial = target.with_name(target.name + PARTIAL)
    with _translated(target):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        copied = _copy(directory, CrawlDirectory(partial), settings)
        partial.rename(target)
    return copied


def _copy(directory: CrawlDirectory, copy: CrawlDirectory, settings: Settings) -> Copied:
    lengths = copy_store(directory.database, copy.database, settings.frontier())
    _make_durable(copy.database)
    copy.archive.mkdir()
    if settings.archive.store:
        # Objects are written once and stay where they are, for the crawl and its copy.
        lengths = {}
    # The store knows where the last response ends; its request, and what was made of it, come behind it.
    largest = settings.archive.max_record
    ends = {name: end_of_capture(RealDisk(), directory.archive / name, lengths[name], largest) for name in lengths}
    for name, end in sorted(ends.items()):
        _copy_file(directory.archive / name, copy.archive / name, end)
    for listing in directory.archive.glob(f"*{LIST}"):
        shutil.copyfile(listing, copy.archive / listing.name)
    for text in (directory.config, directory.effective):
        if text.exists():
            shutil.copyfile(text, copy.path / text.name)
    return Copied(len(ends), copy.database.stat().st_size + sum(ends.values()))


def _copy_file(source: Path, target: Path, length: int) -> None:
    """The first `length` bytes; raises `StoreDamaged` when there are fewer."""
    left = length
    try:
        reading = source.open("rb")
    except FileNotFoundError:
        raise _short(source) from None
    with reading, target.open("wb") as writing:
        while left:
            data = reading.read(min(left, CHUNK))
            if not data:
                raise _short(source)
            writing.write(data)
            left -= len(data)
        writing.flush()
        os.fsync(writing.fileno())


def _short(source: Path) -> StoreDamaged:
    return StoreDamaged(
        f"{source} is not there, or shorter than its settled captures",
        hint="see what else is wrong: crawlspace check",
    )


def _make_durable(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _translated(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no space left for the backup in {target}", hint="free some and start again") from error
        why = (error.strerror or str(error)).lower()
        raise CrawlDirError(f"the backup {target} cannot be written: {why}") from error
