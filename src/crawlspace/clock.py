"""Time and chance, as objects that are made once at the root and handed down.

Nothing else in the package asks the system for the time or for randomness, so that a test can hold both.
Wall time is integer milliseconds since 1970 in UTC: what is stored. Monotonic time is seconds: what is waited.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Protocol


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> int:
        """Wall time, milliseconds since 1970 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait by this clock."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


Chance = random.Random
"""Randomness as an argument: jitter and ids take one of these, seeded in tests."""
