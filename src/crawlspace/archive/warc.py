"""The archive: WARC 1.1 files, a member for each record, written once and never changed.

Rules. Nothing counts before `flush` has returned. Whatever goes wrong, the files hold all that ever counted: a full
disk cuts the open file back to its last durable length and the same file goes on when there is space; a file whose
fsync failed is never written again. A file is made new, never opened to append: after a crash `recover` cuts the torn
tail and a new file begins. File names are made here from what we know, never from what was crawled.

One task at a time appends and flushes. Reading may happen at any time and sees what was flushed.
"""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from crawlspace.archive.captures import Place, records_of, warcinfo_record
from crawlspace.archive.disk import Disk, RealDisk, Unreachable
from crawlspace.archive.joins import Joins
from crawlspace.archive.objects import ObjectDisk
from crawlspace.archive.packing import known_dictionary, packing_of
from crawlspace.archive.reader import Reader
from crawlspace.archive.redact import Redaction
from crawlspace.archive.repair import Repair, repair_files
from crawlspace.archive.rows import Row, row_of
from crawlspace.archive.segment import Segment
from crawlspace.archive.settings import ArchiveSettings
from crawlspace.archive.table import CaptureTable
from crawlspace.clock import Clock
from crawlspace.errors import ArchiveAway, ArchiveSuspect, ConfigError, CrawlspaceError, DiskFull, StoreError
from crawlspace.exchange import Capture, Reference
from crawlspace.types import Pointer

__all__ = ["ArchiveSettings", "WarcArchive"]

_MIB = 1 << 20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_CONFORMS_TO = "https://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/"
_NAME_TRIES = 1000
_NAME_LIMIT = 60
_REAL_DISK = RealDisk()


