"""Archive files of any maker, read as one stream of records: for those whose records cannot be had one by one.

Some have many records in one gzip member, some are of the older format ARC, some state wrong digests. Records
are found by the lengths they state. What cannot be read is told with its place and passed over when its end is known;
where it is not, nothing behind it can be found. Memory is that of one record, which is capped; a file that unfolds
without end is read in pieces like any other, and its records end where they say.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import zstandard

from crawlspace.archive.record import HEAD_LIMIT, BrokenRecord, Record, date_text, head_of, verified
from crawlspace.archive.tape import BrokenMember
from crawlspace.archive.zstd import MAGIC as ZSTD
from crawlspace.archive.zstd import dictionary_of

Report = Callable[[int, str], None]
"""Told where, in bytes of the unfolded stream, something cannot be read, and why."""

_GZIP = b"\x1f\x8b"
_CHUNK = 64 * 1024
_WINDOW = 1 << 27
_ARC_LINE = re.compile(
    rb"(?P<url>\S.*?) (?P<address>[0-9A-Fa-f.:]+) (?P<date>[0-9]{12,14}) "
    rb"(?P<mime>\S+)(?: .*)? (?P<length>[0-9]{1,18})"
)
_BLANK = b"\r\n \t"


class BrokenStream(Exception):
    """Nothing behind this place can be read."""


def records(path: Path, cap: int, report: Report) -> Iterator[Record]:
    """The records of a file in order. Raises `OSError`, and nothing for what the file holds."""
    with path.open("rb") as file:
        stream = _Stream(_unfolded(file))
        try:
            yield from _records(stream, cap, report)
        except BrokenStream as error:
            report(stream.position, str(error))


def _records(stream: _Stream, cap: int, report: Report) -> Iterator[Record]:
    while (line := stream.line_after_blanks()) is not None:
        at = stream.position - len(line)
        try:
            if line.startswith(b"WARC/"):
                fields, length = head_of((line + stream.head()).decode("utf-8", "replace"))
            else:
                fields, length = _arc_head(line)
        except BrokenRecord as error:
            raise BrokenStream(str(error)) from None
        if length > cap:
            report(at, f"it has more than {cap} bytes")
            stream.skip(length)
            continue
        block = stream.exactly(length)
        if "warc-type" not in fields:
            fields["warc-type"] = "response" if block.startswith(b"HTTP/") else "resource"
        try:
            yield verified(Record(fields, block))
        except BrokenRecord as error:
            report(at, str(error))


def _arc_head(line: bytes) -> tuple[dict[str, str], int]:
    """The line before a record of an ARC file: URL, address, time, type, and length last (version 1 and 2)."""
    found = _ARC_LINE.fullmatch(line.rstrip(b"\r\n"))
    if found is None:
        raise BrokenRecord(f"{line[:40]!r} begins no record")
    text = {name: value.decode("utf-8", "replace") for name, value in found.groupdict().items()}
    if text["url"].startswith("filedesc:"):
        return {"warc-type": "warcinfo"}, int(text["length"])
    fields = {
        "warc-target-uri": text["url"],
        "warc-date": _arc_date(text["date"]),
        "warc-ip-address": text["address"],
        "content-type": "application/http;msgtype=response",
    }
    return fields, int(text["length"])


def _arc_date(digits: str) -> str:
    try:
        found = datetime.strptime(digits.ljust(14, "0")[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise BrokenRecord(f"its date is {digits!r}") from None
    return date_text(int(found.timestamp()) * 1000)


class _Stream:
    """Bytes as they unfold, taken by lines and lengths."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = bytearray()
        self.position = 0
        """Bytes taken so far."""

    def line_after_blanks(self) -> bytes | None:
        """The next line that is not blank; None at the end."""
        while True:
            while self._held and self._held[0] in _BLANK:
                stripped = self._held.lstrip(_BLANK)
                self._take(len(self._held) - len(stripped))
            if self._held:
                return self._line()
            if not self._more():
                return None

    def head(self) -> bytes:
        """Lines up to the blank one, which is left out."""
        lines = bytearray()
        while (line := self._line()).strip():
            lines += line
            if len(lines) > HEAD_LIMIT:
                raise BrokenStream("its fields do not end")
        return bytes(lines)

    def exactly(self, count: int) -> bytes:
        """The next bytes; raises `BrokenStream` when there are fewer."""
        while len(self._held) < count:
            if not self._more():
                raise BrokenStream("it ends too early")
        return self._take(count)

    def skip(self, count: int) -> None:
        """Pass over bytes."""
        while count > 0:
            if not self._held and not self._more():
                raise BrokenStream("it ends too early")
            count -= len(self._take(min(count, len(self._held))))

    def _line(self) -> bytes:
        start = 0
        while (end := self._held.find(b"\n", start)) < 0:
            if len(self._held) > HEAD_LIMIT:
                raise BrokenStream("a line has no end")
            start = len(self._held)
            if not self._more():
                return self._take(len(self._held))
        return self._take(end + 1)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[:count]
        self.position += len(taken)
        return taken

    def _more(self) -> bool:
        chunk = next(self._chunks, b"")
        self._held += chunk
        return bool(chunk)


def _unfolded(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file without the compression that its first bytes show, in pieces of bounded size."""
    magic = file.read(4)
    file.seek(0)
    if magic[:2] == _GZIP:
        return _from_gzip(file)
    if magic == ZSTD or magic[1:] == b"\x2a\x4d\x18":
        return _from_zstd(file)
    return iter(lambda: file.read(_CHUNK), b"")


def _from_gzip(file: IO[bytes]) -> Iterator[bytes]:
    """All members; what follows the last and is none ends the stream, as in `gzip` itself when it is padding."""
    rest = file.read(_CHUNK)
    while rest[:2] == _GZIP:
        unfolding = zlib.decompressobj(31)
        while not unfolding.eof:
            piece = unfolding.unconsumed_tail or rest or file.read(_CHUNK)
            rest = b""
            if not piece:
                raise BrokenStream("it ends too early")
            try:
                unfolded = unfolding.decompress(piece, _CHUNK)
            except zlib.error as error:
                raise BrokenStream(f"it is damaged: {error}") from None
            if unfolded:
                yield unfolded
        rest = unfolding.unused_data or file.read(_CHUNK)
        rest = rest if len(rest) > 1 else rest + file.read(_CHUNK)
    if rest.strip(b"\0"):
        raise BrokenStream("what follows is no gzip member")


def _from_zstd(file: IO[bytes]) -> Iterator[bytes]:
    """All frames, by the dictionary at the head of the file if there is one."""

    def read(offset: int, length: int) -> bytes:
        file.seek(offset)
        return file.read(length)

    try:
        dictionary = dictionary_of(read)
        known = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        file.seek(0)
        unfolding = zstandard.ZstdDecompressor(dict_data=known, max_window_size=_WINDOW)
        with unfolding.stream_reader(file, read_across_frames=True, closefd=False) as stream:
            while piece := stream.read(_CHUNK):
                yield piece
    except (zstandard.ZstdError, BrokenMember) as error:
        raise BrokenStream(f"it is damaged: {error}") from None
