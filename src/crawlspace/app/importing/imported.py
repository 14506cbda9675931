"""What became of an import."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

TOLD = 1000
"""Places that cannot be read and are named; the rest is counted."""


@dataclass(slots=True)
class Imported:
    """Counts of an import, and what could not be read."""

    captures: int = 0
    """Captures that are their URL's own now: nothing of these is fetched again."""
    visited: int = 0
    """URLs that were visited before and have no capture: they are known, and not fetched either."""
    queued: int = 0
    """URLs that are to be fetched."""
    known: int = 0
    """URLs of which the crawl knew all that there is to know."""
    passed: Counter[str] = field(default_factory=Counter)
    """What was passed over, by reason."""
    damaged: int = 0
    damages: list[str] = field(default_factory=list)
    """What could not be read, in words, no more than `TOLD`."""

    def lost(self, why: str) -> None:
        """Count something that cannot be read."""
        self.damaged += 1
        if len(self.damages) < TOLD:
            self.damages.append(why)
