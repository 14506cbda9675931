"""A worker that may stop itself for a while, past the end of its leases: run by `test_stopped.py`.

Leases, and all that is measured by them, are shortened. The worker stops, by SIGSTOP to itself, when it has read so
many pages and settled none of the last ones: whoever continues it, finds them in its hands.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.crawl import run_crawl
from crawlspace.engine import commit, crawl, sweep, visit
from crawlspace.engine.intake import Request
from crawlspace.engine.page import Page
from crawlspace.settings import load

LEASE_MS = 6_000
TIMEOUT_SECONDS = 3.0


def shorten() -> None:
    """A lease ends after a moment, and no request may go beyond its end."""
    crawl.LEASE_MS = LEASE_MS
    crawl.VISIT_MS = 2_000
    sweep.RENEW_SECONDS = 1.0
    visit.FENCE_SECONDS = 0.2
    commit.GROUP_SECONDS = 0.2


class Stops:
    """Stops this process once, at the page of this number; 0: never."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, _page: Page) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGSTOP)


async def seeded(place: CrawlDirectory, plan: Plan, seeds: list[str]) -> None:
    """Begin the crawl, and fetch nothing."""
    async with open_crawl(place, plan) as opened:
        await opened.inject(map(Request, seeds))


def main(directory: str, config: str, address: str, stop_at: int, seeds: list[str]) -> int:
    shorten()
    settings = load(Path(config), {}, (f"fetch.timeout={TIMEOUT_SECONDS}",))
    place = CrawlDirectory(Path(directory))
    plan = Plan(settings, handler=Stops(stop_at), frontier=address)
    if seeds:
        asyncio.run(seeded(place, plan, seeds))
        return 0
    return run_crawl(place, plan, (), quiet=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], int(sys.argv[4]), sys.argv[5:]))
