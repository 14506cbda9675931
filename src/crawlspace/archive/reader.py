"""Reading captures back: one by its pointer, or all of them in order.

A file of the archive may be damaged, hostile or no archive at all. Whatever it holds, reading gives captures or
`StoreDamaged`, within the memory of two records, and never waits. A name that did not come from this archive's own
directory listing must have the form of one before it is opened; also one that a revisit refers to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from crawlspace.archive.captures import (
    CAPTURES,
    capture_of,
    facts_of,
    is_rendered,
    lacks_payload,
    reference_of,
    with_payload,
)
from crawlspace.archive.disk import FILE_NAME, ReadDisk, Unreachable
from crawlspace.archive.joins import Joins
from crawlspace.archive.members import BrokenMember, Member, Read, inflate, is_gzip, members
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode
from crawlspace.archive.stored import Stored, gather, joined_to
from crawlspace.errors import ArchiveAway, StoreDamaged, StoreError
from crawlspace.exchange import Capture, Facts
from crawlspace.types import Pointer


class Reader:
    """Captures of one directory."""

    def __init__(self, disk: ReadDisk, directory: Path, max_record: int) -> None:
        self._disk = disk
        self._directory = directory
        self._cap = max_record + HEAD_LIMIT
        self._joins: Joins | None = None
        self._last = ("", directory)
        """The file that was read last and its path: captures are mostly read in the order in which they lie."""

    def open(self, pointer: Pointer) -> Capture:
        """The capture at `pointer`, as it was on the wire; with its request, when that is there and whole."""
        return self.capture(self.stored(pointer))

    def response(self, pointer: Pointer) -> Capture:
        """The capture at `pointer` without its request: not a byte behind it is read, which takes half the time."""
        try:
            found = self._alone(pointer)
            return self.capture(self.stored(pointer) if is_rendered(found) else Stored(pointer, found))
        except (BrokenMember, BrokenRecord) as error:
            raise _unreadable(pointer, error) from None
        except OSError as error:
            raise _unusable(pointer.file, error) from error

    def facts(self, pointer: Pointer) -> Facts | None:
        """What was made of the capture at `pointer`; None when the archive does not say."""
        return facts_of(self.stored(pointer).metadata)

    def stored(self, pointer: Pointer) -> Stored:
        """The records at `pointer`; their blocks' digests have been compared."""
        try:
            found = self._from(pointer)
            return _with_the_next(Stored(pointer, _capture_at(pointer, next(found, None))), found)
        except (BrokenMember, BrokenRecord) as error:
            raise _unreadable(pointer, error) from None
        except OSError as error:
            raise _unusable(pointer.file, error) from error

    def capture(self, stored: Stored) -> Capture:
        """What these records hold, with the payload that a revisit takes from another capture."""
        try:
            capture = capture_of(stored.response, stored.request, stored.conversion)
            if capture.rendered is None and is_rendered(stored.response):
                raise BrokenRecord("what a browser made of it is not there")
            if lacks_payload(stored.response):
                return with_payload(capture, stored.response, self._payload_of(stored.response))
            return capture
        except (BrokenMember, BrokenRecord) as error:
            raise _unreadable(stored.pointer, error) from None

    def original(self, pointer: Pointer) -> tuple[Pointer, Capture] | None:
        """The capture at `pointer` if it has its own payload, else the one it refers to; None if that is not there.

        What a new revisit may refer to: something that can be read now.
        """
        try:
            stored = self.stored(pointer)
            onward = _says_where(stored.response)
            if onward is not None:
                stored = self.stored(self._whole(onward))
            if stored.response.kind != "response":
                return None
            return stored.pointer, capture_of(stored.response, None)
        except (StoreError, BrokenMember, BrokenRecord, OSError):
            return None

    def scan(self, files: Mapping[str, int]) -> Iterator[tuple[Pointer, Capture]]:
        """All captures of these files, each read up to the length given, in order of name and place.

        Raises `StoreDamaged` at the first record that cannot be read. A revisit of another writer, which does not
        say in which file its payload lies, comes without it.
        """
        for name in sorted(files):
            for stored in gather(self._records(name, files[name])):
                yield stored.pointer, self._scanned(stored)

    def _scanned(self, stored: Stored) -> Capture:
        if lacks_payload(stored.response) and not _says_where(stored.response):
            return self.capture(stored._replace(response=_as_foreign(stored.response)))
        return self.capture(stored)

    def _alone(self, pointer: Pointer) -> Record:
        """The record of exactly the bytes that the pointer names."""
        if FILE_NAME.fullmatch(pointer.file) and pointer.offset >= 0 and 0 < pointer.length <= self._cap:
            with suppress(FileNotFoundError):  # told, or looked for among the joined, below
                raw = self._disk.read(self._path_of(pointer.file), pointer.offset, pointer.length)
                if len(raw) == pointer.length and is_gzip(raw):
                    return _capture(inflate(raw, self._cap))
        return _capture_at(pointer, next(self._from(pointer, alone=True), None))

    def _from(self, pointer: Pointer, *, alone: bool = False) -> Iterator[Member]:
        """The members from a place on; `alone`: what ends where the pointer says, and nothing behind it."""
        if not FILE_NAME.fullmatch(pointer.file) or pointer.offset < 0 or pointer.length < 0:
            raise StoreDamaged(f"{pointer} points to no record of an archive")
        try:
            size = self._disk.size(self._path_of(pointer.file))
        except FileNotFoundError:
            moved = self._moved(pointer)
            if moved == pointer:
                raise
            return self._from(moved, alone=alone)
        end = min(size, pointer.offset + pointer.length) if alone else size
        return members(self._read_of(pointer.file), pointer.offset, end, self._cap)

    def _moved(self, pointer: Pointer) -> Pointer:
        """Where it lies since its file was joined with others; the lists are read when a file is missed."""
        if self._joins is None or self._joins.where(pointer) == pointer:
            self._joins = Joins.of(self._disk, self._directory, self._disk.names(self._directory))
        return self._joins.where(pointer)

    def _whole(self, pointer: Pointer) -> Pointer:
        """A pointer with the length of what lies there."""
        member = next(self._from(pointer), None)
        return pointer._replace(length=member.length if member else 0)

    def _payload_of(self, revisit: Record) -> bytes:
        pointer = _says_where(revisit)
        if pointer is None:
            raise BrokenRecord("it does not say where its payload lies")
        try:
            member = next(self._from(pointer), None)
            record = decode(member.data) if member else None
        except (BrokenMember, BrokenRecord, StoreDamaged) as error:
            raise BrokenRecord(f"the capture to which it refers is damaged: {error}") from None
        except OSError as error:
            if isinstance(error, Unreachable):
                raise _unusable(pointer.file, error) from error
            raise BrokenRecord(f"the capture to which it refers is gone: {error.strerror or error}") from None
        if record is None or record.kind != "response":
            raise BrokenRecord("it refers to a place where no response lies")
        return capture_of(record, None).payload

    def _records(self, name: str, end: int) -> Iterator[tuple[Pointer, Record]]:
        after = 0
        try:
            for member in members(self._read_of(name), 0, end, self._cap):
                after = member.offset
                record = decode(member.data)
                after += member.length
                yield Pointer(name, member.offset, member.length), record
        except (BrokenMember, BrokenRecord) as error:
            raise StoreDamaged(f"the record at byte {after} of {name} cannot be read: {error}") from None
        except OSError as error:
            raise _unusable(name, error) from error

    def _read_of(self, name: str) -> Read:
        return partial(self._disk.read, self._path_of(name))

    def _path_of(self, name: str) -> Path:
        last, path = self._last
        if last != name:
            path = self._directory / name
            self._last = (name, path)
        return path


