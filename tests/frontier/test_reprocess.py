"""The SQLite frontier lets stored URLs be done when their captures were read again."""

from __future__ import annotations

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_reprocess import ReprocessContract


class TestEmbedded(ReprocessContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock())
