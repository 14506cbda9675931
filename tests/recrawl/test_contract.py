"""Both frontiers keep the contract of visits beyond the first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.frontier.sqlite.audit import open_audit
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file
from crawlspace.testing.recrawl_contract import RecrawlContract, wander


class TestSqlite(RecrawlContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_every_number_is_that_of_the_rows(seed: int, tmp_path: Path) -> None:
    async def main() -> None:
        store = await SqliteFrontier.open(
            tmp_path / "frontier.db", FrontierSettings(revisits=True), ManualClock(), threaded=False
        )
        try:
            await wander(store, seed, 150)
        finally:
            await store.close()

    asyncio.run(main())
    audit_file(tmp_path / "frontier.db")
    with open_audit(tmp_path / "frontier.db", FrontierSettings(), owned=False) as audit:
        assert audit.faults(deep=False) == []