def _capture_at(pointer: Pointer, member: Member | None) -> Record:
    if member is None or not pointer.length or member.length != pointer.length:
        raise BrokenMember("its length is another")
    return _capture(member.data)


def _capture(data: bytes) -> Record:
    record = decode(data)
    if record.kind not in CAPTURES:
        raise BrokenRecord(f"it is of type {record.kind[:40]!r}")
    return record


def _with_the_next(stored: Stored, following: Iterator[Member]) -> Stored:
    """With the records behind it that are its own. The response stands without them: damage there is no error."""
    try:
        while (member := next(following, None)) is not None:
            joined = joined_to(stored, decode(member.data))
            if joined is None:
                break
            stored = joined
            if stored.is_whole:
                break
    except (BrokenMember, BrokenRecord):
        pass
    return stored


def _says_where(record: Record) -> Pointer | None:
    """Where the payload of a revisit lies, as far as the record says."""
    refers = reference_of(record)
    return refers.pointer if refers is not None else None


def _as_foreign(revisit: Record) -> Record:
    """The record as one whose payload is not asked for."""
    return revisit._replace(fields={**revisit.fields, "warc-profile": "server-not-modified"})


def _unreadable(pointer: Pointer, error: Exception) -> StoreDamaged:
    return StoreDamaged(f"the record at byte {pointer.offset} of {pointer.file} cannot be read: {error}")


def _unusable(file: str, error: OSError) -> StoreError:
    if isinstance(error, Unreachable):
        return ArchiveAway(str(error.strerror))
    return StoreDamaged(f"the archive file {file} cannot be read: {error.strerror or error}")
