"""The PostgreSQL frontier keeps the contract of what others have asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.importing.imported import Imported
from crawlspace.app.importing.run import Ways, import_sources
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.settings import convert
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_adopt import AdoptContract
from crawlspace.types import Counts


class TestShared(AdoptContract):
    @pytest.fixture(autouse=True)
    def _place(self, places: Callable[..., Place]) -> None:
        self.place = places()

    async def open(self, settings: FrontierSettings) -> PostgresFrontier:
        return await PostgresFrontier.open(self.place, settings, ManualClock(), worker="contract")


def test_an_archive_is_imported_into_a_shared_frontier(place: Place, server: str, tmp_path: Path) -> None:
    directory = CrawlDirectory(tmp_path / "crawl")
    settings = convert({}, "test")
    address = f"{server}&schema={place.schema}"

    async def run() -> tuple[Imported, Imported, Counts]:
        async with open_crawl(directory, Plan(settings, frontier=address)):
            pass
        source = [Path(__file__).parents[1] / "data" / "warc" / "post-test.warc.gz"]
        first = await import_sources(directory, Plan(settings), source, Ways())
        second = await import_sources(directory, Plan(settings), source, Ways())
        async with open_crawl(directory, Plan(settings)) as crawl:
            return first, second, await crawl.frontier.counts()

    first, second, counts = asyncio.run(run())
    assert (first.captures, second.captures, second.known) == (3, 0, 3)
    assert (counts.states[UrlState.DONE], counts.fetches) == (3, 0)
    assert [path.name[:16] for path in directory.archive.iterdir()] == ["import-post-test"]
