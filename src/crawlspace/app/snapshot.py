"""A look at a crawl at one moment: its store, whatever it is, and its archive as far as it can be read from here.

Where workers share a store, each directory has the archive of its own workers. What lies in the archives of others is
no damage: it is counted by worker and told, and whoever can reach those directories names them beside his own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.raw import disk_of
from crawlspace.app.store import looked_at
from crawlspace.archive.disk import Disk, ReadDisk
from crawlspace.archive.joins import Joins
from crawlspace.archive.shelves import Shelves
from crawlspace.clock import SystemClock
from crawlspace.frontier.alike import Groups
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import duplicates, export
from crawlspace.settings import Settings, load
from crawlspace.states import UrlState
from crawlspace.types import Captured, Pointer, Story

TOLD = 10
"""Workers that are named."""


class Snapshot(Protocol):
    """A store at one moment."""

    def stories(self, states: frozenset[UrlState], host: str | None = None) -> Iterator[Story]:
        """The URLs in these states: first those that wait, host by host, then the others by number.

        With `host` those of one host only, by its name; raises `UsageError` when no URL of it is known. `due` is told
        of none.
        """
        ...

    def visited_again(self) -> Iterator[Captured]:
        """The captures of URLs that were visited more than once, visit by visit, by number and generation.

        A visit that found the page as it was has no capture of its own: it comes with that of the visit before.
        """
        ...

    def reach(self) -> dict[str, int]:
        """How far settled captures reach into each of the archive's files."""
        ...

    def owner(self, file: str) -> str | None:
        """The other worker who made an archive file, in words; None for one of the asking directory."""
        ...

    def others(self) -> list[str]:
        """The workers who have archive files and are not of the asking directory, in words."""
        ...


def open_snapshot(directory: CrawlDirectory, settings: Settings) -> AbstractContextManager[Snapshot]:
    """A crawl's store as it is now, until the end of the context; raises `CrawlDirError` or `StoreError`."""
    if not directory.shared.exists():
        return export.open_snapshot(directory.database, settings.frontier())
    return _shared_snapshot(directory, settings.frontier())


@contextmanager
def _shared_snapshot(directory: CrawlDirectory, settings: FrontierSettings) -> Iterator[Snapshot]:
    place, workers = looked_at(directory, settings, SystemClock())
    from crawlspace.frontier.postgres.export import open_snapshot as open_shared

    with open_shared(place, workers) as snapshot:
        yield snapshot


@contextmanager
def open_groups(directory: CrawlDirectory, settings: Settings, form: Callable[[str], str]) -> Iterator[Groups]:
    """Its groups of pages that say the same, likewise; `form` gives the canonical form of a URL."""
    if not directory.shared.exists():
        with duplicates.open_groups(directory.database, settings.frontier(), form) as groups:
            yield groups
        return
    place, workers = looked_at(directory, settings.frontier(), SystemClock())
    from crawlspace.frontier.postgres.duplicates import open_groups as open_shared

    with open_shared(place, workers, form) as groups:
        yield groups


def reading_disk(directory: CrawlDirectory, settings: Settings) -> ReadDisk:
    """The archive of a directory and of those beside it, to read from; raises as `disk_of` does."""
    disk = disk_of(settings.archive)
    others: list[tuple[Disk, CrawlDirectory]] = [
        (disk_of(load(other.effective, {}).archive), other) for other in directory.beside
    ]
    return Shelves(disk, directory.archive, [(each, of.archive) for each, of in others]) if others else disk


class Whereabouts:
    """Tells captures that are damaged from those that lie elsewhere."""

    def __init__(self, directory: CrawlDirectory, disk: ReadDisk, owner: Callable[[str], str | None]) -> None:
        self._directory = directory.archive
        self._disk = disk
        self._ask = owner
        self._joins: Joins | None = None
        self._last: tuple[str, str | None] = ("", None)
        self._is_local = bool(getattr(disk, "grows", True))

    def owner(self, pointer: Pointer) -> str | None:
        """The other worker in whose archive this capture lies; None when it is here, or should be."""
        name, found = self._last
        if name != pointer.file:
            found = self._owner(pointer)
            self._last = (pointer.file, found)
        return found

    def owner_at_once(self, pointer: Pointer) -> str | None:
        """The same before it is read; None also where to ask would cost as much as reading does."""
        return self.owner(pointer) if self._is_local else None

    def _owner(self, pointer: Pointer) -> str | None:
        try:
            self._disk.size(self._directory / pointer.file)
        except FileNotFoundError:
            return None if self._is_joined(pointer) else self._ask(pointer.file)
        except OSError:
            return None
        return None

    def _is_joined(self, pointer: Pointer) -> bool:
        if self._joins is None:
            try:
                self._joins = Joins.of(self._disk, self._directory, self._disk.names(self._directory))
            except OSError:
                self._joins = Joins()
        return self._joins.where(pointer) != pointer


class Elsewhere(Counter[str]):
    """How many captures were left out since they lie in the archives of other workers, by these in words."""

    def told(self) -> str:
        """In words; empty when there are none."""
        if not self:
            return ""
        workers = ", ".join(f"{n} of {worker}" for worker, n in sorted(self.items()))
        return f"{self.total()} captures lie in the archives of other workers and are left out: {workers}"


def reach_of(directory: CrawlDirectory, settings: Settings) -> Mapping[str, int]:
    """How far settled captures reach into the files of the archives that are read here."""
    with open_snapshot(directory, settings) as snapshot:
        return snapshot.reach()


def others_in_words(directory: CrawlDirectory, settings: Settings) -> str:
    """Whose records are not read here, and what can be done about it; empty where there is nobody else."""
    if not directory.shared.exists():
        return ""
    with open_snapshot(directory, settings) as snapshot:
        others = snapshot.others()
    told = ", ".join(others[:TOLD]) + (f" and {len(others) - TOLD} more" if len(others) > TOLD else "")
    return f"records of other workers are not read: {told}; name their directories: --also DIR" if others else ""
