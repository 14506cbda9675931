"""Near-duplicates among many texts, by MinHash and locality-sensitive hashing, each pair then counted exactly.

A signature keeps the least shingle of each of 128 bins (one-permutation hashing: Li, Owen and Zhang, 2012); bins that
stay empty borrow from others (Shrivastava, "Optimal densification for fast and accurate minwise hashing", 2017).
Two texts agree in a place of their signatures as often as their Jaccard similarity says. Signatures are cut into
bands; texts with an equal band meet in a bucket, and only they are compared, on their shingles. All pairs are never
formed: in a bucket each text is compared with a limited number of its neighbours.

Texts are read once as they come, and those that meet are asked for again; of each, its bands and its key are kept,
about 200 bytes. A number of its `kin` keeps apart what may not be merged (`significant.kin`).
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Annotated, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct

from crawlspace.content.shingles import distinct, jaccard, shingles

PLACES: Final = 128
"""Numbers in a signature."""
MISSED: Final = 0.01
"""Pairs at the threshold that the bands may miss, as a part of all."""
TEXT_LIMIT: Final = 2_000_000
"""Characters of a text that are read."""
_SHINGLES_KEPT: Final = 100_000
"""Shingles of texts kept while their buckets are gone through, about 10 MB; one text's are always kept."""
_SPREAD: Final = 0x9E37_79B9_7F4A_7C15
_SPREAD_SHIFT: Final = 64 - PLACES.bit_length() + 1

K = TypeVar("K")


class MinHashSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When two texts count as near-duplicates."""

    threshold: Annotated[
        float,
        Meta(description="Part of all shingles (three words in a row) that near-duplicates share.", ge=0.5, le=1.0),
    ] = 0.9
    neighbours: Annotated[
        int, Meta(description="Texts of a bucket that each text in it is compared with.", ge=1, le=1000)
    ] = 32


class Document(NamedTuple, Generic[K]):
    """A text, what it is called, and the number of those it may be merged with."""

    key: K
    text: str
    kin: int = 0


class Pair(NamedTuple, Generic[K]):
    """Two texts that are near-duplicates, and the part of their shingles that both have."""

    one: K
    other: K
    similarity: float


def signature(of: Iterable[int]) -> array[int]:
    """The 128 numbers of a set of shingles; none when the set is empty."""
    least = {shingle % PLACES: shingle for shingle in sorted(of, reverse=True)}
    return array("Q", [least[_source(place, least)] for place in range(PLACES)] if least else ())


def _source(place: int, least: dict[int, int]) -> int:
    """The place itself, or the one it borrows from: the same for any two texts where both have that one filled."""
    source, tries = place, place * PLACES
    while source not in least:
        # Multiples of the golden ratio are spread evenly: every place comes up.
        tries += 1
        source = tries * _SPREAD >> _SPREAD_SHIFT & PLACES - 1
    return source


def rows_of(threshold: float) -> int:
    """Places in a band: as many as still miss no more than `MISSED` of the pairs at the threshold."""
    fitting = [rows for rows in (2, 4, 8, 16, 32, 64) if (1 - threshold**rows) ** (PLACES // rows) <= MISSED]
    return max(fitting)


def band_keys(signature: array[int], rows: int, kin: int = 0) -> tuple[int, ...]:
    """The keys of 64 bits under which a text is kept; texts of another kin share none."""
    numbers = memoryview(signature)
    salt = kin.to_bytes(8, "big")
    return tuple(
        int.from_bytes(
            blake2b(numbers[place : place + rows], digest_size=8, salt=salt, person=bytes([place])).digest(), "big"
        )
        for place in range(0, len(numbers), rows)
    )


class NearDuplicates(Generic[K]):
    """Texts of which the near-duplicates are wanted: add them all, then ask.

    `text_of` gives the text of a key again, the same as was added.
    """

    def __init__(self, text_of: Callable[[K], str], settings: MinHashSettings | None = None) -> None:
        self._settings = settings or MinHashSettings()
        self._rows = rows_of(self._settings.threshold)
        self._keys: list[K] = []
        self._same = array("Q")
        self._bands = [array("Q") for _ in range(PLACES // self._rows)]
        self._texts = _Texts(text_of)

    def add(self, document: Document[K]) -> None:
        """Read one text. One without words is no duplicate of anything and is not kept."""
        found = sorted(_shingles(document.text))
        if not found:
            return
        self._keys.append(document.key)
        self._same.append(int.from_bytes(blake2b(array("Q", found), digest_size=8).digest(), "big"))
        for band, key in zip(self._bands, band_keys(signature(found), self._rows, document.kin), strict=True):
            band.append(key)

    def pairs(self) -> Iterator[Pair[K]]:
        """Pairs at the threshold or above. Each is given once."""
        for one, other in self._meetings():
            similarity = self._similarity(one, other)
            if similarity >= self._settings.threshold:
                yield Pair(self._keys[one], self._keys[other], similarity)

    def groups(self) -> Iterator[tuple[K, ...]]:
        """Groups of two or more, members and groups in the order in which they came.

        Each member is a near-duplicate of another member, not of all: a row of small changes is one group.
        """
        roots = array("Q", range(len(self._keys)))
        for one, other in self._meetings():
            first, second = sorted((_root(roots, one), _root(roots, other)))
            if first != second and self._similarity(one, other) >= self._settings.threshold:
                roots[second] = first
        members: dict[int, list[K]] = {}
        for number, key in enumerate(self._keys):
            root = _root(roots, number)
            if root != number:
                members.setdefault(root, [self._keys[root]]).append(key)
        yield from (tuple(members[root]) for root in sorted(members))

    def _meetings(self) -> Iterator[tuple[int, int]]:
        """Numbers of texts that share a band, each pair in the first band that it shares."""
        for number, band in enumerate(self._bands):
            for bucket in _buckets(band, self._same):
                for place, one in enumerate(bucket):
                    near = bucket[max(place - self._settings.neighbours, 0) : place]
                    yield from (
                        (min(one, other), max(one, other)) for other in near if not self._met(one, other, number)
                    )

    def _met(self, one: int, other: int, before: int) -> bool:
        return any(band[one] == band[other] for band in self._bands[:before])

    def _similarity(self, one: int, other: int) -> float:
        if self._same[one] == self._same[other]:
            return 1.0
        return jaccard(self._texts.shingles(self._keys[one]), self._texts.shingles(self._keys[other]))


def _buckets(band: array[int], same: array[int]) -> Iterator[list[int]]:
    """Runs of two or more numbers with one key; those with equal shingles stand together."""
    bucket: list[int] = []
    for number in sorted(range(len(band)), key=lambda number: (band[number], same[number])):
        if bucket and band[bucket[0]] != band[number]:
            yield from [bucket] if len(bucket) > 1 else []
            bucket = []
        bucket.append(number)
    yield from [bucket] if len(bucket) > 1 else []


def _root(roots: array[int], number: int) -> int:
    while roots[number] != number:
        roots[number] = roots[roots[number]]
        number = roots[number]
    return number


def _shingles(text: str) -> frozenset[int]:
    return distinct(shingles(text[:TEXT_LIMIT]))


class _Texts(Generic[K]):
    """Shingles of the texts asked for last."""

    def __init__(self, text_of: Callable[[K], str]) -> None:
        self._text_of = text_of
        self._kept: OrderedDict[K, frozenset[int]] = OrderedDict()
        self._size = 0

    def shingles(self, key: K) -> frozenset[int]:
        found = self._kept.get(key)
        if found is None:
            found = _shingles(self._text_of(key))
            self._kept[key] = found
            self._size += len(found)
        self._kept.move_to_end(key)
        while self._size > _SHINGLES_KEPT and len(self._kept) > 1:
            self._size -= len(self._kept.popitem(last=False)[1])
        return found
