"""The PostgreSQL frontier keeps the contract of visits beyond the first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import Story
from crawlspace.testing.recrawl_contract import RecrawlContract, wander


class TestSixteenShards(RecrawlContract):
    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places(16)

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")

    def play(self, story: Story, settings: FrontierSettings | None = None) -> None:
        """All numbers are those of the rows in the end."""

        async def audited(store: PostgresFrontier) -> None:
            await story(store)
            assert await store.audit() == []

        super().play(audited, settings)  # type: ignore[arg-type] # a story of this store

    @pytest.mark.parametrize("seed", range(2))
    def test_whatever_happens_every_number_is_that_of_the_rows(self, seed: int) -> None:
        self.play(lambda store: wander(store, seed, 80), FrontierSettings(revisits=True))
