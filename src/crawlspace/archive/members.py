"""Members of an archive file: one for each record, so that a record opens by itself and a torn one harms no other.

Ours are gzip members or Zstandard frames; the one place that knows the gzip library. A member is taken only whole:
its checksum and length (RFC 1952, section 2.3.1) must fit. Output is capped, so that a small hostile file cannot fill
the memory. Which of the kinds a file has, its bytes tell, never its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from isal import igzip_lib, isal_zlib

from crawlspace.archive import plain, zstd
from crawlspace.archive.tape import BrokenMember, Member, Read, Tape

__all__ = ["FASTEST", "SMALLEST", "BrokenMember", "Member", "Read", "deflate", "inflate", "is_gzip", "members"]

FASTEST, SMALLEST = 0, 3
"""Levels of the library; each is several times faster than zlib at its default."""

_GZIP = 31
_MAGIC = b"\x1f\x8b"


def deflate(data: bytes, level: int) -> bytes:
    """One gzip member without name and time: the same data gives the same bytes."""
    compressed: bytes = igzip_lib.compress(data, level, igzip_lib.COMP_GZIP)
    return compressed


def is_gzip(data: bytes) -> bool:
    """Whether a gzip member begins here."""
    return data.startswith(_MAGIC)


def inflate(data: bytes, cap: int) -> bytes:
    """What the one gzip member that `data` is unfolds to: the quick way, for who has read it whole.

    Raises `BrokenMember` where it is anything else, or more than `cap` bytes.
    """
    inflater = isal_zlib.decompressobj(_GZIP)
    try:
        unfolded = inflater.decompress(data, cap + 1)
    except isal_zlib.error as error:  # type: ignore[misc]  # its stub says instance
        raise BrokenMember(f"it is damaged: {error}") from None
    if len(unfolded) > cap:
        raise BrokenMember(f"it unfolds to more than {cap} bytes")
    if not inflater.eof:
        raise BrokenMember("it ends too early")
    if inflater.unused_data:
        raise BrokenMember("its length is another")
    return unfolded


def members(read: Read, start: int, end: int, cap: int) -> Iterator[Member]:
    """The members from `start` to `end` in turn, each at most `cap` bytes when unfolded.

    Raises `BrokenMember` at the first that is torn, damaged or too large: nothing after it can be found safely.
    """
    tape = Tape(read, start, end)
    begins = tape.peek(len(plain.OLD_START)) if start < end else b""
    if begins[:4] == zstd.MAGIC or begins[1:4] == zstd.DICTIONARY_FRAME[1:]:
        yield from zstd.members(tape, read, end, cap)
    elif begins.startswith(plain.START):
        yield from plain.members(tape, end, cap)
    elif begins == plain.OLD_START:
        raise BrokenMember("the file is of the older format ARC, which only `crawlspace import` reads")
    else:
        yield from _gzip_members(tape, end, cap)


def _gzip_members(tape: Tape, end: int, cap: int) -> Iterator[Member]:
    while (offset := tape.position) < end:
        data = _inflate(tape, cap)
        yield Member(offset, tape.position - offset, data)


def _inflate(tape: Tape, cap: int) -> bytes:
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
