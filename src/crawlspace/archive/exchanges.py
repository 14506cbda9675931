"""Exchanges as they lie in the archive: the records at a pointer, read and as the bytes of their members.

For those who copy or index captures without changing them. What cannot be read raises `StoreDamaged`, as in
`archive.reader`, whose rules hold here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from crawlspace.archive.captures import is_request_of
from crawlspace.archive.disk import Disk
from crawlspace.archive.members import BrokenMember, Member, Read, members
from crawlspace.archive.reader import FILE_NAME
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode
from crawlspace.errors import StoreDamaged
from crawlspace.types import Pointer


class Exchange(NamedTuple):
    """A response, and the request that follows it when that is there and whole."""

    response: Record
    request: Record | None
    raw: bytes
    """The members of both, byte for byte."""


class Exchanges:
    """Exchanges of one directory."""

    def __init__(self, disk: Disk, directory: Path, max_record: int) -> None:
        self._disk = disk
        self._directory = directory
        self._cap = max_record + HEAD_LIMIT

    def at(self, pointer: Pointer) -> Exchange:
        """The exchange whose response lies at `pointer`; the digests of its blocks have been compared."""
        if not FILE_NAME.fullmatch(pointer.file) or pointer.offset < 0 or pointer.length <= 0:
            raise StoreDamaged(f"{pointer} points to no record of an archive")
        try:
            read = self._read_of(pointer.file)
            found = members(read, pointer.offset, self._size(pointer.file), self._cap)
            response = _response(next(found, None), pointer)
            request, length = _request(found, response)
            return Exchange(response, request, read(pointer.offset, pointer.length + length))
        except (BrokenMember, BrokenRecord) as error:
            where = f"byte {pointer.offset} of {pointer.file}"
            raise StoreDamaged(f"the record at {where} cannot be read: {error}") from None
        except OSError as error:
            raise _unreadable(pointer.file, error) from error

    def head(self, file: str) -> bytes:
        """The member of the record at the head of a file, which says who made it; empty when it is another kind."""
        try:
            first = next(members(self._read_of(file), 0, self._size(file), self._cap), None)
            if first is None or decode(first.data).kind != "warcinfo":
                return b""
            return self._read_of(file)(0, first.length)
        except (BrokenMember, BrokenRecord):
            return b""
        except OSError as error:
            raise _unreadable(file, error) from error

    def _size(self, file: str) -> int:
        return self._disk.size(self._directory / file)

    def _read_of(self, file: str) -> Read:
        return partial(self._disk.read, self._directory / file)


def _response(member: Member | None, pointer: Pointer) -> Record:
    if member is None or member.length != pointer.length:
        raise BrokenMember("its length is another")
    record = decode(member.data)
    if record.kind != "response":
        raise BrokenRecord(f"it is of type {record.kind[:40]!r}")
    return record


def _request(following: Iterator[Member], response: Record) -> tuple[Record | None, int]:
    """The request of a response and the length of its member; the response stands without it."""
    try:
        member = next(following, None)
        record = decode(member.data) if member else None
    except (BrokenMember, BrokenRecord):
        return None, 0
    return (record, member.length) if member and record and is_request_of(record, response) else (None, 0)


def _unreadable(file: str, error: OSError) -> StoreDamaged:
    return StoreDamaged(f"the archive file {file} cannot be read: {error.strerror or error}")
