"""Joining the small files of a crawl's archive into large ones: `crawlspace compact`.

Only the owner of the crawl does it, while nothing is written. For each large file, in this order: it is made and
durable, its list makes it count (see `archive.joins`), the store's pointers move in one transaction, and the small
ones are removed. A kill between any two leaves an archive that says the same, and the next call goes on from there.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import gmtime, strftime

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.raw import disk_of, read_archive
from crawlspace.app.store import Store, open_store, put_right
from crawlspace.archive import zstd
from crawlspace.archive.disk import Disk, Unreachable
from crawlspace.archive.joins import LIST, MARK, Joins, join, list_name
from crawlspace.archive.tape import BrokenMember
from crawlspace.clock import Clock
from crawlspace.errors import ArchiveAway, CrawlDirError, DiskFull
from crawlspace.settings import Settings

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
MOST_PARTS = 10_000
"""Files joined at once: what one transaction moves, and one list names."""


@dataclass(slots=True)
class Compacted:
    """What was done."""

    before: int = 0
    """Files that counted before."""
    after: int = 0
    bytes: int = 0
    """Bytes put together."""


@dataclass(slots=True)
class Compacter:
    """One compaction of one crawl."""

    directory: CrawlDirectory
    settings: Settings
    clock: Clock
    watch: Callable[[str], None] = lambda name: None  # noqa: ARG005 -- nobody watches
    """Told the name of each file that was made."""

    async def run(self) -> Compacted:
        """Join what can be joined.

        Raises `CrawlDirError` where there is no crawl or another process has it, `DiskFull`, and `ArchiveAway`.
        """
        self.directory.require()
        with self.directory.locked():
            opened = await open_store(self.directory, self.settings.frontier(), self.clock)
            try:
                await self._cut_torn_ends(opened.store)
                return await self._compact(opened.store, disk_of(self.settings.archive))
            except Unreachable as error:
                raise ArchiveAway(str(error.strerror)) from error
            except OSError as error:
                raise self._translated(error) from error
            finally:
                await opened.store.close()

    async def _cut_torn_ends(self, store: Store) -> None:
        """What a crash left at the end of a file would hide all that is put behind it."""
        members = await put_right(self.directory, self.settings.frontier(), self.clock)
        archive = read_archive(self.directory, self.settings, self.clock)
        archive.recover(await store.segments() | members)

    async def _compact(self, store: Store, disk: Disk) -> Compacted:
        archive = self.directory.archive
        await self._finish(store, disk)
        names = disk.names(archive)
        live = Joins.of(disk, archive, names).live(names)
        done = Compacted(before=len(live), after=len(live))
        for number, parts in enumerate(self._groups(disk, live)):
            name = self._name(parts, number)
            whole = join(disk, archive, name, parts)
            await store.relocate([whole])
            self._remove(disk, parts)
            done.after -= len(parts) - 1
            done.bytes += whole.length
            self.watch(name)
        return done

    async def _finish(self, store: Store, disk: Disk) -> None:
        """What a killed call left: wholes that count get their pointers, and what does not count goes."""
        archive = self.directory.archive
        names = disk.names(archive)
        joins = Joins.of(disk, archive, names)
        dead = joins.dead(names)
        interrupted = [whole for whole in joins.wholes() if any(part in dead for part, _ in whole.parts)]
        if interrupted:
            await store.relocate(interrupted)
        self._remove(disk, dead)
        finished = {list_name(whole.name) for whole in joins.wholes()}
        for name in names:
            if name.endswith(LIST) and name not in finished:
                disk.remove(archive / name)

    def _groups(self, disk: Disk, names: Sequence[str]) -> Iterator[list[str]]:
        """Files to be joined: neighbours that fit into one, are packed alike, and are not large already."""
        most = self.settings.archive.max_file
        group: list[str] = []
        size, kind = 0, b""
        for name in sorted(names, key=lambda name: (_worker(name), name)):
            length = disk.size(self.directory.archive / name)
            its_kind = self._kind(disk, name)
            if group and (size + length > most or its_kind != kind or len(group) >= MOST_PARTS):
                if len(group) > 1:
                    yield group
                group, size = [], 0
            if length < most // 2:
                group.append(name)
                size, kind = size + length, its_kind
        if len(group) > 1:
            yield group

    def _kind(self, disk: Disk, name: str) -> bytes:
        """What must be equal in files that become one: who made them, how they are packed, by which dictionary."""
        suffix = f"{_worker(name)}{name.partition('.warc')[2]}".encode()
        if not suffix.endswith(b".zst"):
            return suffix
        try:
            path = self.directory.archive / name
            return suffix + zstd.dictionary_of(lambda offset, length: disk.read(path, offset, length))
        except BrokenMember:
            return suffix + name.encode()

    def _name(self, parts: Sequence[str], number: int) -> str:
        """After its first part, so that files stay in the order of their making; with the time, so that it is new."""
        stem, _, suffix = parts[0].partition(".warc")
        stamp = strftime("%Y%m%d%H%M%S", gmtime(self.clock.now() // 1000))
        return f"{stem.partition(MARK)[0]}{MARK}{stamp}-{number:05}-{_worker(parts[0])}.warc{suffix}"

    def _remove(self, disk: Disk, names: Sequence[str]) -> None:
        archive = self.directory.archive
        for name in names:
            disk.remove(archive / name)
            (archive / f"{name.partition('.warc')[0]}.cdxj").unlink(missing_ok=True)
        if names:
            disk.sync_directory(archive)

    def _translated(self, error: OSError) -> CrawlDirError | DiskFull:
        why = (error.strerror or str(error)).lower()
        if error.errno in _FULL:
            return DiskFull(f"no space left to join files in {self.directory.archive}", hint="free some, start again")
        return CrawlDirError(f"{self.directory.archive} cannot be written: {why}")


def _worker(name: str) -> str:
    """The number of the worker that made a file, as its name has it."""
    return name.partition(".warc")[0].rpartition("-")[2]
