"""The one browser of a process: started when first wanted, replaced when it has ended or has served long enough."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from crawlspace.fetch.rendering.chromium import Chromium, program
from crawlspace.fetch.rendering.settings import BrowserSettings


class House:
    """Keeps the browser for all who open pages in it; it ends when the last of them has left."""

    def __init__(self, settings: BrowserSettings) -> None:
        self.settings = settings
        self.room = asyncio.Semaphore(settings.pages)
        """Places for open pages."""
        self._guests = 0
        self._starting = asyncio.Lock()
        self._now: Chromium | None = None
        self._old: set[Chromium] = set()

    @property
    def browser(self) -> Chromium | None:
        """The browser, where one was started."""
        return self._now

    def enter(self) -> None:
        """Somebody will open pages. Raises `ConfigError` where there is no browser."""
        self.settings = replace(self.settings, executable=program(self.settings))
        self._guests += 1

    async def leave(self) -> None:
        """Somebody opens none any more."""
        self._guests -= 1
        if self._guests:
            return
        for each in (*self._old, *([self._now] if self._now else [])):
            await each.stop()
        self._old.clear()
        self._now = None

    async def running(self) -> Chromium:
        """A browser that works, and has not worked for too long; raises `Gone` when it does not start."""
        async with self._starting:
            now = self._now
            if now is not None and now.is_alive and now.served < self.settings.renew_after:
                return now
            if now is not None:
                self._old.add(now)
                self._now = None
            await self._tidy()
            self._now = await Chromium.start(self.settings)
            return self._now

    async def _tidy(self) -> None:
        """End old browsers in which no page is open."""
        for each in [old for old in self._old if old.open == 0 or not old.is_alive]:
            self._old.discard(each)
            await each.stop()
