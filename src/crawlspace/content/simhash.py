"""SimHash: 64 bits that differ in few places where two texts differ in few words; and an index that finds them.

A bit of the fingerprint is what most shingles of the text have in that place (Charikar, "Similarity estimation
techniques from rounding algorithms", 2002); repeats count each time. Fingerprints are stored and never change their
meaning.

Two fingerprints within a distance of d bits are equal in at least one of d + 1 bands, so that looking up the bands of
one finds all others (Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling", 2007). Nothing here
compares all pairs.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from crawlspace.content.shingles import NUMBERS, shingles

BITS: Final = 64
_ALL: Final = (1 << BITS) - 1
_BAND_SHIFT: Final = 32
"""The number of a band stands above its bits, of which there are 32 at most."""
BUCKET_LIMIT: Final = 8_192
"""Different fingerprints with one band in common that are kept: what a look-up may cost. Ten million evenly spread
ones have 150 in a bucket at distance 3."""


class SimHashSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When two SimHash fingerprints count as near."""

    distance: Annotated[
        int, Meta(description="Bits in which the fingerprints of near-duplicates may differ, of 64.", ge=1, le=7)
    ] = 3


def text_simhash(text: bytes) -> int:
    """The fingerprint of a text in UTF-8: by `_words.c` where it was compiled, which takes a quarter of the time."""
    return _of_text(text, NUMBERS)


def simhash(numbers: memoryview) -> int:
    """The fingerprint of a text's shingles. A text without words has 0."""
    counts = _column_counts(numbers)
    half = len(numbers) // 2
    more, equal = 0, _ALL
    for place in reversed(range(len(counts))):
        wanted = _ALL if half >> place & 1 else 0
        more |= equal & counts[place] & ~wanted
        equal &= ~(counts[place] ^ wanted)
    return more


def _column_counts(numbers: memoryview) -> list[int]:
    """How many shingles have each bit set, as binary numbers written downwards: place i holds all the 2**i digits.

    All columns are added at once, in long integers: a full adder takes three rows to one of sums and one of carries.
    """
    counts: list[int] = []
    rows = [(int.from_bytes(numbers.tobytes(), sys.byteorder), len(numbers))]
    while rows:
        block, height, carries = 0, 0, []
        for other, its_height in rows:
            block |= other << BITS * height
            height += its_height
        while height > 1:
            height = (height + 2) // 3
            bits = BITS * height
            low = (1 << bits) - 1
            first, second, third = block & low, block >> bits & low, block >> 2 * bits
            either = first ^ second
            block = either ^ third
            carries.append((first & second | either & third, height))
        counts.append(block)
        rows = carries
    return counts


def bands(value: int, distance: int) -> tuple[int, ...]:
    """The keys under which a store keeps a fingerprint: `distance` + 1 of them, one of which all near ones share.

    A key is the number of its band above the bits of the band, 35 bits in all, so that one table holds every band.
    `distance` is 1 to 7.
    """
    count = distance + 1
    edges = [BITS * band // count for band in range(count + 1)]
    return tuple(
        band << _BAND_SHIFT | value >> edges[band] & (1 << edges[band + 1] - edges[band]) - 1 for band in range(count)
    )


class Near(NamedTuple):
    """A fingerprint that is within the distance of the one asked for."""

    distance: int
    number: int
    """What it was added under."""


class BandedIndex:
    """Fingerprints of a crawl in memory, found by nearness. The first of equal ones stands for all.

    It takes eight bytes for each band of a fingerprint, four for its number, and 80 MB for the buckets themselves: 50
    bytes a page at distance 3 and ten million pages. Numbers are the caller's, 0 to 2**32 - 1.
    """

    def __init__(self, distance: int = SimHashSettings().distance, bucket_limit: int = BUCKET_LIMIT) -> None:
        self._distance = distance
        self._limit = bucket_limit
        self._values: dict[int, array[int]] = {}
        self._numbers: dict[int, array[int]] = {}
        """By the key of the first band, in the order of its values."""

    def near(self, value: int) -> list[Near]:
        """All that were added within the distance, nearest first, then by number."""
        found: set[int] = set()
        for key in bands(value, self._distance):
            bucket = self._values.get(key, ())
            found.update([other for other in bucket if (other ^ value).bit_count() <= self._distance])
        return sorted(Near((other ^ value).bit_count(), self._number(other)) for other in found)

    def add(self, value: int, number: int) -> None:
        """Make a fingerprint known. One that is there already keeps its first number.

        It is kept under every band whose bucket has room, and not at all where the first band's has none.
        """
        first, *others = bands(value, self._distance)
        values = self._values.setdefault(first, array("Q"))
        if len(values) >= self._limit or value in values:
            return
        values.append(value)
        self._numbers.setdefault(first, array("I")).append(number)
        for key in others:
            bucket = self._values.setdefault(key, array("Q"))
            if len(bucket) < self._limit:
                bucket.append(value)

    def _number(self, value: int) -> int:
        first = bands(value, self._distance)[0]
        return self._numbers[first][self._values[first].index(value)]


def _interpreted(text: bytes, _: Mapping[bytes, bytes]) -> int:
    return simhash(shingles(text))


try:
    from crawlspace.content._words import simhash as _of_text
except ImportError:
    _of_text = _interpreted
