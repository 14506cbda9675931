"""Zstandard frames: one for each record, as `.warc.zst` files have them. The one place that knows the library.

A file may begin with a dictionary in a skippable frame, by which all its records are packed; the convention of the
web archives that write such files ("WARC with Zstandard compression", IIPC). Frames are taken by the blocks that RFC
8878, section 3.1.1, names, so that what a hostile one unfolds to is known block by block, and capped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import zstandard

from crawlspace.archive.tape import BrokenMember, Member, Read, Tape

MAGIC = b"\x28\xb5\x2f\xfd"
DICTIONARY_FRAME = b"\x5d\x2a\x4d\x18"
"""A skippable frame with the number that the convention gives to dictionaries."""
DICTIONARY_LIMIT = 1 << 20
DICTIONARY_BYTES = 1 << 16

_DICTIONARY = b"\x37\xa4\x30\xec"
_LEVELS = (-1, 1, 6, 15)
"""The library's levels for our own, 0 to 3."""
_WINDOW = 1 << 27
_HEADER_LIMIT = 18
_RAW, _RLE, _COMPRESSED = 0, 1, 2
_CHECKSUM = 4


class Packer:
    """Makes the frames of one file."""

    def __init__(self, level: int, dictionary: bytes = b"") -> None:
        known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        if known is not None:
            # Otherwise each record would digest it anew, which takes longer than the record.
            known.precompute_compress(level=_LEVELS[level])
        self._compressor = zstandard.ZstdCompressor(
            level=_LEVELS[level], dict_data=known, write_checksum=True, write_content_size=True
        )
        self.head = DICTIONARY_FRAME + len(dictionary).to_bytes(4, "little") + dictionary if dictionary else b""
        """What the file begins with."""

    def pack(self, record: bytes) -> bytes:
        """One frame: the same record gives the same bytes."""
        return self._compressor.compress(record)


def train(samples: Sequence[bytes]) -> bytes:
    """A dictionary for records such as these; empty when they have too little in common."""
    try:
        return zstandard.train_dictionary(DICTIONARY_BYTES, list(samples)).as_bytes()
    except zstandard.ZstdError:
        return b""


def dictionary_of(read: Read) -> bytes:
    """The dictionary at the head of a file, unpacked; empty when it has none. Raises `BrokenMember`."""
    head = read(0, 8)
    if head[:4] != DICTIONARY_FRAME:
        return b""
    length = int.from_bytes(head[4:], "little")
    if length > DICTIONARY_LIMIT:
        raise BrokenMember(f"its dictionary has {length} bytes")
    data = read(8, length)
    if len(data) < length:
        raise BrokenMember("its dictionary ends too early")
    if data[:4] == MAGIC:
        tape = Tape(lambda offset, count: data[offset : offset + count], 0, length)
        data = _unpack(tape, zstandard.ZstdDecompressor(max_window_size=_WINDOW), DICTIONARY_LIMIT)
    if data[:4] != _DICTIONARY:
        raise BrokenMember("its dictionary is none")
    return data


def members(tape: Tape, read: Read, end: int, cap: int) -> Iterator[Member]:
    """The frames from the tape's place to `end`, as `archive.members` describes."""
    decompressor = _decompressor(dictionary_of(read))
    while (offset := tape.position) < end:
        if _is_skippable(tape.peek(4)):
            head = tape.exactly(8)
            _skip(tape, int.from_bytes(head[4:], "little"))
            continue
        data = _unpack(tape, decompressor, cap)
        yield Member(offset, tape.position - offset, data)


def _decompressor(dictionary: bytes) -> zstandard.ZstdDecompressor:
    try:
        known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        return zstandard.ZstdDecompressor(dict_data=known, max_window_size=_WINDOW)
    except zstandard.ZstdError as error:
        raise BrokenMember(f"its dictionary is damaged: {error}") from None


def _is_skippable(magic: bytes) -> bool:
    return len(magic) == 4 and magic[1:] == b"\x2a\x4d\x18" and magic[0] & 0xF0 == 0x50


def _skip(tape: Tape, count: int) -> None:
    while count:
        piece = tape.take()
        if not piece:
            raise BrokenMember("it ends too early")
        tape.give_back(piece[count:])
        count -= min(count, len(piece))


def _unpack(tape: Tape, decompressor: zstandard.ZstdDecompressor, cap: int) -> bytes:
    """The data of the frame at the tape's place."""
    try:
        head = tape.peek(_HEADER_LIMIT)
        frame = zstandard.get_frame_parameters(head)
        unfolding = decompressor.decompressobj()
        pieces = [unfolding.decompress(tape.exactly(zstandard.frame_header_size(head)))]
        room = cap
        last = False
        while not last:
            last, block = _block(tape)
            if last and frame.has_checksum:
                block += tape.exactly(_CHECKSUM)
            pieces.append(unfolding.decompress(block))
            room -= len(pieces[-1])
            if room < 0:
                raise BrokenMember(f"it unfolds to more than {cap} bytes")
        if not unfolding.eof:
            raise BrokenMember("it is damaged: its blocks do not end it")
        return b"".join(pieces)
    except zstandard.ZstdError as error:
        raise BrokenMember(f"it is damaged: {error}") from None


def _block(tape: Tape) -> tuple[bool, bytes]:
    """The next block with its header; whether it is the last."""
    header = tape.exactly(3)
    number = int.from_bytes(header, "little")
    last, kind, size = bool(number & 1), number >> 1 & 3, number >> 3
    if kind not in (_RAW, _RLE, _COMPRESSED):
        raise BrokenMember("it is damaged: a block of no kind")
    return last, header + tape.exactly(1 if kind == _RLE else size)
