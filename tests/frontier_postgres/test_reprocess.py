"""The PostgreSQL frontier keeps the contract of what was read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_reprocess import ReprocessContract


class TestShared(ReprocessContract):
    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places()

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")
