"""The embedded frontier keeps the contract of learned rules."""

from __future__ import annotations

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.learned_contract import LearnedContract


class TestSqlite(LearnedContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)
