"""A stretch of a file, read in chunks by those who take records out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Read = Callable[[int, int], bytes]
"""Offset and length to bytes; fewer than asked only at the end of the file."""

CHUNK = 64 * 1024
"""A few usual pages: larger ones are copied too often as members leave the buffer's front."""


class BrokenMember(Exception):
    """These bytes are no whole member of an archive file, or one that unfolds beyond the cap."""


class Member(NamedTuple):
    """A member that was read whole."""

    offset: int
    length: int
    """In the file."""
    data: bytes


class Tape:
    """Bytes from a place on, of which what was not used is given back."""

    __slots__ = ("_ahead", "_end", "_read", "position")

    def __init__(self, read: Read, start: int, end: int) -> None:
        self.position = start
        self._read = read
        self._end = end
        self._ahead = b""

    def take(self) -> bytes:
        """The next bytes; empty at the end."""
        piece = self._ahead or self._read(self.position, min(CHUNK, self._end - self.position))
        self._ahead = b""
        self.position += len(piece)
        return piece

    def give_back(self, rest: bytes) -> None:
        self._ahead = rest
        self.position -= len(rest)

    def exactly(self, count: int) -> bytes:
        """The next `count` bytes; raises `BrokenMember` when there are fewer."""
        found = self._gather(count)
        if len(found) < count:
            raise BrokenMember("it ends too early")
        self.give_back(found[count:])
        return found[:count]

    def peek(self, count: int) -> bytes:
        """The next `count` bytes, or as many as there are; they stay where they are."""
        found = self._gather(count)
        self.give_back(found)
        return found[:count]

    def _gather(self, count: int) -> bytes:
        pieces: list[bytes] = []
        while count > 0 and (piece := self.take()):
            pieces.append(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