class WarcArchive:
    """The raw layer in one directory; implements `ports.Archive`."""

    def __init__(  # noqa: PLR0913 -- all but the first three are names of things, each with a caller of its own
        self,
        directory: Path,
        settings: ArchiveSettings,
        clock: Clock,
        *,
        crawl: str,
        worker: int = 0,
        software: str,
        disk: Disk = _REAL_DISK,
        robots: str = "",
        table: CaptureTable | None = None,
    ) -> None:
        """`robots` is the policy told in each file's first record, such as `obey`; nothing is told when empty.
        `table` gets a row for each capture that is durable.

        Makes the directory; raises `StoreError` when it cannot.
        """
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._disk = disk
        self._crawl = re.sub(r"[^a-z0-9]+", "-", crawl.lower())[:_NAME_LIMIT].strip("-") or "crawl"
        self._worker = worker
        self._facts = [("software", software), ("format", "WARC File Format 1.1"), ("conformsTo", _CONFORMS_TO)]
        self._facts += [("isPartOf", crawl), *([("robots", robots)] if robots else [])]
        self._redaction = Redaction(settings.redact_headers, set_cookie=settings.redact_set_cookie)
        self._reader = Reader(disk, directory, settings.max_record)
        self._packing = packing_of(
            settings, known_dictionary(disk, directory, self._crawl) if settings.compression == "zstd" else b""
        )
        self._segment: Segment | None = None
        self._sequence = 0
        self._table = table
        self._rows: list[Row] = []
        self._flushed: dict[str, int] = {}
        self._flushing: asyncio.Task[None] | None = None
        try:
            disk.make_directory(directory)
        except OSError as error:
            raise _unusable(directory, error) from error

    @property
    def flushed(self) -> Mapping[str, int]:
        """Durable length in bytes of each file written since the start: what the store keeps for `recover`."""
        return self._flushed

    @property
    def table_failure(self) -> OSError | None:
        """Why the table of captures lacks rows; None when it does not."""
        return self._table.failure if self._table is not None else None

    def recover(self, flushed: Mapping[str, int], worker: int | None = None) -> list[Repair]:
        """Cut what a crash tore; once, before the first append of any worker. See `repair.repair_files`.

        With the number of a worker, before the first append of that one; the files of others may grow meanwhile.
        """
        if isinstance(self._disk, ObjectDisk):
            self._disk.require()
            self._disk.clear_buffer(self._directory, worker)
            # Whether a name is taken is not asked of the storage: none that counts is given again.
            self._sequence = 1 + max((_sequence_of(name) for name in flushed), default=-1)
            return []
        return repair_files(self._disk, self._directory, flushed, self._settings.max_record, worker)

    async def append(self, capture: Capture) -> Pointer:
        """Write a capture; durable only after the next `flush`, readable then.

        Raises as `flush` does, with the same meaning: nothing appended since the last flush counts then.
        """
        await self._quiet()
        self._require_size(capture)
        if self._segment and self._is_over(self._segment):
            await self.flush()
            self._end_file()
        if self._segment is None and self._packing.is_ready:
            await asyncio.to_thread(self._packing.train)
        self._require_space()
        if capture.refers_to is not None:
            capture = await asyncio.to_thread(self._referring, capture, capture.refers_to)
        segment = self._segment or self._new_file()
        capture = self._redacted(capture)
        try:
            return self._write(segment, capture)
        except OSError as error:
            raise self._write_failed(segment, error) from error

    async def flush(self) -> None:
        """Return when all that was appended is durable; see `ports.Archive.flush`. Nothing to do costs nothing."""
        await self._quiet()
        segment = self._segment
        if segment is None or not segment.dirty:
            return
        # The work is a task of its own: a caller that is cancelled does not take the disk's answer with it.
        self._flushing = asyncio.create_task(asyncio.to_thread(self._sync, segment))
        await asyncio.shield(self._flushing)

    def open(self, pointer: Pointer) -> Capture:
        """Read one flushed capture back, with its request; raises `StoreDamaged`."""
        return self._reader.open(pointer)

    def response(self, pointer: Pointer) -> Capture:
        """The same without its request: cheaper, for who reads many."""
        return self._reader.response(pointer)

    def scan(self, lengths: Mapping[str, int] | None = None) -> Iterator[tuple[Pointer, Capture]]:
        """Every flushed capture, file by file in order of name: of their making, for one worker.

        `lengths` says how far to read the files of other processes that are still being written; a file not named
        there is read whole. Raises `StoreDamaged` at what cannot be read.
        """
        known = {**(lengths or {}), **self._flushed}
        try:
            found = self._disk.names(self._directory)
            names = Joins.of(self._disk, self._directory, found).live(found)
            files = {name: known.get(name, -1) for name in names}
            sizes = {name: self._disk.size(self._directory / name) if end < 0 else end for name, end in files.items()}
        except OSError as error:
            raise _unusable(self._directory, error) from error
        yield from self._reader.scan(sizes)

    async def close(self) -> None:
        """Flush and end the current file; what is appended later begins a new one."""
        try:
            await self.flush()
        finally:
            await self._quiet()
            self._end_file()
            if self._table is not None:
                await asyncio.to_thread(self._table.close)

    async def _quiet(self) -> None:
        """Wait for a flush whose caller was cancelled."""
        if self._flushing is not None:
            if not self._flushing.done():
                await asyncio.wait([self._flushing])
            # What it failed of was told to its caller, or to nobody who still waits: the appends do not count.
            self._flushing.exception()
            self._flushing = None

    def _require_size(self, capture: Capture) -> None:
        largest = max(
            len(capture.response_head) + len(capture.payload),
            len(capture.request_head) + len(capture.request_body),
            len(capture.rendered.html) if capture.rendered else 0,
        )
        if largest > self._settings.max_record:
            raise ConfigError(
                f"an exchange of {largest} bytes does not fit into the archive: {capture.url}",
                hint="set archive.max_record above the limits of fetch",
            )

    def _require_space(self) -> None:
        """Stop before the disk is full: the store and everybody else need room too. Asked once a group."""
        if self._segment is not None and self._segment.dirty:
            return
        try:
            free = self._disk.free(self._directory)
        except OSError:
            return
        if free < self._settings.min_free:
            raise self._full()

    def _is_over(self, segment: Segment) -> bool:
        age = self._clock.now() - segment.created_at
        full = segment.end >= self._settings.max_file or age >= self._settings.max_age * 1000
        return segment.end > 0 and (full or self._packing.is_ready)

    def _redacted(self, capture: Capture) -> Capture:
        request = self._redaction.request(capture.request_head)
        response = self._redaction.response(capture.response_head)
        if request == capture.request_head and response == capture.response_head:
            return capture
        return replace(capture, request_head=request, response_head=response)

    def _referring(self, capture: Capture, wanted: Reference) -> Capture:
        """The capture with a reference to what can be read now and has the same payload, or else with none.

        A 304 keeps what it refers to in any case: there is no payload to lose.
        """
        found = self._reader.original(wanted.pointer) if wanted.pointer else None
        if capture.status == 304:
            # It is the same page's earlier capture that is still right, not another's of the same bytes.
            its_own = found is not None and wanted.url in ("", found[1].url)
            known = _reference_to(*found) if found and its_own else replace(wanted, pointer=None)
            return replace(capture, refers_to=known)
        whole = capture.truncated is None and len(capture.payload) > 0 and self._settings.revisits
        if not whole or found is None or found[1].truncated or found[1].payload != capture.payload:
            return replace(capture, refers_to=None)
        return replace(capture, refers_to=_reference_to(*found))

    def _write(self, segment: Segment, capture: Capture) -> Pointer:
        packer = self._packing.packer()
        if segment.end == 0:
            # Again after a full disk took the whole file back.
            record, segment.warcinfo = warcinfo_record(Place(segment.name, 0, ""), self._clock.now(), self._facts)
            segment.add(packer.head + packer.pack(record))
        offset = segment.end
        place = Place(segment.name, offset, segment.warcinfo)
        written = records_of(capture, place, metadata=self._settings.metadata)
        self._packing.learn(written.response)
        member = packer.pack(written.response)
        segment.add(member)
        for record in written.behind:
            segment.add(packer.pack(record))
        pointer = Pointer(segment.name, offset, len(member))
        if self._table is not None:
            self._table.begin()
            self._rows.append(row_of(pointer, capture, written.payload_digest))
        return pointer

    def _new_file(self) -> Segment:
        now = self._clock.now()
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now // 1000))
        try:
            for _ in range(_NAME_TRIES):
                name = f"{self._crawl}-{stamp}-{self._sequence:05d}-{self._worker}{self._packing.suffix}"
                self._sequence += 1
                try:
                    self._segment = Segment(self._disk, self._directory / name, now)
                except FileExistsError:
                    continue
                self._flushed[name] = 0
                return self._segment
        except OSError as error:
            raise (self._full() if error.errno in _FULL else _unusable(self._directory, error)) from error
        raise StoreError(f"no free name for a new archive file in {self._directory}")

    def _sync(self, segment: Segment) -> None:
        """Runs in a thread, while nothing else touches the segment."""
        try:
            segment.spill()
        except OSError as error:
            raise self._write_failed(segment, error) from error
        try:
            segment.sync()
        except OSError as error:
            self._end_file()
            self._rows = []
            raise self._suspect(segment, error) from error
        self._flushed[segment.name] = segment.flushed
        if not self._disk.grows:
            self._end_file()
        if self._table is not None:
            self._table.add(self._rows)
            self._rows = []

    def _write_failed(self, segment: Segment, error: OSError) -> CrawlspaceError:
        self._rows = []
        if error.errno not in _FULL:
            self._end_file()
            return self._suspect(segment, error)
        try:
            segment.roll_back()
        except OSError:
            self._end_file()
        return self._full()

    def _suspect(self, segment: Segment, error: OSError) -> CrawlspaceError:
        if error.errno in _FULL:
            return self._full()
        if isinstance(error, Unreachable):
            return ArchiveAway(str(error.strerror), hint="nothing is lost meanwhile; it is tried again")
        return ArchiveSuspect(
            f"the archive file {segment.name} could not be made durable: {error.strerror or error}",
            hint="a new file is begun; if this comes again, look at the disk's health",
        )

    def _full(self) -> DiskFull:
        try:
            free = f"{self._disk.free(self._directory) // _MIB} MiB free"
        except OSError:
            free = "free space unknown"
        return DiskFull(
            f"no space is left for the archive in {self._directory} ({free})", hint="make room and resume"
        )

    def _end_file(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.close()
            if not segment.end:
                with suppress(OSError):
                    self._disk.remove(segment.path)


def _sequence_of(name: str) -> int:
    found = re.search(r"-(\d+)-\d+\.warc", name)
    return int(found[1]) if found else 0


def _reference_to(pointer: Pointer, capture: Capture) -> Reference:
    return Reference(capture.url, capture.at, pointer)


def _unusable(directory: Path, error: OSError) -> StoreError:
    return StoreError(f"the archive directory {directory} cannot be used: {error.strerror or error}")
