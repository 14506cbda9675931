"""A crawl's state held against itself and against its archive: `crawlspace check`.

Without `deep` every pointer must lie inside a file that is there and long enough. With it every capture is read, its
block's digest compared by the reader, and its decoded body with the digest that the store keeps. A crawl may go on
meanwhile; only its owner can have it repaired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.raw import disk_of, read_archive
from crawlspace.app.store import inspected
from crawlspace.archive.disk import Disk, Unreachable
from crawlspace.archive.warc import WarcArchive
from crawlspace.clock import Clock
from crawlspace.content.digest import body_digest
from crawlspace.errors import ArchiveAway, StoreDamaged, UsageError
from crawlspace.fetch.replay import result_of
from crawlspace.frontier.sqlite.audit import Audit, Captured, Fault, open_audit
from crawlspace.settings import Settings
from crawlspace.states import UrlState

BATCH = 500
FAULTS_KEPT = 1000
"""Faults that a report lists; the rest is counted."""

Watch = Callable[[int], None]
"""Told how many captures were looked at."""


@dataclass(slots=True)
class Report:
    """What a check found."""

    faults: list[str] = field(default_factory=list)
    """In words, no more than `FAULTS_KEPT` of them."""
    found: int = 0
    repaired: int = 0
    captures: int = 0
    """Captures looked at."""

    @property
    def left(self) -> int:
        """Faults that are still there."""
        return self.found - self.repaired

    def add(self, what: str, *, repaired: bool) -> None:
        """One more fault."""
        self.found += 1
        self.repaired += repaired
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(what)


@dataclass(slots=True)
class Checker:
    """One check of one crawl directory."""

    directory: CrawlDirectory
    settings: Settings
    clock: Clock
    deep: bool = False
    repair: bool = False
    watch: Watch = lambda n: None  # noqa: ARG005 -- nobody watches
    _sizes: dict[str, int | None] = field(default_factory=dict)

    _disk: Disk = field(init=False)

    def __post_init__(self) -> None:
        self._disk = disk_of(self.settings.archive)

    def run(self) -> Report:
        """Check, and repair if asked to; raises `CrawlDirInUse` when that is wanted of a crawl that runs."""
        self.directory.require()
        report = Report()
        if self.directory.shared.exists():
            self._shared(report)
            return report
        with ExitStack() as stack:
            if self.repair:
                stack.enter_context(self.directory.locked())
            opened = open_audit(self.directory.database, self.settings.frontier(), owned=self.repair)
            audit = stack.enter_context(opened)
            self._store(audit, report)
            short = self._files(audit.files(), report)
            for lost in self._captures(_batches(audit), report):
                if self.repair:
                    audit.lose(lost)
            if short and self.repair:
                audit.lower(short)
        return report

    def _shared(self, report: Report) -> None:
        """A store that workers share, and the archive of this directory; those of others are theirs to check."""
        if self.repair:
            raise UsageError(
                f"the frontier of {self.directory.path} is shared, and is not repaired here",
                hint="restore the database from a backup, or ask with what `check` says",
            )
        with inspected(self.directory, self.settings.frontier(), self.clock) as inspection:
            for fault in inspection.faults():
                report.add(fault.what, repaired=False)
            self._files(inspection.files(), report)
            for _ in self._captures(inspection.batches(BATCH), report):
                pass

    def _store(self, audit: Audit, report: Report) -> None:
        faults = audit.faults(deep=self.deep)
        left: set[Fault] = set(faults)
        if self.repair and any(fault.mendable for fault in faults):
            audit.mend(self.clock.now())
            left = set(audit.faults(deep=False))
        for fault in faults:
            report.add(fault.what, repaired=fault not in left)

    def _files(self, files: Mapping[str, int], report: Report) -> list[str]:
        """Files of the archive that lack bytes."""
        sizes = {name: (self._size(name) or 0, noted) for name, noted in files.items()}
        short = [name for name, (size, noted) in sizes.items() if size < noted]
        for name in short:
            size, noted = sizes[name]
            report.add(f"the archive file {name} has {size} bytes where {noted} were stored", repaired=self.repair)
        return short

    def _captures(self, batches: Iterator[list[Captured]], report: Report) -> Iterator[list[Captured]]:
        """Look at all captures; those that cannot be had, batch by batch."""
        archive = None
        if self.directory.archive.is_dir():
            archive = read_archive(self.directory, self.settings, self.clock)
        for batch in batches:
            lost: list[Captured] = []
            for captured in batch:
                why = self._fault_of(captured, archive)
                if why is not None:
                    lost.append(captured)
                    report.add(f"URL {captured.id}, {captured.url}: {why}", repaired=self.repair)
            if lost:
                yield lost
            report.captures += len(batch)
            self.watch(report.captures)

    def _fault_of(self, captured: Captured, archive: WarcArchive | None) -> str | None:
        pointer = captured.pointer
        if pointer is None:
            return "it has no capture" if captured.state in (UrlState.STORED, UrlState.DONE) else None
        size = self._size(pointer.file)
        if size is None:
            return f"the archive file {pointer.file} is not there"
        if pointer.offset + pointer.length > size and pointer.offset + pointer.length > self._size_now(pointer.file):
            return f"its capture ends beyond the end of {pointer.file}"
        return self._deeper(captured, archive) if self.deep and archive is not None else None

    def _deeper(self, captured: Captured, archive: WarcArchive) -> str | None:
        assert captured.pointer is not None
        try:
            result = result_of(archive.open(captured.pointer), self.settings.fetch)
        except StoreDamaged as error:
            return str(error)
        if captured.status is not None and result.status != captured.status:
            return f"its capture has status {result.status}, and {captured.status} is noted"
        if result.truncated is not None or captured.digest is None:
            # Where a body is cut is a matter of the limits of its day; its block's digest has been compared.
            return None
        if captured.digest != (body_digest(result.body) if result.body else None):
            return "the body of its capture is not the one that was read"
        return None

    def _size(self, name: str) -> int | None:
        if name not in self._sizes:
            self._sizes[name] = _size(self._disk, self.directory.archive / name)
        return self._sizes[name]

    def _size_now(self, name: str) -> int:
        """Looked at again: the file of a crawl that runs has grown before the store knew of it."""
        del self._sizes[name]
        return self._size(name) or 0


def _batches(audit: Audit) -> Iterator[list[Captured]]:
    after = 0
    while batch := audit.captures(after, BATCH):
        after = batch[-1].id
        yield batch


def _size(disk: Disk, path: Path) -> int | None:
    """Bytes of an archive file; None when there is none. A running crawl's files grow: what is settled is there."""
    try:
        return disk.size(path)
    except Unreachable as error:
        raise ArchiveAway(str(error.strerror)) from error
    except OSError:
        return None


def told(report: Report) -> Iterator[str]:
    """The report in lines."""
    yield from report.faults
    more = report.found - len(report.faults)
    if more:
        yield f"and {more} more"
    if report.found == 0:
        yield f"nothing is wrong; {report.captures} captures looked at"
        return
    repaired = f", {report.repaired} of them repaired" if report.repaired else ""
    yield f"{report.found} fault{'s' * (report.found > 1)}{repaired}; {report.captures} captures looked at"
