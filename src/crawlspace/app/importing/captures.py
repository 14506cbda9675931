"""The captures in an archive file of any maker, and where each will lie.

A file whose records open one by one is put into the crawl's archive as it is: copied, or linked when that is asked
for, and its captures are pointed to in their place. The captures of any other file are written again, as if they had
just been fetched. The name in the archive is made of the file's own and of what it begins and ends with, so that
the same file comes to lie under the same name whoever imports it, and however often.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct

from crawlspace.app.importing.imported import Imported
from crawlspace.archive import foreign
from crawlspace.archive.captures import REVISIT, capture_of, is_request_of, lacks_payload
from crawlspace.archive.disk import RealDisk
from crawlspace.archive.members import BrokenMember, members
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, decode
from crawlspace.exchange import Capture
from crawlspace.types import Pointer

Placed = tuple[Pointer | None, Record]
"""A record, and where it lies in the archive; None when it has to be written there first."""

_ENDS = 64 * 1024
_NAME = re.compile(r"[^A-Za-z0-9]+")
_NAME_LIMIT = 100
_SUFFIXES = (".warc.gz", ".warc.zst", ".warc")
_HTTP = "application/http"


class Found(Struct, frozen=True):
    """A capture in a source."""

    capture: Capture
    pointer: Pointer | None = None
    """Where it lies in the crawl's archive already."""
    revisit: Record | None = None
    """Set where it has no payload of its own: the record that says which other capture has it."""


class Shelf(Struct, frozen=True):
    """Where files of others are put, and how."""

    directory: Path
    """The crawl's archive."""
    worker: int
    max_record: int
    keeps: bool = True
    """False where the archive is no directory of files: then all captures are written again."""
    links: bool = False
    """Link files instead of copying them."""

    @property
    def cap(self) -> int:
        """Bytes of the largest record that is read."""
        return self.max_record + HEAD_LIMIT


def captures(path: Path, shelf: Shelf, done: Imported) -> Iterator[Found]:
    """The captures in a file, in order; what cannot be read is told to `done`. Raises `OSError`."""
    name = name_on(path, shelf) if shelf.keeps else None
    if name is None:
        records: Iterable[Placed] = ((None, record) for record in _written_again(path, shelf, done))
    else:
        _put(path, shelf, name)
        records = _kept(path, shelf, name, done)
    yield from _captures(records, path, done)


def name_on(path: Path, shelf: Shelf) -> str | None:
    """The name under which a file will lie in the archive; None when its records do not open one by one."""
    suffix = next((suffix for suffix in _SUFFIXES if path.name.lower().endswith(suffix)), ".warc.gz")
    disk = RealDisk()
    try:
        size = path.stat().st_size
        first = next(members(partial(disk.read, path), 0, size, shelf.cap), None)
        if first is None:
            return None
        decode(first.data)
    except (BrokenMember, BrokenRecord):
        return None
    digest = blake2b(str(size).encode(), digest_size=8)
    digest.update(disk.read(path, 0, _ENDS))
    digest.update(disk.read(path, max(0, size - _ENDS), _ENDS))
    stem = _NAME.sub("-", path.name.lower().removesuffix(suffix))[:_NAME_LIMIT].strip("-") or "archive"
    return f"import-{stem}-{digest.hexdigest()}-{shelf.worker}{suffix}"


def _put(path: Path, shelf: Shelf, name: str) -> None:
    """Put a file into the archive, unless it is there whole: what a crash cut is copied again."""
    target = shelf.directory / name
    if target.exists() and target.stat().st_size == path.stat().st_size:
        return
    shelf.directory.mkdir(parents=True, exist_ok=True)
    if shelf.links and _is_sound(path, shelf):
        target.unlink(missing_ok=True)
        target.hardlink_to(path.resolve())
    else:
        # No archive file has such a name: nobody takes it for one before it is whole.
        partial_copy = shelf.directory / f"{name}.partial"
        shutil.copyfile(path, partial_copy)
        _sync(partial_copy)
        partial_copy.replace(target)
    RealDisk().sync_directory(shelf.directory)


def _is_sound(path: Path, shelf: Shelf) -> bool:
    """Whether all of a file can be read: of one that is torn the crawl would cut the end, which is its owner's."""
    try:
        for member in members(partial(RealDisk().read, path), 0, path.stat().st_size, shelf.cap):
            decode(member.data)
    except (BrokenMember, BrokenRecord):
        return False
    return True


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- records ------------------------------------------------------------------------------------------------


def _kept(path: Path, shelf: Shelf, name: str, done: Imported) -> Iterator[Placed]:
    offset = 0
    try:
        read = partial(RealDisk().read, shelf.directory / name)
        for member in members(read, 0, path.stat().st_size, shelf.cap):
            offset = member.offset + member.length
            try:
                yield Pointer(name, member.offset, member.length), decode(member.data)
            except BrokenRecord as error:
                done.lost(f"{path.name}, byte {member.offset}: {error}")
    except BrokenMember as error:
        done.lost(f"{path.name}, byte {offset}: {error}")


def _written_again(path: Path, shelf: Shelf, done: Imported) -> Iterator[Record]:
    def report(at: int, why: str) -> None:
        done.lost(f"{path.name}, byte {at} unfolded: {why}")

    return foreign.records(path, shelf.cap, report)


def _captures(records: Iterable[Placed], path: Path, done: Imported) -> Iterator[Found]:
    """Responses with their requests, which stand before or behind them."""
    held: Placed | None = None
    request: Record | None = None
    for placed in records:
        _, record = placed
        if held is not None:
            yield from _found(held, request, record, path, done)
            held, request = None, None
        match record.kind:
            case "response" | "revisit":
                held = placed
            case "request":
                request = record
            case "warcinfo" | "metadata":
                pass
            case kind:
                done.passed[f"records of type {kind[:40]}"] += 1
    if held is not None:
        yield from _found(held, request, None, path, done)


def _found(held: Placed, before: Record | None, after: Record | None, path: Path, done: Imported) -> Iterator[Found]:
    pointer, response = held
    if not response.fields.get("content-type", "").startswith(_HTTP):
        done.passed["responses of another protocol"] += 1
        return
    behind = after is not None and is_request_of(after, response)
    request = after if behind else before if before is not None and _is_of(before, response) else None
    try:
        capture = capture_of(response, request)
    except BrokenRecord as error:
        place = "" if pointer is None else f", byte {pointer.offset}"
        done.lost(f"{path.name}{place}: a response says nothing: {error}")
        return
    if response.kind == REVISIT:
        if capture.status == 304 or not lacks_payload(response):
            done.passed["revisits that say only that a page had not changed"] += 1
        else:
            yield Found(capture, revisit=response)
        return
    if not capture.status:
        done.passed["responses without a status"] += 1
        return
    # Read from its place, a response has the request behind it or none: another method would be forgotten.
    movable = behind or capture.method == "GET"
    yield Found(capture, pointer if movable else None)


def _is_of(request: Record, response: Record) -> bool:
    name = request.fields.get("warc-record-id")
    return is_request_of(request, response) or (
        name is not None and response.fields.get("warc-concurrent-to") == name
    )
