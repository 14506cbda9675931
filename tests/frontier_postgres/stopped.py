"""A worker that may stop itself for a while, past the end of its leases: run by `test_stopped.py`.

Leases, and all that is measured by them, are shortened. The worker stops, by SIGSTOP to itself, when it has read so
many pages and settled none of the last ones, or within the transaction that settles so many: whoever continues it,
finds them in its hands.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.crawl import run_crawl
from crawlspace.engine import commit, crawl, sweep, visit
from crawlspace.engine.intake import Request
from crawlspace.engine.page import Page
from crawlspace.frontier.postgres import sessions, store
from crawlspace.frontier.postgres.transaction import Transaction
from crawlspace.settings import load
from crawlspace.types import Answer, Settlement

LEASE_MS = 4_000
TIMEOUT_SECONDS = 2.0
SILENT_MS = 1_000


def shorten() -> None:
    """A lease ends after a moment, and no request may go beyond its end; a session that says nothing ends sooner."""
    crawl.LEASE_MS = LEASE_MS
    crawl.VISIT_MS = 1_500
    sweep.RENEW_SECONDS = 0.5
    visit.FENCE_SECONDS = 0.2
    commit.GROUP_SECONDS = 0.2
    sessions.SILENT_MS = SILENT_MS


class Stops:
    """Stops this process once, at the page of this number; 0: never."""

    def __init__(self, at: int) -> None:
        self._left = at

    def __call__(self, _page: Page) -> None:
        self.count(1)

    def count(self, pages: int) -> None:
        """Stop if one of so many more pages is the one."""
        due = 0 < self._left <= pages
        self._left -= pages
        if due:
            os.kill(os.getpid(), signal.SIGSTOP)

    def settle_it(self) -> Callable[[Page], None]:
        """Stop within the transaction that settles the page, behind all that it holds; the handler for the rest."""
        declare = store.declare

        async def stopping(
            transaction: Transaction, settlements: Sequence[Settlement], answers: Sequence[Answer]
        ) -> None:
            await declare(transaction, settlements, answers)
            self.count(len(settlements))

        store.declare = stopping
        return Stops(0)


async def seeded(place: CrawlDirectory, plan: Plan, seeds: list[str]) -> None:
    """Begin the crawl, and fetch nothing."""
    async with open_crawl(place, plan) as opened:
        await opened.inject(map(Request, seeds))


def main(directory: str, config: str, address: str, stop: str, seeds: list[str]) -> int:
    shorten()
    settings = load(Path(config), {}, (f"fetch.timeout={TIMEOUT_SECONDS}",))
    place = CrawlDirectory(Path(directory))
    where, _, at = stop.partition(" ")
    stops = Stops(int(at))
    plan = Plan(settings, handler=stops.settle_it() if where == "transaction" else stops, frontier=address)
    if seeds:
        asyncio.run(seeded(place, plan, seeds))
        return 0
    return run_crawl(place, plan, (), quiet=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5], sys.argv[5:]))
