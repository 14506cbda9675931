"""The table behind the set in memory: open addressing in buckets of eight keys, packed, without pointers.

A key's home is the bucket its hash points to; a full bucket passes it on to the next. Keys are never taken out, so
all buckets from a key's home to its own are full, and the first bucket with room ends a search. Homes rise with the
hash: the table is roughly sorted, which is why it can grow in place by a quarter, from its end to its beginning,
and needs no second table meanwhile.

What is stored is the hash, a bijection of the key, so no key is lost or invented. The multipliers are secret and
odd: nobody outside can choose keys that all want one home. A stored first word of 0 means an empty slot; the few
keys that hash to it are kept aside.

This module is plain Python and complete; `vectors` does the same work on the same memory, many keys at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

SLOTS: Final = 8
"""Keys in a bucket: with one word each, a line of the processor's cache."""

_MASK: Final = (1 << 64) - 1
_FIRST_BUCKETS: Final = 64
_FULL_PERCENT: Final = 80
"""Of the slots, before the table grows: half of all searches then end in the first bucket, 99 % within twelve."""
_GROWTH_PERCENT: Final = 125
"""At worst 64 % of the slots are used: 12.5 bytes for a key of 8, 25 for one of 16."""
_PIECE: Final = bytes(1 << 16)
"""Memory is asked for in pieces, so that zeros to copy from cost none of note."""


class Hashed(NamedTuple):
    """A key as it is stored. `second` is 0 for keys of 8 bytes."""

    first: int
    second: int


class Multipliers(NamedTuple):
    """The two odd numbers of 64 bits that make hashes of keys."""

    first: int
    second: int


class Table:
    """Hashes of keys of one length. Not safe from several threads at once."""

    __slots__ = ("aside", "buckets", "count", "first", "multipliers", "second")

    def __init__(self, key_bytes: int, multipliers: Multipliers) -> None:
        self.multipliers = multipliers
        self.buckets = _FIRST_BUCKETS
        self.count = 0
        """Keys in the slots; those kept aside are not among them."""
        self.aside: set[Hashed] = set()
        self.first = array("Q", bytes(8 * SLOTS * _FIRST_BUCKETS))
        self.second = array("Q", bytes(8 * SLOTS * _FIRST_BUCKETS)) if key_bytes == 16 else None

    def __len__(self) -> int:
        return self.count + len(self.aside)

    def hashed(self, first: int, last: int) -> Hashed:
        """The hash of a key whose words these are."""
        if self.second is None:
            return Hashed(first * self.multipliers.first & _MASK, 0)
        return Hashed((first + last * self.multipliers.second) * self.multipliers.first & _MASK, last)

    def holds(self, key: Hashed) -> bool:
        """Whether the key is there."""
        return self._search(key) is None if key.first else key in self.aside

    def add(self, key: Hashed) -> bool:
        """Put the key in; False when it was there. There must be room for it."""
        if key.first == 0:
            known = key in self.aside
            self.aside.add(key)
            return not known
        slot = self._search(key)
        if slot is None:
            return False
        self._write(slot, key)
        self.count += 1
        return True

    def has_room_for(self, keys: int) -> bool:
        """Whether so many keys can be added before the table has to grow."""
        return (self.count + keys) * 100 <= self.buckets * SLOTS * _FULL_PERCENT

    def lengthen(self) -> None:
        """Add a quarter of empty buckets. Until every key has been put where it belongs now, nothing is found."""
        buckets = self.buckets * _GROWTH_PERCENT // 100
        missing = 8 * SLOTS * (buckets - self.buckets)
        for column in (self.first, self.second):
            if column is not None:
                for start in range(0, missing, len(_PIECE)):
                    column.frombytes(_PIECE[: missing - start])
        self.buckets = buckets

    def grow(self) -> None:
        """Make the table longer by a quarter.

        From the last bucket to the first, keys leave their old place for one at or behind it. Keys that would come
        to lie before it, or beyond the end, wait until all old places are empty.
        """
        old = self.buckets
        self.lengthen()
        late: list[Hashed] = []
        for bucket in reversed(range(old)):
            for key in list(self._take_out(bucket)):
                slot = self._room(key, bucket)
                if slot is None:
                    late.append(key)
                else:
                    self._write(slot, key)
        for key in late:
            slot = self._search(key)
            assert slot is not None
            self._write(slot, key)

    def _home(self, key: Hashed) -> int:
        return (key.first >> 32) * self.buckets >> 32

    def _search(self, key: Hashed) -> int | None:
        """The empty slot where the key belongs; None when it is there already."""
        first, second, buckets = self.first, self.second, self.buckets
        bucket = self._home(key)
        while True:
            for slot in range(SLOTS * bucket, SLOTS * (bucket + 1)):
                word = first[slot]
                if word == 0:
                    return slot
                if word == key.first and (second is None or second[slot] == key.second):
                    return None
            bucket = (bucket + 1) % buckets

    def _room(self, key: Hashed, earliest: int) -> int | None:
        """The empty slot for a key that is not there; None when it would lie before `earliest` or beyond the end."""
        home = self._home(key)
        if home < earliest:
            return None
        try:
            return self.first.index(0, SLOTS * home)
        except ValueError:
            return None

    def _write(self, slot: int, key: Hashed) -> None:
        self.first[slot] = key.first
        if self.second is not None:
            self.second[slot] = key.second

    def _take_out(self, bucket: int) -> Iterator[Hashed]:
        for slot in range(SLOTS * bucket, SLOTS * (bucket + 1)):
            if self.first[slot]:
                yield Hashed(self.first[slot], 0 if self.second is None else self.second[slot])
                self._write(slot, Hashed(0, 0))
