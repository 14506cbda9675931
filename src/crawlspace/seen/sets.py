"""What every seen-set can do, wherever it keeps its keys."""

from __future__ import annotations

from typing import Protocol

from crawlspace.seen.keys import Keys


class SeenSet(Protocol):
    """Which keys were added before. Exact: nothing is forgotten, and nothing is taken for known that is not.

    Every method may be called from any thread; of all who add one key, exactly one is told that it was new.
    """

    @property
    def key_bytes(self) -> int:
        """Length of its keys: 8 or 16 bytes."""
        ...

    def add_if_new(self, key: bytes) -> bool:
        """Add a key; True when it was not there. Raises `UsageError` for a key of another length."""
        ...

    def add_many(self, keys: Keys) -> list[bool]:
        """Add keys; one answer each, in order. Of equal keys in one call the first alone is new.

        Raises `UsageError` and adds nothing when one key has another length.
        """
        ...

    def __contains__(self, key: bytes) -> bool:
        """Whether a key is there, without adding it."""
        ...

    def __len__(self) -> int:
        """How many keys are there."""
        ...
