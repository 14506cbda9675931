"""Files that were joined into larger ones, so that an archive of many small files becomes one of few.

The members of the parts follow each other in the whole, byte for byte: what lay in a part lies in the whole, further
on by the part's beginning. A list beside the whole, written when that is durable, says which parts those are. From
then on the whole counts and the parts do not; before, it is the other way round. So no kill makes a capture appear
twice or not at all, and a pointer into a part that is gone, as a revisit record or a record of parsed data may hold
it, is followed for ever.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from crawlspace.archive.disk import FILE_NAME, Disk, ReadDisk
from crawlspace.types import Joined, Pointer

MARK = "-joined-"
"""In the name of a file that was made of others."""
LIST = ".parts"
"""End of the name of the list beside it."""

_LIST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.parts")
_LIST_LIMIT = 64 << 20
_HOPS = 64
"""Wholes become parts again, each at least twice as large: more would need a file of all the world's atoms."""


class Joins:
    """The lists of one directory."""

    def __init__(self, wholes: Iterable[Joined] = ()) -> None:
        self._wholes = {whole.name: whole for whole in wholes}
        self._parts = {part: (whole.name, base) for whole in self._wholes.values() for part, base in whole.parts}

    @classmethod
    def of(cls, disk: ReadDisk, directory: Path, names: Iterable[str]) -> Joins:
        """The lists among these names; raises `OSError`. A list that cannot be read was never finished."""
        found: list[Joined] = []
        for name in names:
            if _LIST_NAME.fullmatch(name):
                try:
                    found.append(msgspec.json.decode(disk.read(directory / name, 0, _LIST_LIMIT), type=Joined))
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
        return cls(found)

    def live(self, names: Iterable[str]) -> list[str]:
        """Of these names those of archive files whose captures count, in order."""
        return sorted(
            name
            for name in names
            if FILE_NAME.fullmatch(name) and name not in self._parts and (MARK not in name or name in self._wholes)
        )

    def dead(self, names: Iterable[str]) -> list[str]:
        """Of these names those of archive files that do not count: parts, and wholes that were never finished."""
        archives = [name for name in names if FILE_NAME.fullmatch(name)]
        return sorted(set(archives).difference(self.live(archives)))

    def wholes(self) -> Sequence[Joined]:
        """All that were made, in order of name."""
        return sorted(self._wholes.values())

    def where(self, pointer: Pointer) -> Pointer:
        """Where that lies now which lay at `pointer`."""
        for _ in range(_HOPS):
            into = self._parts.get(pointer.file)
            if into is None:
                break
            pointer = Pointer(into[0], pointer.offset + into[1], pointer.length)
        return pointer


def list_name(whole: str) -> str:
    """Name of the list beside a file that was made of others."""
    return whole.partition(".warc")[0] + LIST


def join(disk: Disk, directory: Path, name: str, parts: Sequence[str]) -> Joined:
    """Make a file of others, and the list that lets it count; durable on return. Raises `OSError`."""
    places: list[tuple[str, int]] = []
    base = 0
    for part in parts:
        places.append((part, base))
        base += disk.size(directory / part)
    disk.join(directory / name, [directory / part for part in parts])
    whole = Joined(name, base, tuple(places))
    listing = disk.create(directory / list_name(name))
    try:
        data = memoryview(msgspec.json.encode(whole))
        while data:
            data = data[listing.write(data) :]
        listing.sync()
    finally:
        listing.close()
    disk.sync_directory(directory)
    return whole
