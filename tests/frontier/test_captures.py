"""The embedded frontier knows where captures lie."""

from __future__ import annotations

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.captures_contract import CapturesContract
from crawlspace.testing.clock import ManualClock


class TestInMemory(CapturesContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)
