"""The shingles of a text: every three words that follow each other, as numbers of 64 bits.

What SimHash and MinHash are made of, and what Jaccard similarity is counted on. The numbers go into fingerprints
that are stored and never change their meaning: no seed of the process and no library's version goes into them.

A word is a run of letters, digits and `_` with case folded; where a script is written without spaces, each character
is a word. A word has three numbers, one for each place in a shingle, cut from one BLAKE2b (RFC 7693), and a shingle
is the exclusive or of its words' numbers for their places. That is simple tabulation hashing with words for
characters: three-independent, and its minima behave as a random function's (Patrascu and Thorup, "The power of simple
tabulation hashing", 2012). It takes one look-up a word and a few operations on one long integer, where hashing each
shingle by itself would take a call each.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

WIDTH: Final = 3
"""Words in a shingle."""
LANE: Final = 8
"""Bytes of a shingle's number."""
_WORD_BYTES: Final = WIDTH * LANE
_RUNS_KEPT: Final = 65_536
"""Runs of text whose numbers are remembered, about 10 MB, 50 at most; when it is full the memory starts anew."""
_RUN_LIMIT: Final = 64
"""Bytes of a run that is remembered: longer ones hardly come again."""

_FOLDED: Final = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == 0x5F else 0x20 for byte in range(0x80)
) + bytes(range(0x80, 0x100))
"""ASCII in lower case with a space for all that ends a word; other bytes as they are."""
_UNSPACED: Final = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class _Numbers(dict[bytes, bytes]):
    """The numbers of the words in each run between ASCII breaks: a run with other breaks can hold several, or none.

    It remembers what a pure function gives, and may forget any of it at any time.
    """

    def __missing__(self, run: bytes) -> bytes:
        words = [run] if run.isascii() else [word.encode() for word in _WORD.findall(run.decode().casefold())]
        numbers = b"".join(blake2b(word, digest_size=_WORD_BYTES).digest() for word in words)
        if len(run) <= _RUN_LIMIT:
            if len(self) >= _RUNS_KEPT:
                self.clear()
            self[run] = numbers
        return numbers


NUMBERS: Final = _Numbers()
"""The numbers of the words in a run of bytes that `_FOLDED` leaves."""


def shingles(text: str | bytes) -> memoryview:
    """The shingles of a text in order, repeats included: a view of native 64-bit numbers.

    One or two words make one shingle; a text without words has none. Lone surrogates count as breaks; bytes are
    UTF-8.
    """
    plain = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    numbers = b"".join(map(NUMBERS.__getitem__, plain.translate(_FOLDED).split()))
    count = len(numbers) // _WORD_BYTES
    lanes = int.from_bytes(numbers, "little")
    # A word's second number lies one word and one lane above the first number of the word before: shifted down by
    # both, it lies upon that. The two upper lanes of each word then hold nothing of meaning and are stepped over.
    step = 8 * (_WORD_BYTES + LANE)
    mixed = lanes ^ (lanes >> step) ^ (lanes >> 2 * step)
    view = memoryview(mixed.to_bytes(len(numbers), "little")).cast("Q")
    return view[: (max(count - WIDTH, 0) + 1) * WIDTH : WIDTH]


def distinct(view: memoryview) -> frozenset[int]:
    """The shingles of a text as a set: what Jaccard similarity is counted on."""
    return frozenset(view.tolist())


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Shared shingles as a part of all, 0 to 1. Two texts without words have nothing in common: 0."""
    together = len(one & other)
    every = len(one) + len(other) - together
    return together / every if every else 0.0
