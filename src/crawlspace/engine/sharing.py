"""A worker's part of the hosts where several crawl together: it takes no more, and gives back what it has above it.

Who comes first would otherwise hold all hosts of a crawl that has few, and the others would have nothing to do. What
is given back is a visit's rest: the request under way is finished, and the host's clock goes with its row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from crawlspace.clock import Clock
from crawlspace.engine.visit import Visit
from crawlspace.errors import DiskFull
from crawlspace.policy.sharing import part, surplus
from crawlspace.ports import Company
from crawlspace.types import Crew

MEETING_SECONDS = 0.5
IDLE_SECONDS = 0.2
"""Between two looks of a worker that has no host."""
ALONE_SECONDS = 1.0
"""Between two looks for others while there are none."""
FIRST_SECONDS = 0.1
"""After the first look: workers that are started together come one after the other. Then twice as long each time."""
WORD_MS = 5_000
"""Who has not been heard of for so long takes no hosts."""

_ALONE = Crew((), 0, 0)


@dataclass(slots=True)
class Sharing:
    """One for a run."""

    company: Company
    worker: int
    most: int
    """Hosts that this worker visits at once."""
    clock: Clock
    visits: Callable[[], Collection[Visit]]
    """Visits under way."""
    takes: Callable[[], bool]
    """Whether it takes new ones, as far as there are hosts."""
    progress: asyncio.Event
    """Set when there may be something to lease."""
    part: int | None = None
    """How many of the hosts without a pace group are for this worker; None while there is nobody else."""
    _crew: Crew = _ALONE

    async def run(self) -> None:
        """Until cancelled."""
        wait = FIRST_SECONDS
        while True:
            await self.clock.sleep(min(wait, self._pause()))
            await self.meet()
            wait = min(2 * wait, ALONE_SECONDS)

    def _pause(self) -> float:
        if self.part is None:
            return ALONE_SECONDS
        return MEETING_SECONDS if self.visits() else IDLE_SECONDS

    async def meet(self) -> None:
        """Hear what others do, and give back what is above our part. A full disk makes it a meeting for nothing."""
        try:
            crew = await self.company.meet(self.worker, self.most if self.takes() else 0, WORD_MS)
        except DiskFull:
            return
        before, self._crew = self._crew, crew
        self.part = part(self.most, crew) if crew.others else None
        if self.part is None:
            if before.others:
                self.progress.set()
            return
        held = self._lone()
        held.sort(key=lambda visit: visit.unspent, reverse=True)
        for visit in held[: surplus(len(held), self.part, crew)]:
            visit.give_back()
        something = crew.free and not before.free and len(held) < self.part
        if something or (before.hosts and not crew.hosts):
            # For this worker; or nothing for anybody any more, and the crawl may have ended.
            self.progress.set()

    def left(self) -> int | None:
        """How many hosts without a pace group it may take now; None: any number."""
        return None if self.part is None else max(0, self.part - len(self._lone()))

    def _lone(self) -> list[Visit]:
        return [visit for visit in self.visits() if visit.lease.host.group is None and not visit.is_over]
