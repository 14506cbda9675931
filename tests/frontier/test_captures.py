"""The embedded frontier knows where captures lie."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.captures_contract import CapturesContract
from crawlspace.testing.clock import ManualClock


class TestInMemory(CapturesContract):
    async def open(self, settings: FrontierSettings) -> SqliteFrontier:
        return await SqliteFrontier.open(":memory:", settings, ManualClock(), threaded=False)


def test_bytes_are_found_by_an_index(tmp_path: Path) -> None:
    """Asked once for each page of a crawl: the work must not depend on the size of the store."""
    path = tmp_path / "frontier.db"

    async def make() -> None:
        await (await SqliteFrontier.open(path, FrontierSettings(), ManualClock())).close()

    asyncio.run(make())
    statement = statements("crawlspace.frontier.sqlite", "captures.sql")["original"]
    with closing(sqlite3.connect(path)) as database:
        asked = {"short": b"", "digest": b""}
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", asked)]
    assert plan
    walked = [step for step in plan if step.startswith("SCAN") and step not in ("SCAN x", "SCAN (subquery-2)")]
    assert walked == []
