"""Exchanges as they lie in the archive: the records at a pointer, read and as the bytes of their members.

For those who copy captures without changing them. What cannot be read raises `StoreDamaged`, as in `archive.reader`,
whose rules hold here too.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

from crawlspace.archive.captures import RESPONSE, lacks_payload
from crawlspace.archive.disk import ReadDisk
from crawlspace.archive.members import BrokenMember, deflate, members
from crawlspace.archive.reader import Reader
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode, encode, sha1_name, spelled
from crawlspace.archive.stored import Stored
from crawlspace.errors import StoreDamaged
from crawlspace.types import Pointer

_LEVEL = 1
_GZIP = b"\x1f\x8b"
_ONLY_OF_REVISITS = ("warc-profile", "content-length")


class Exchange(NamedTuple):
    """A response, and the records that follow it when they are there and whole."""

    response: Record
    """Whole also where the archive has a revisit: whoever copies it needs no other capture."""
    request: Record | None
    raw: bytes
    """The gzip members of all; byte for byte the archive's own where it has such and the response is whole."""
    metadata: Record | None = None
    conversion: Record | None = None
    """What a browser made of the response."""


class Exchanges:
    """Exchanges of one directory."""

    def __init__(self, disk: ReadDisk, directory: Path, max_record: int) -> None:
        self._disk = disk
        self._directory = directory
        self._cap = max_record + HEAD_LIMIT
        self._reader = Reader(disk, directory, max_record)

    def at(self, pointer: Pointer) -> Exchange:
        """The exchange whose response lies at `pointer`; the digests of its blocks have been compared."""
        stored = self._reader.stored(pointer)
        if lacks_payload(stored.response):
            stored = stored._replace(response=self._whole(stored))
            return _exchange(stored, _packed(stored))
        return _exchange(stored, self._raw(stored))

    def head(self, file: str) -> bytes:
        """The record at the head of a file, which says who made it, as a gzip member; empty if it is none such."""
        try:
            first = next(
                members(partial(self._disk.read, self._directory / file), 0, self._size(file), self._cap), None
            )
            if first is None or decode(first.data).kind != "warcinfo":
                return b""
            raw = self._disk.read(self._directory / file, first.offset, first.length)
            return raw if raw.startswith(_GZIP) else deflate(first.data, _LEVEL)
        except (BrokenMember, BrokenRecord):
            return b""
        except OSError as error:
            raise _unreadable(file, error) from error

    def _size(self, file: str) -> int:
        return self._disk.size(self._directory / file)

    def _raw(self, stored: Stored) -> bytes:
        """The members as they lie there, or made anew where the file is packed otherwise."""
        file, offset, length = stored.pointer
        path = self._directory / file
        try:
            if self._disk.read(path, offset, 2) != _GZIP:
                return _packed(stored)
            found = members(partial(self._disk.read, path), offset + length, self._size(file), self._cap)
            for _ in _behind(stored):
                length += next(found).length
            return self._disk.read(path, offset, length)
        except OSError as error:
            raise _unreadable(file, error) from error

    def _whole(self, stored: Stored) -> Record:
        """A revisit made the response that it stands for."""
        capture = self._reader.capture(stored)
        block = stored.response.block + capture.payload
        kept = {
            name: value
            for name, value in stored.response.fields.items()
            if name not in _ONLY_OF_REVISITS and not name.startswith("warc-refers-to")
        }
        return Record({**kept, "warc-type": RESPONSE, "warc-block-digest": sha1_name(block)}, block)


def _packed(stored: Stored) -> bytes:
    return b"".join(deflate(_encoded(record), _LEVEL) for record in (stored.response, *_behind(stored)))


def _exchange(stored: Stored, raw: bytes) -> Exchange:
    return Exchange(stored.response, stored.request, raw, stored.metadata, stored.conversion)


def _behind(stored: Stored) -> list[Record]:
    """The records that follow the response, in the order in which they are written."""
    return [each for each in (stored.request, stored.metadata, stored.conversion) if each is not None]


def _encoded(record: Record) -> bytes:
    fields = [(spelled(name), value) for name, value in record.fields.items() if name != "content-length"]
    return encode(fields, record.block)


def _unreadable(file: str, error: OSError) -> StoreDamaged:
    return StoreDamaged(f"the archive file {file} cannot be read: {error.strerror or error}")
