"""The PostgreSQL frontier keeps the contract of visits beyond the first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawlspace.app.reparsing.sightings import unchanged
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.postgres.export import open_snapshot
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import T0, Story
from crawlspace.testing.recrawl_contract import WEEK, RecrawlContract, wander


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

    def test_a_page_that_is_as_it_was_keeps_its_capture_and_what_it_is_a_copy_of(self) -> None:
        """A look at the store from outside tells both visits with the one capture."""
        super().test_a_page_that_is_as_it_was_keeps_its_capture_and_what_it_is_a_copy_of()
        with open_snapshot(self.place, ["contract"]) as snapshot:
            told = list(snapshot.visited_again())
        assert [(each.id, each.generation) for each in told] == [(1, 0), (1, 1), (2, 0), (2, 1)]
        assert [each.at for each in told] == [T0, T0 + WEEK] * 2
        assert {each.pointer for each in told[:2]} == {told[0].pointer}
        assert list(unchanged(told)) == [told[1], told[3]]

    @pytest.mark.parametrize("seed", range(2))
    def test_whatever_happens_every_number_is_that_of_the_rows(self, seed: int) -> None:
        self.play(lambda store: wander(store, seed, 80), FrontierSettings(revisits=True))
