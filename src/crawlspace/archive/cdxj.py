"""The index of an archive: one line of CDXJ for each capture, as `pywb` and other readers look it up.

A line is the sort-friendly key of the URL, the time to the second, and a JSON object that says where the record lies
and what it is. Lines are made from the WARC files alone: an index can be made again whatever else is lost. Sorted by
their bytes they can be searched by halving; nothing in a key or a time sorts before the blank that ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import gmtime, strftime
from typing import NamedTuple

import msgspec

from crawlspace.archive.captures import REVISIT, capture_of
from crawlspace.archive.disk import Disk
from crawlspace.archive.joins import Joins
from crawlspace.archive.members import BrokenMember, members
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode, sha1_name
from crawlspace.archive.stored import Stored, gather
from crawlspace.archive.surt import surt_of
from crawlspace.types import Pointer

UNKNOWN = "unk"
"""The type of what does not say one."""

REVISIT_MIME = "warc/revisit"
"""What readers know a revisit by."""

_MIME_LIMIT = 100
_CONTENT_TYPE = re.compile(rb"^content-type:[ \t]*([!-:<-~]+)", re.I | re.M)
_SHA1 = "sha1:"


class Damage(NamedTuple):
    """A place in an archive file from which nothing can be read, or one record that says nothing."""

    file: str
    offset: int
    why: str
    torn: bool
    """The file ends within a record: it is still being written, or its writer was killed."""

    def __str__(self) -> str:
        return f"the record at byte {self.offset} of {self.file} cannot be read: {self.why}"


Report = Callable[[Damage], None]
"""Told what could not be read."""


def archive_files(disk: Disk, directory: Path) -> list[str]:
    """Names of the archive files in `directory` whose captures count, in order; raises `OSError`."""
    names = disk.names(directory)
    return Joins.of(disk, directory, names).live(names)


class Indexer:
    """Makes the lines of one directory's files."""

    def __init__(self, disk: Disk, directory: Path, max_record: int, report: Report) -> None:
        self._disk = disk
        self._directory = directory
        self._cap = max_record + HEAD_LIMIT
        self._report = report

    def lines(self, name: str) -> Iterator[bytes]:
        """The lines of one file in order of its records. Raises `OSError`; what a file holds raises nothing."""
        for stored in self.stored(name):
            try:
                yield line_of(stored.pointer, stored.response, stored.request)
            except BrokenRecord as error:
                self.refuse(stored, error)

    def stored(self, name: str) -> Iterator[Stored]:
        """The captures of one file in order; raises as `lines` does."""
        return gather(self._records(name))

    def refuse(self, stored: Stored, error: BrokenRecord) -> None:
        """Tell of records that make no capture."""
        self._report(Damage(stored.pointer.file, stored.pointer.offset, str(error), torn=False))

    def _records(self, name: str) -> Iterator[tuple[Pointer, Record]]:
        offset, torn = 0, False

        def read(start: int, length: int) -> bytes:
            nonlocal torn
            # Nothing is asked for only where the file ends: there was to be more of a member.
            torn = not length
            return self._disk.read(path, start, length)

        path = self._directory / name
        try:
            for member in members(read, 0, self._disk.size(path), self._cap):
                offset = member.offset + member.length
                try:
                    yield Pointer(name, member.offset, member.length), decode(member.data)
                except BrokenRecord as error:
                    self._report(Damage(name, member.offset, str(error), torn=False))
        except BrokenMember as error:
            self._report(Damage(name, offset, str(error), torn))


def line_of(pointer: Pointer, response: Record, request: Record | None) -> bytes:
    """The line of one capture, with its newline; raises `BrokenRecord` when the response makes no capture."""
    capture = capture_of(response, request)
    key, body = surt_of(capture)
    facts = {
        "url": capture.url,
        "mime": REVISIT_MIME if response.kind == REVISIT else mime_of(capture.response_head),
        **({"status": str(capture.status)} if capture.status else {}),
        "digest": payload_digest(response, capture.payload),
        "length": str(pointer.length),
        "offset": str(pointer.offset),
        **({} if capture.method == "GET" else {"method": capture.method}),
        **({"requestBody": body} if body else {}),
        "filename": pointer.file,
    }
    return b"%s %s %s\n" % (key.encode(), _stamp(capture.at).encode(), msgspec.json.encode(facts))


def mime_of(head: bytes) -> str:
    """The type that a response declares, as it stands there; `UNKNOWN` when it declares none."""
    found = _CONTENT_TYPE.search(head)
    return found[1].decode("ascii")[:_MIME_LIMIT] if found else UNKNOWN


def payload_digest(response: Record, payload: bytes) -> str:
    """As the record states it, and made where it does not."""
    stated = response.fields.get("warc-payload-digest", "")
    return (stated or sha1_name(payload)).removeprefix(_SHA1)


def _stamp(at: int) -> str:
    return strftime("%Y%m%d%H%M%S", gmtime(at // 1000))
