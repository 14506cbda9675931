"""A clock that stands still until a test moves it.

Tests give it to whatever waits; nobody sleeps. Wall and monotonic time move together unless `step` moves the wall
alone, as a machine's clock does when it is corrected.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools

START = 1_700_000_000_000
"""Some moment in November 2023, in milliseconds: far from zero, so that a forgotten unit shows."""


class ManualClock:
    """`crawlspace.clock.Clock` in the hands of a test."""

    def __init__(self, now: int = START) -> None:
        self._wall = now
        self._elapsed = 0
        self._order = itertools.count()
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []

    def now(self) -> int:
        return self._wall

    def monotonic(self) -> float:
        return self._elapsed / 1000

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has moved this far; zero or less only lets others run."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + round(seconds * 1000), next(self._order), wake))
        await wake

    def advance(self, ms: int) -> None:
        """Let `ms` milliseconds pass and wake all who waited for less."""
        if ms < 0:
            raise ValueError(f"time does not go back: {ms} ms")
        self._wall += ms
        self._elapsed += ms
        while self._sleepers and self._sleepers[0][0] <= self._elapsed:
            wake = heapq.heappop(self._sleepers)[2]
            if not wake.done():
                wake.set_result(None)

    def step(self, ms: int) -> None:
        """Correct the wall clock by `ms`, back or forth; nobody wakes."""
        self._wall += ms

    def next_wake(self) -> int | None:
        """Milliseconds until the first sleeper wakes; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return max(0, self._sleepers[0][0] - self._elapsed) if self._sleepers else None
