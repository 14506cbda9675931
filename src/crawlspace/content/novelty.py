"""Whether a page says anything beyond its own address: what tells a trap from an archive.

A calendar without end has a page for every month, and each says the same: nothing, but for its month. So the numbers
and words of a page's own address are left out of its text, and the numbers before and behind them, since such pages
name their neighbours. Two pages with an equal rest say the same. A page of an archive has a text of its own besides.

This is coarser than the digest of a text and decides only whether many pages in a row brought nothing new; no page is
a copy of another by it.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final
from urllib.parse import unquote

LEAST_PIECE: Final = 2
"""Characters of a piece of an address below which it is not looked for: single digits stand everywhere."""
PIECES: Final = 12
"""Pieces of an address that are left out, the longest first."""
LONGEST_NUMBER: Final = 6
"""Digits of a number whose neighbours are left out too: a year, a month, the number of a page."""

_BLANK: Final = b"\x00"
_PIECE: Final = re.compile(r"[^\W_]+")


def novelty(text: str | bytes, url: str) -> int:
    """64 bits of a text, made by `content.text`, without what the page's address says."""
    plain = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    return int.from_bytes(blake2b(_without(plain, _pieces(url)), digest_size=8).digest(), "big")


def _pieces(url: str) -> list[bytes]:
    """What path and query say, longest first, so that none is cut by a shorter one."""
    place = url.partition("://")[2].partition("/")[2]
    found = {piece for piece in _PIECE.findall(unquote(place)) if len(piece) >= LEAST_PIECE}
    chosen = sorted(found, key=_longest_first)[:PIECES]
    if beside := [number for piece in chosen if piece.isdigit() for number in _neighbours(piece)]:
        chosen = sorted({*chosen, *beside}, key=_longest_first)
    return [piece.encode("utf-8", "replace").lower() for piece in chosen]


def _longest_first(piece: str) -> tuple[int, str]:
    return -len(piece), piece


def _neighbours(piece: str) -> list[str]:
    """The numbers before and behind one, as wide as it is."""
    if not (piece.isascii() and len(piece) <= LONGEST_NUMBER):
        return []
    beside = (str(int(piece) + step).zfill(len(piece)) for step in (-1, 1))
    return [number for number in beside if len(number) >= LEAST_PIECE and number[0] != "-"]


def _replaced(text: bytes, pieces: list[bytes]) -> bytes:
    """The text with a blank for each piece, one after the other."""
    # Letters beyond ASCII keep their case, as they do in the pieces: folding bytes takes a tenth of the time.
    plain = text.lower()
    for piece in pieces:
        plain = plain.replace(piece, _BLANK)
    return plain


try:
    from crawlspace.content._words import without as _without
except ImportError:
    _without = _replaced
