"""Waiting for room on a full disk: told once when it begins and once when it is over, however many parts wait.

Nothing is given up meanwhile: who could not write, tries again, until there is room or the crawl is to stop.
"""

from __future__ import annotations

from crawlspace import events
from crawlspace.clock import Clock
from crawlspace.errors import DiskFull

SPACE_CHECK_SECONDS = 5.0


class Space:
    """Who waits for room. One for a run."""

    def __init__(self, clock: Clock, watch: events.Watcher) -> None:
        self._clock = clock
        self._watch = watch
        self._waiting: set[str] = set()
        self.stopping = False
        """Give up instead of waiting longer."""

    def is_short(self, who: str) -> bool:
        """Whether this part waits for room."""
        return who in self._waiting

    async def wait(self, who: str, full: DiskFull) -> None:
        """Some seconds, after which this part may try again; raises `full` when the crawl is to stop."""
        if not self._waiting:
            self._watch(events.Paused(str(full)))
        self._waiting.add(who)
        if not self.stopping:
            await self._clock.sleep(SPACE_CHECK_SECONDS)
        if self.stopping:
            raise full

    def found(self, who: str) -> None:
        """This part could write."""
        if who in self._waiting:
            self._waiting.remove(who)
            if not self._waiting:
                self._watch(events.Resumed())
