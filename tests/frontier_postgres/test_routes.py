"""The PostgreSQL frontier keeps the contract of routes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.routes_contract import RoutesContract


class TestPostgres(RoutesContract):
    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places(16)

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")
