"""Lines of the journal: what one parser made of one capture, or that a capture does not count after all.

A line is a checksum (CRC-32, eight hexadecimal digits), a blank, and JSON. The last line about a parser, a URL and a
generation holds; those before it, of whatever version, it replaces as a whole. So a line that is written twice counts
once.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from crawlspace.parsers import Parsed
from crawlspace.types import Captured, Pointer

_SUM: Final = 9
"""Characters of the checksum, with its blank."""


_AGAIN: Final = "0"
"""Version of an entry without a parser that tells of a visit which found nothing new; a number like all versions."""


class Kept(Struct, frozen=True, array_like=True):
    """One record in a line."""

    key: str | None
    digest: str
    data: msgspec.Raw
    twins: tuple[str, ...] = ()


class Entry(Struct, frozen=True, array_like=True):
    """One line."""

    parser: str
    """Empty: the capture does not count, or is a visit that found nothing new."""
    version: str
    id: int
    generation: int
    url: str
    file: str
    offset: int
    length: int
    at: int
    error: str | None = None
    significant: tuple[str, ...] = ()
    records: tuple[Kept, ...] = ()

    @property
    def pointer(self) -> Pointer:
        return Pointer(self.file, self.offset, self.length)

    @property
    def is_again(self) -> bool:
        """Whether it tells of a visit that found the page as it was."""
        return not self.parser and self.version == _AGAIN

    @property
    def visit(self) -> tuple[int, int]:
        """The URL's number and the generation."""
        return self.id, self.generation


class Placed(NamedTuple):
    """An entry and its place among all that were ever written: a later one holds."""

    place: int
    entry: Entry


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode


def _line(entry: Entry) -> bytes:
    text = _encode(entry)
    return b"%08x %s\n" % (crc32(text), text)


def line_of(captured: Captured, parsed: Parsed) -> bytes:
    """What a parser made of a capture, as a line."""
    records = tuple(Kept(each.key, each.digest, msgspec.Raw(each.data), each.twins) for each in parsed.records)
    entry = Entry(
        parsed.parser,
        parsed.version,
        captured.id,
        captured.generation,
        captured.url,
        *captured.pointer,
        captured.at,
        parsed.error,
        parsed.significant,
        records,
    )
    return _line(entry)


def void_line(captured: Captured) -> bytes:
    """That a capture does not count, as a line: its URL was settled with another."""
    return _line(Entry("", "", captured.id, captured.generation, captured.url, *captured.pointer, captured.at))


def again_line(captured: Captured) -> bytes:
    """That a page's last capture is still right, by the word of its site (304), as a line."""
    return _line(Entry("", _AGAIN, captured.id, captured.generation, captured.url, *captured.pointer, captured.at))


SEAL: Final = _line(Entry("", "sealed", 0, 0, "", "", 0, 0, 0))
"""The last line of a journal that was ended in peace: all it tells of was settled, or is told not to count."""


def entries(data: bytes) -> Iterator[tuple[int, Entry]]:
    """The entries of a journal with the end of each, up to the first line that is torn."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        entry = _read(data[start:end])
        if entry is None:
            return
        start = end + 1
        if entry.version != "sealed" or entry.parser:
            yield start, entry


def _read(line: bytes) -> Entry | None:
    text = line[_SUM:]
    if line[:_SUM] != b"%08x " % crc32(text):
        return None
    try:
        return _decode(text)
    except msgspec.DecodeError:
        return None
