"""The PostgreSQL frontier keeps the contract of learned rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.learned_contract import LearnedContract


class TestPostgres(LearnedContract):
    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places(16)

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")
