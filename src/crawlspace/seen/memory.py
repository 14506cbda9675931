"""The seen-set in memory: packed keys, 10 to 12.5 bytes for one of 8 and twice that for one of 16.

With numpy a batch costs a fraction of a microsecond a key. Without it, or for keys that come one at a time, plain
Python does the same on the same memory and takes some microseconds.
"""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from threading import Lock

from crawlspace.seen.keys import Keys, checked, checked_size, end_to_end, words
from crawlspace.seen.table import Multipliers, Table

_ONE_BY_ONE = 32
"""Batches below this are quicker in plain Python."""


class MemorySeenSet:
    """A `SeenSet` that lives as long as its process.

    Grows by a quarter when it is 80 % full, in place. The call that makes it grow takes longer: about a tenth of a
    second for each million keys with numpy, some seconds without.
    """

    def __init__(self, key_bytes: int = 16) -> None:
        self._key_bytes = checked_size(key_bytes)
        # Odd, so that multiplying loses nothing; secret, so that no page can name URLs that slow the table down.
        self._table = Table(key_bytes, Multipliers(secrets.randbits(64) | 1, secrets.randbits(64) | 1))
        self._lock = Lock()
        self._has_numpy = find_spec("numpy") is not None

    @property
    def key_bytes(self) -> int:
        """Length of its keys: 8 or 16 bytes."""
        return self._key_bytes

    def add_if_new(self, key: bytes) -> bool:
        """Add a key; True when it was not there. Raises `UsageError` for a key of another length."""
        first, last = words(checked(key, self._key_bytes))
        with self._lock:
            return self._add(first, last)

    def add_many(self, keys: Keys) -> list[bool]:
        """Add keys; one answer each, in order. Of equal keys in one call the first alone is new.

        Raises `UsageError` and adds nothing when one key has another length.
        """
        packed = end_to_end(keys, self._key_bytes)
        with self._lock:
            if self._has_numpy and len(packed) >= _ONE_BY_ONE * self._key_bytes:
                from crawlspace.seen import vectors

                return vectors.add_many(self._table, packed)
            size = self._key_bytes
            return [self._add(*words(packed[at : at + size])) for at in range(0, len(packed), size)]

    def __contains__(self, key: bytes) -> bool:
        """Whether a key is there, without adding it."""
        first, last = words(checked(key, self._key_bytes))
        with self._lock:
            return self._table.holds(self._table.hashed(first, last))

    def __len__(self) -> int:
        """How many keys are there."""
        return len(self._table)

    def _add(self, first: int, last: int) -> bool:
        table = self._table
        added = table.add(table.hashed(first, last))
        if not table.has_room_for(1):
            self._grow()
        return added

    def _grow(self) -> None:
        if self._has_numpy:
            from crawlspace.seen import vectors

            vectors.grow(self._table)
        else:
            self._table.grow()
