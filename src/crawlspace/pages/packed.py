"""gzip inside an answer: files that are packed themselves, whatever their name and their headers say.

A sitemap is often a `.gz` file. What the fetcher unpacks is the transfer of an answer; this is the answer's own
content. Members one after another are one file; what is unpacked before an error or before a limit counts.

Source: RFC 1952.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

PIECE: Final = 65_536
"""Bytes that come out at once."""
UNPACKED: Final = 50 << 20
"""Bytes that come out at most: what sitemaps.org allows a sitemap to be."""
RATIO: Final = 200
"""Bytes that may come out for each that went in, once a mebibyte has: text this regular was made to harm."""
_FREE: Final = 1 << 20
_MAGIC: Final = b"\x1f\x8b\x08"


def is_packed(body: bytes) -> bool:
    """Whether it begins as gzip does."""
    return body.startswith(_MAGIC)


def pieces(body: bytes, limit: int = UNPACKED) -> Iterator[bytes]:
    """The content in pieces, unpacked where it is packed: `limit` bytes at most, the rest is left out."""
    left = limit
    for piece in _unpacked(body) if is_packed(body) else _cut(body):
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _cut(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), PIECE):
        yield body[start : start + PIECE]


def _unpacked(body: bytes) -> Iterator[bytes]:
    made = 0
    rest = body
    while rest.startswith(_MAGIC):
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        while not member.eof:
            try:
                piece = member.decompress(rest, PIECE)
            except zlib.error:
                return
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                return
            made += len(piece)
            if made > _FREE and made > RATIO * len(body):
                return
            if piece:
                yield piece
        rest = member.unused_data
