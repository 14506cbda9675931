"""Both frontiers keep the contract of visits beyond the first."""

from __future__ import annotations

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.recrawl_contract import RecrawlContract


class TestSqlite(RecrawlContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)
