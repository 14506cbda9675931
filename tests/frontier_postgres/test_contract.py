"""The PostgreSQL frontier keeps the contract, whatever the number of its shards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.content_contract import ContentContract
from crawlspace.testing.frontier_contract import FrontierContract
from crawlspace.testing.frontier_contract_control import ControlContract


class TestSixteenShards(FrontierContract, ControlContract, ContentContract):
    shards = 16

    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places(self.shards)

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")
