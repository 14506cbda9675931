"""Reading captures back: one by its pointer, or all of them in order.

A file of the archive may be damaged, hostile or no archive at all. Whatever it holds, reading gives captures or
`StoreDamaged`, within the memory of one record, and never waits. A name that did not come from this archive's own
directory listing must have the form of one before it is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from crawlspace.archive.captures import capture_of, is_request_of
from crawlspace.archive.disk import Disk
from crawlspace.archive.members import BrokenMember, Member, Read, members
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode
from crawlspace.errors import StoreDamaged
from crawlspace.exchange import Capture
from crawlspace.types import Pointer

FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.warc\.gz")


class Reader:
    """Captures of one directory."""

    def __init__(self, disk: Disk, directory: Path, max_record: int) -> None:
        self._disk = disk
        self._directory = directory
        self._cap = max_record + HEAD_LIMIT

    def open(self, pointer: Pointer) -> Capture:
        """The capture at `pointer`; with its request, when that is there and whole."""
        if not FILE_NAME.fullmatch(pointer.file) or pointer.offset < 0 or pointer.length <= 0:
            raise StoreDamaged(f"{pointer} points to no record of an archive")
        try:
            size = self._disk.size(self._directory / pointer.file)
            found = members(self._read_of(pointer.file), pointer.offset, size, self._cap)
            response = self._at(pointer, next(found, None))
            return capture_of(response, _request_after(response, found))
        except (BrokenMember, BrokenRecord) as error:
            raise StoreDamaged(f"the record at {_where(pointer)} cannot be read: {error}") from None
        except OSError as error:
            raise StoreDamaged(
                f"the archive file {pointer.file} cannot be read: {error.strerror or error}"
            ) from error

    def scan(self, files: Mapping[str, int]) -> Iterator[tuple[Pointer, Capture]]:
        """All captures of these files, each read up to the length given, in order of name and place.

        Raises `StoreDamaged` at the first record that cannot be read.
        """
        for name in sorted(files):
            yield from self._scan_file(name, files[name])

    def _scan_file(self, name: str, end: int) -> Iterator[tuple[Pointer, Capture]]:
        held: tuple[Pointer, Record] | None = None
        for member, record in self._records(name, end):
            if held is not None:
                request = record if is_request_of(record, held[1]) else None
                yield held[0], self._capture(held, request)
                held = None
            if record.kind == "response":
                held = (Pointer(name, member.offset, member.length), record)
        if held is not None:
            yield held[0], self._capture(held, None)

    def _records(self, name: str, end: int) -> Iterator[tuple[Member, Record]]:
        after = 0
        try:
            for member in members(self._read_of(name), 0, end, self._cap):
                after = member.offset
                record = decode(member.data)
                after += member.length
                yield member, record
        except (BrokenMember, BrokenRecord) as error:
            raise StoreDamaged(f"the record at byte {after} of {name} cannot be read: {error}") from None
        except OSError as error:
            raise StoreDamaged(f"the archive file {name} cannot be read: {error.strerror or error}") from error

    def _read_of(self, name: str) -> Read:
        path = self._directory / name

        def read(offset: int, length: int) -> bytes:
            return self._disk.read(path, offset, length)

        return read

    def _at(self, pointer: Pointer, member: Member | None) -> Record:
        if member is None or member.length != pointer.length:
            raise BrokenMember("its length is another")
        record = decode(member.data)
        if record.kind != "response":
            raise BrokenRecord(f"it is of type {record.kind[:40]!r}")
        return record

    def _capture(self, held: tuple[Pointer, Record], request: Record | None) -> Capture:
        try:
            return capture_of(held[1], request)
        except BrokenRecord as error:
            raise StoreDamaged(f"the record at {_where(held[0])} cannot be read: {error}") from None


def _request_after(response: Record, following: Iterator[Member]) -> Record | None:
    """The next record, if it is this response's request. The response stands without it: damage there is no error."""
    try:
        member = next(following, None)
        record = decode(member.data) if member else None
    except (BrokenMember, BrokenRecord):
        return None
    return record if record and is_request_of(record, response) else None


def _where(pointer: Pointer) -> str:
    return f"byte {pointer.offset} of {pointer.file}"
