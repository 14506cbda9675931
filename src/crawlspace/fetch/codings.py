"""One content coding undone, piece by piece: gzip, deflate, br and zstd (RFC 9110, section 8.4.1; RFC 8878).

A stage never gives more than a small piece at a time, so whoever pulls may stop before a bomb has cost anything.
It never raises for what a server sent: bytes that are not what their label says pass as they are, a stream that
breaks keeps all that came before the break, junk behind the end is dropped, and the stage says so in words.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Protocol

import zstandard

# Not `brotli`: the distribution brotlipy hides it behind a package of the same name that has no output limit.
from _brotli import Decompressor as BrotliDecompressor  # type: ignore[import-not-found,import-untyped,unused-ignore]
from _brotli import error as BrotliError  # type: ignore[import-not-found,import-untyped,unused-ignore]
from isal import isal_zlib

STEP = 64 * 1024
"""Bytes of output that are asked for at once; brotli may give one and a half times as many."""
ZSTD_SLICE = 256
"""Bytes given to zstd at once. Its library has no output limit, but four bytes never make more than one block of
128 KiB, so a slice makes 8 MiB at worst."""
ZSTD_WINDOW = 8 * 1024 * 1024
"""What a decoder of the content coding must support, and may refuse to exceed (RFC 9659)."""
MAX_MEMBERS = 1000
"""Gzip members or zstd frames in a row that are read; more are no honest page."""

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""The last three bytes of the sixteen magic numbers of skippable frames."""


