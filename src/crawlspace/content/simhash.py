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
from functools import lru_cache
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

BITS: Final = 64
_ALL: Final = (1 << BITS) - 1
_BAND_SHIFT: Final = 32
"""The number of a band stands above its bits, of which there are 32 at most."""
_STRIDE: Final = 256
"""Fingerprints that are compared at once."""
_BUCKET_LIMIT: Final = 8_192
"""Different fingerprints with one band in common that are kept: what a look-up may cost. Ten million evenly spread
ones have 150 in a bucket at distance 3."""


class SimHashSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When two SimHash fingerprints count as near."""

    distance: Annotated[
        int, Meta(description="Bits in which the fingerprints of near-duplicates may differ, of 64.", ge=1, le=7)
    ] = 3


def simhash(shingles: memoryview) -> int:
    """The fingerprint of a text's shingles. A text without words has 0."""
    counts = _column_counts(shingles)
    half = len(shingles) // 2
    more, equal = 0, _ALL
    for place in reversed(range(len(counts))):
        wanted = _ALL if half >> place & 1 else 0
        more |= equal & counts[place] & ~wanted
        equal &= ~(counts[place] ^ wanted)
    return more


def _column_counts(shingles: memoryview) -> list[int]:
    """How many shingles have each bit set, as binary numbers written downwards: place i holds all the 2**i digits.

    All columns are added at once, in long integers: a full adder takes three rows to one of sums and one of carries.
    """
    counts: list[int] = []
    rows = [(int.from_bytes(shingles.tobytes(), sys.byteorder), len(shingles))]
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


class _Bucket:
    """The fingerprints with one band in common, and under which numbers they were added."""

    __slots__ = ("numbers", "values")

    def __init__(self) -> None:
        self.values = array("Q")
        self.numbers = array("I")

    def within(self, value: int, distance: int) -> list[Near]:
        found: list[Near] = []
        for start in range(0, len(self.values), _STRIDE):
            part = self.values[start : start + _STRIDE]
            lanes = _lanes(len(part))
            far = lanes.far(int.from_bytes(part.tobytes(), sys.byteorder) ^ value * lanes.ones, distance)
            if far != lanes.tops:
                found += [
                    Near((other ^ value).bit_count(), self.numbers[start + place])
                    for place, other in enumerate(part)
                    if not far >> BITS * place & 0x80
                ]
        return found


class _Lanes:
    """Constants for counting the bits of up to `_STRIDE` fingerprints at once, side by side in one long integer."""

    __slots__ = ("fours", "ones", "pairs", "quads", "sums", "tops")

    def __init__(self, count: int) -> None:
        self.ones = sum(1 << BITS * lane for lane in range(count))
        self.pairs = 0x5555_5555_5555_5555 * self.ones
        self.quads = 0x3333_3333_3333_3333 * self.ones
        self.fours = 0x0F0F_0F0F_0F0F_0F0F * self.ones
        self.sums = 0x7F * self.ones
        self.tops = 0x80 * self.ones

    def far(self, differences: int, distance: int) -> int:
        """Bit 7 of each lane: set where more than `distance` of the lane's bits are."""
        counted = differences - (differences >> 1 & self.pairs)
        counted = (counted & self.quads) + (counted >> 2 & self.quads)
        counted = counted + (counted >> 4) & self.fours
        counted += counted >> 8
        counted += counted >> 16
        counted += counted >> 32
        return (counted & self.sums) + (0x7F - distance) * self.ones & self.tops


@lru_cache(maxsize=_STRIDE)
def _lanes(count: int) -> _Lanes:
    return _Lanes(count)


class BandedIndex:
    """Fingerprints of a crawl in memory, found by nearness. The first of equal ones stands for all.

    It takes 12 bytes for each band of a fingerprint and some for the buckets: under 60 a page at distance 3.
    Numbers are the caller's, 0 to 2**32 - 1.
    """

    def __init__(self, distance: int = SimHashSettings().distance) -> None:
        self._distance = distance
        self._buckets: dict[int, _Bucket] = {}

    def near(self, value: int) -> list[Near]:
        """All that were added within the distance, nearest first, older before younger."""
        found: set[Near] = set()
        for key in bands(value, self._distance):
            bucket = self._buckets.get(key)
            if bucket is not None:
                found.update(bucket.within(value, self._distance))
        return sorted(found)

    def add(self, value: int, number: int) -> None:
        """Make a fingerprint known. One that is there already stays under its first number.

        A bucket that is full takes no more: the fingerprint is then found by its other bands only.
        """
        keys = bands(value, self._distance)
        first = self._buckets.get(keys[0])
        if first is not None and value in first.values:
            return
        for key in keys:
            bucket = self._buckets.setdefault(key, _Bucket())
            if len(bucket.values) < _BUCKET_LIMIT:
                bucket.values.append(value)
                bucket.numbers.append(number)
