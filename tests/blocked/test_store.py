"""The embedded frontier keeps the contract of routes."""

from __future__ import annotations

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.routes_contract import RoutesContract


class TestSqlite(RoutesContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)
