"""What happened, in order: the last events in words, a digest of all, and the invariants that were broken."""

from __future__ import annotations

import hashlib
from collections import deque

SHOWN = 50
"""Events that a failing seed prints."""


class Violation(Exception):
    """An invariant is broken; `name` is its name in the design, such as `I7`."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


class History:
    """All effects of one simulation. Equal digests mean equal histories.

    What comes after a violation is still counted, and no longer shown: the last events are those that led to it.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[str] = deque(maxlen=SHOWN)
        self.violations: list[Violation] = []
        self._digest = hashlib.blake2b(digest_size=8)

    def add(self, at: float, who: str, what: str) -> None:
        """One event, at a time in seconds."""
        self.count += 1
        line = f"{self.count:6d} {at:12.3f} {who:8} {what}"
        self._digest.update(line.encode())
        if not self.violations:
            self.last.append(line)

    def broken(self, name: str, what: str) -> None:
        """An invariant does not hold."""
        self.violations.append(Violation(name, what))

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()
