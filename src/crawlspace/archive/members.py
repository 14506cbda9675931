"""Gzip members: one for each record, so that a record opens by itself and a torn one harms no other.

The one place that knows the compression library. A member is taken only whole: its checksum and length (RFC 1952,
section 2.3.1) must fit. Output is capped, so that a small hostile file cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from isal import igzip_lib, isal_zlib

Read = Callable[[int, int], bytes]
"""Offset and length to bytes; fewer than asked only at the end of the file."""

FASTEST, SMALLEST = 0, 3
"""Levels of the library; each is several times faster than zlib at its default."""

_GZIP = 31
_CHUNK = 64 * 1024
"""A few usual pages: larger ones are copied too often as members leave the buffer's front."""


class BrokenMember(Exception):
    """These bytes are no whole gzip member, or one that unfolds beyond the cap."""


class Member(NamedTuple):
    """A member that was read whole."""

    offset: int
    length: int
    """Compressed, in the file."""
    data: bytes


def deflate(data: bytes, level: int) -> bytes:
    """One gzip member without name and time: the same data gives the same bytes."""
    compressed: bytes = igzip_lib.compress(data, level, igzip_lib.COMP_GZIP)
    return compressed


def members(read: Read, start: int, end: int, cap: int) -> Iterator[Member]:
    """The members from `start` to `end` in turn, each at most `cap` bytes when unfolded.

    Raises `BrokenMember` at the first that is torn, damaged or too large: nothing after it can be found safely.
    """
    tape = _Tape(read, start, end)
    while (offset := tape.position) < end:
        data = _inflate(tape, cap)
        yield Member(offset, tape.position - offset, data)


class _Tape:
    """A stretch of a file, read in chunks, of which what was not used is given back."""

    __slots__ = ("_ahead", "_end", "_read", "position")

    def __init__(self, read: Read, start: int, end: int) -> None:
        self.position = start
        self._read = read
        self._end = end
        self._ahead = b""

    def take(self) -> bytes:
        """The next bytes; empty at the end."""
        piece = self._ahead or self._read(self.position, min(_CHUNK, self._end - self.position))
        self._ahead = b""
        self.position += len(piece)
        return piece

    def give_back(self, rest: bytes) -> None:
        self._ahead = rest
        self.position -= len(rest)


def _inflate(tape: _Tape, cap: int) -> bytes:
    inflater = isal_zlib.decompressobj(_GZIP)
    pieces: list[bytes] = []
    room = cap + 1
    while not inflater.eof:
        piece = inflater.unconsumed_tail or tape.take()
        if not piece:
            raise BrokenMember("it ends too early")
        try:
            unfolded = inflater.decompress(piece, room)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance
            raise BrokenMember(f"it is damaged: {error}") from None
        room -= len(unfolded)
        if not room:
            raise BrokenMember(f"it unfolds to more than {cap} bytes")
        pieces.append(unfolded)
    tape.give_back(inflater.unused_data)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