class Stage:
    """One coding of a body, undone while it arrives."""

    def __init__(self, name: str, limit: int) -> None:
        self.note = ""
        """What was odd, in words."""
        self.broken = False
        """The stream contradicts itself: nothing more comes out of it."""
        self._name = name
        self._limit = limit
        self._plain = False
        self._over = False
        self._held = b""
        """Too few bytes yet to tell what begins."""
        self._members = 0
        """Members or frames that came to their end."""

    def steps(self, data: bytes) -> Iterable[bytes]:
        """Decoded pieces of what `data` adds to all before it; made as they are asked for."""
        if self._plain:
            return (data,)
        if self._over or self.broken:
            return ()
        held, self._held = self._held, b""
        return self._undo(held + data if held else data)

    def end(self) -> bytes:
        """Nothing more will come: what was held back because too little had come to tell its kind."""
        return self._mislabelled(self._held) if self._held and not self._members else b""

    def whole(self) -> bool:
        """Whether the stream has come to its end."""
        return self._plain or self._over

    def _undo(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def _mislabelled(self, data: bytes) -> bytes:
        self._plain = True
        self.note = f"labelled {self._name}, but it is not"
        return data

    def _finish(self, junk: bool) -> None:
        self._over = True
        if junk:
            self.note = f"junk after the end of {self._name}"

    def _break(self, reason: str) -> None:
        self.broken = True
        self.note = f"{self._name}: {reason}"

    def _foreign(self, data: bytes) -> bytes:
        """What to pass on when no member begins where one should."""
        if not self._members:
            return self._mislabelled(data)
        self._finish(junk=True)
        return b""


def stage(coding: str, limit: int) -> Stage:
    """A stage for one of `CODINGS`; what is saved from a broken stream is at most `limit` bytes."""
    return _STAGES[coding](coding, limit)


_Pieces = Callable[[bytes], Iterator[bytes]]


def _to_the_break(start: Callable[[], _Pieces], data: bytes, limit: int) -> bytes:
    """All that a failing stream gives before its break, about `limit` bytes at most.

    A call that fails keeps its output for itself, so the input is given anew and in ever smaller portions.
    """
    good = 0
    out = bytearray()
    for portion in (4096, 1):
        pieces = start()
        out = bytearray().join(pieces(data[:good]))
        try:
            while good < len(data) and len(out) <= limit:
                _gather(pieces(data[good : good + portion]), out)
                good += portion
        except (zlib.error, BrotliError):
            continue
        break
    return bytes(out)


def _gather(pieces: Iterator[bytes], out: bytearray) -> None:
    """Add all that comes, also when the next piece is a failure."""
    for piece in pieces:
        out += piece


class _Inflate(Stage):
    """gzip and deflate. The latter is zlib's format, though many servers send the bare stream."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self._gzip = name == "gzip"
        self._engine: _Inflater | None = None
        self._wbits = 0
        self._seen: list[bytes] = []
        """The input of this member, to save what a failing call would keep for itself."""
        self._given = 0

    def whole(self) -> bool:
        return super().whole() or (self._engine is None and self._members > 0)

    def _undo(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._engine is None:
                odd = self._begin(data)
                if odd is not None:
                    yield odd
                    return
            self._seen.append(data)
            data = yield from self._member(data)

    def _begin(self, data: bytes) -> bytes | None:
        """Start a member, or tell what to pass on when `data` is too short to tell, or begins none."""
        if len(data) < 2 and (not self._gzip or GZIP_MAGIC.startswith(data)):
            self._held = data
            return b""
        if self._gzip and (not data.startswith(GZIP_MAGIC) or self._members >= MAX_MEMBERS):
            return self._foreign(data)
        self._start(31 if self._gzip else 15 if _has_zlib_head(data) else -15)
        return None

    def _start(self, wbits: int) -> None:
        self._wbits = wbits
        self._engine = isal_zlib.decompressobj(wbits=wbits)
        self._seen = []
        self._given = 0

    def _member(self, data: bytes) -> Generator[bytes, None, bytes]:
        """Inflate until the input or the member ends; returns the input behind the member."""
        while self._engine is not None:
            try:
                piece = self._engine.decompress(data, STEP)
            except isal_zlib.error as error:  # type: ignore[misc]  # its stub calls this class an instance
                yield from self._save(str(error))
                return b""
            self._given += len(piece)
            yield piece
            if self._engine.eof:
                return self._end_member(self._engine.unused_data)
            data = self._engine.unconsumed_tail
            if not data and len(piece) < STEP:
                break
        return b""

    def _end_member(self, rest: bytes) -> bytes:
        self._engine = None
        self._seen = []
        self._members += 1
        if self._gzip:
            return rest
        self._finish(junk=bool(rest))
        return b""

    def _again(self) -> _Pieces:
        return partial(_inflate_pieces, zlib.decompressobj(wbits=self._wbits))

    def _save(self, reason: str) -> Iterator[bytes]:
        seen = b"".join(self._seen)
        saved = _to_the_break(self._again, seen, self._limit)
        if saved or self._gzip:
            self._break(reason)
            yield saved[self._given :]
        elif self._wbits == 15:  # a bare stream can look like zlib's head
            self._start(-15)
            self._seen.append(seen)
            yield from self._member(seen)
        else:
            yield self._mislabelled(seen)


def inflated(data: bytes, limit: int) -> bytes | None:
    """What one whole member of gzip holds; None for more than `limit` bytes, `STEP` at most, or anything else."""
    if not data.startswith(GZIP_MAGIC) or int.from_bytes(data[-4:], "little") > limit:
        return None  # the end of a member tells its size (RFC 1952, section 2.3.1)
    engine = isal_zlib.decompressobj(wbits=31)
    try:
        content = engine.decompress(data, STEP)
    except isal_zlib.error:  # type: ignore[misc]  # its stub calls this class an instance
        return None
    return content if engine.eof and not engine.unused_data and len(content) <= limit else None


class _Inflater(Protocol):
    """What the decompression objects of zlib and isal have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _has_zlib_head(data: bytes) -> bool:
    """RFC 1950, section 2.2: method 8, and the two bytes are a multiple of 31."""
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0


def _inflate_pieces(engine: _Inflater, data: bytes) -> Iterator[bytes]:
    """All that this input gives, up to the end of the stream."""
    while not engine.eof:
        piece = engine.decompress(data, STEP)
        yield piece
        data = engine.unconsumed_tail
        if not data and len(piece) < STEP:
            return


class _Brotli(Stage):
    """RFC 7932. It has no magic number: what fails before its first byte is taken for a wrong label."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self._engine = BrotliDecompressor()
        self._seen: list[bytes] = []
        """All input, to save what a failing call would keep for itself."""
        self._given = 0

    def _undo(self, data: bytes) -> Iterator[bytes]:
        self._seen.append(data)
        try:
            for piece in _brotli_pieces(self._engine, data):
                self._given += len(piece)
                yield piece
            if self._engine.is_finished():
                self._finish(junk=False)
        except BrotliError:
            yield self._save()

    def _save(self) -> bytes:
        seen = b"".join(self._seen)
        saved = _to_the_break(self._again, seen, self._limit)
        if self._has_ended():
            self._finish(junk=True)
        elif saved:
            self._break("the stream is broken")
        else:
            return self._mislabelled(seen)
        return saved[self._given :]

    def _again(self) -> _Pieces:
        self._engine = BrotliDecompressor()
        return partial(_brotli_pieces, self._engine)

    def _has_ended(self) -> bool:
        try:
            return bool(self._engine.is_finished())
        except BrotliError:  # after a failure it cannot even tell that
            return False


def _brotli_pieces(engine: BrotliDecompressor, data: bytes) -> Iterator[bytes]:
    """All that this input gives, up to the end of the stream; only an empty piece says that it gives no more."""
    while not engine.is_finished() and (piece := engine.process(data, output_buffer_limit=STEP)):
        yield piece
        data = b""


class _Zstd(Stage):
    """RFC 8878, frames in a row and skippable frames too."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self._factory = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
        self._engine: zstandard.ZstdDecompressionObj | None = None

    def whole(self) -> bool:
        return super().whole() or (self._engine is None and self._members > 0)

    def _undo(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data):
            if self._engine is None:
                odd = self._begin(data, at)
                if odd is not None:
                    yield odd
                    return
            portion = data[at : at + ZSTD_SLICE]
            try:
                piece, rest = self._decode(portion)
            except zstandard.ZstdError as error:
                self._break(str(error))
                return
            yield piece
            at += len(portion) - rest

    def _begin(self, data: bytes, at: int) -> bytes | None:
        """Start a frame, or tell what to pass on when the bytes are too few to tell, or begin none."""
        magic = data[at : at + 4]
        if len(magic) < 4:
            self._held = magic
            return b""
        framed = magic == ZSTD_MAGIC or (magic[1:] == _ZSTD_SKIPPABLE and magic[0] & 0xF0 == 0x50)
        if not framed or self._members >= MAX_MEMBERS:
            return self._foreign(data)
        self._engine = self._factory.decompressobj()
        return None

    def _decode(self, portion: bytes) -> tuple[bytes, int]:
        """What a portion gives, and how many of its bytes lie behind the end of the frame."""
        engine = self._engine
        if engine is None:
            return b"", 0
        piece = engine.decompress(portion)
        if not engine.eof:
            return piece, 0
        self._engine = None
        self._members += 1
        return piece, len(engine.unused_data)


_STAGES: dict[str, type[Stage]] = {"gzip": _Inflate, "deflate": _Inflate, "br": _Brotli, "zstd": _Zstd}
CODINGS = frozenset(_STAGES)
