"""The embedded frontier keeps the contract, in memory and in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.content_contract import ContentContract
from crawlspace.testing.frontier_contract import FrontierContract
from crawlspace.testing.frontier_contract_control import ControlContract


class TestInMemory(FrontierContract, ControlContract, ContentContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)


class TestInAFileOnItsOwnThread(FrontierContract, ControlContract, ContentContract):
    @pytest.fixture(autouse=True)
    def _directory(self, tmp_path: Path) -> None:
        self.path = tmp_path / "frontier.db"

    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(self.path, settings, ManualClock())
