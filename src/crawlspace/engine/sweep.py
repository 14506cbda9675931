"""Keeping leases alive while they are used, and taking back those that nobody renews."""

from __future__ import annotations

from collections.abc import Callable, Collection

from crawlspace.clock import Clock
from crawlspace.engine.visit import Visit
from crawlspace.errors import DiskFull
from crawlspace.ports import Frontier

RENEW_SECONDS = 30.0


class Sweeper:
    """Renews the leases of the visits under way, and returns expired ones of workers that are gone."""

    def __init__(
        self, frontier: Frontier, clock: Clock, ttl_ms: int, visits: Callable[[], Collection[Visit]]
    ) -> None:
        self._frontier = frontier
        self._clock = clock
        self._ttl_ms = ttl_ms
        self._visits = visits

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            await self.once()

    async def once(self) -> int:
        """One round; how many leases were taken back. A full disk makes it a round for nothing."""
        try:
            return await self._round()
        except DiskFull:
            return 0

    async def _round(self) -> int:
        """Renew first, so that a slow round never takes back what is in use."""
        visits = [visit for visit in self._visits() if not visit.lost]
        if visits:
            asked = self._clock.monotonic()
            kept = await self._frontier.renew([visit.lease.token for visit in visits], self._ttl_ms)
            for visit, renewed in zip(visits, kept, strict=True):
                if renewed:
                    visit.fence = asked + self._ttl_ms / 1000
                else:
                    visit.lost = True
        return await self._frontier.reclaim()
