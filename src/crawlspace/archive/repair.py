"""What a start does to files that a crash left behind.

The store knows how much of each file was durable when it last settled something; that much is never read here, so
that a start costs nothing by the size of the archive. Past it, whole records stay (they do no harm: no URL points
to them), and from the first that is not whole the file is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from crawlspace.archive.captures import CAPTURES
from crawlspace.archive.disk import FILE_NAME, Disk
from crawlspace.archive.members import BrokenMember, members
from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, decode
from crawlspace.errors import StoreDamaged, StoreError


class Repair(NamedTuple):
    """A file that was cut."""

    file: str
    found: int
    """Its length before, in bytes."""
    kept: int
    """Its length now; with 0 the file is gone."""

    def __str__(self) -> str:
        what = f"cut from {self.found} to {self.kept} bytes" if self.kept else f"removed, {self.found} bytes"
        return f"the end of the archive file {self.file} was torn by a crash: {what}; nothing stored is lost"


def repair_files(
    disk: Disk, directory: Path, flushed: Mapping[str, int], max_record: int, worker: int | None = None
) -> list[Repair]:
    """Cut the torn tails of all archive files in `directory`, or of those of one worker; what was cut, by name.

    `flushed` is the durable length of each file as the store knows it; 0 for those it does not name. Raises
    `StoreDamaged`, having changed nothing, when a file is gone or shorter than that.
    """
    try:
        names = [name for name in disk.names(directory) if FILE_NAME.fullmatch(name) and is_of(worker, name)]
        sizes = {name: disk.size(directory / name) for name in names}
        for name, length in sorted(flushed.items()):
            if is_of(worker, name):
                _require(name, sizes.get(name, 0), length)
        grown = [name for name, size in sorted(sizes.items()) if size > flushed.get(name, 0) or not size]
        repairs = [
            Repair(name, sizes[name], _whole(disk, directory / name, (flushed.get(name, 0), sizes[name]), max_record))
            for name in grown
        ]
        return _apply(
            disk, directory, [repair for repair in repairs if repair.kept < repair.found or not repair.kept]
        )
    except OSError as error:
        raise StoreError(f"the archive in {directory} cannot be repaired: {error.strerror or error}") from error


def end_of_capture(disk: Disk, path: Path, reach: int, max_record: int) -> int:
    """Where the records end that belong to the capture whose response ends at `reach`, as far as they are whole."""
    end = reach

    def read(offset: int, length: int) -> bytes:
        return disk.read(path, offset, length)

    try:
        for member in members(read, reach, disk.size(path), max_record + HEAD_LIMIT):
            if decode(member.data).kind in CAPTURES:
                break
            end = member.offset + member.length
    except (BrokenMember, BrokenRecord, OSError):
        pass
    return end


def is_of(worker: int | None, name: str) -> bool:
    """Whether this worker made the file, by the end of its name."""
    return worker is None or name.partition(".")[0].endswith(f"-{worker}")


def _require(name: str, size: int, length: int) -> None:
    if size < length:
        raise StoreDamaged(
            f"the archive file {name} has {size} bytes where {length} were stored",
            hint="restore the file from a copy; pages whose captures are lost cannot be read again from the archive",
        )


def _whole(disk: Disk, path: Path, stretch: tuple[int, int], max_record: int) -> int:
    """How much of the file from the first to the second of `stretch` is whole records."""
    kept = stretch[0]

    def read(offset: int, length: int) -> bytes:
        return disk.read(path, offset, length)

    try:
        for member in members(read, *stretch, max_record + HEAD_LIMIT):
            decode(member.data)
            kept = member.offset + member.length
    except (BrokenMember, BrokenRecord):
        pass
    return kept


def _apply(disk: Disk, directory: Path, repairs: list[Repair]) -> list[Repair]:
    for repair in repairs:
        if repair.kept:
            disk.cut(directory / repair.file, repair.kept)
        else:
            disk.remove(directory / repair.file)
    if repairs:
        disk.sync_directory(directory)
    return repairs
