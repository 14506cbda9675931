"""The embedded store keeps the contract of re-keying."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawlspace.app.directory import CrawlDirectory
from crawlspace.errors import StoreDamaged
from crawlspace.frontier.rekeying import decoded
from crawlspace.testing.frontier_contract_audit import audit_file
from crawlspace.testing.rekey_contract import RekeyContract, Tables


class TestEmbedded(RekeyContract):
    @pytest.fixture(autouse=True)
    def _built(self, built: Callable[..., CrawlDirectory]) -> None:
        self.make = built  # type: ignore[method-assign]

    def tables(self, crawl: CrawlDirectory) -> Tables:
        with connected(crawl) as database:
            database.row_factory = sqlite3.Row
            names = [
                name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
            ]
            return {name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")] for name in names}

    def alter(self, crawl: CrawlDirectory, table: str, where: dict[str, Any], **fields: Any) -> int:
        changed = ", ".join(f"{name} = ?" for name in fields)
        if "parked" in fields:
            changed += ", ready = 0" if fields["parked"] else ", ready = n_queued > 0"
        [(name, value)] = where.items()
        with connected(crawl) as database:
            order = f"UPDATE {table} SET {changed} WHERE {name} = ?"
            if table == "queue":
                # A view: what is seldom said of a URL has a row of its own.
                given, asked = ", ".join(fields), ", ".join("?" * len(fields))
                order = f"INSERT INTO queued_more (id, {given}) SELECT id, {asked} FROM queued WHERE {name} = ?"
                order += f" ON CONFLICT (id) DO UPDATE SET {changed}"
                return database.execute(order, (*fields.values(), value, *fields.values())).rowcount
            return database.execute(order, (*fields.values(), value)).rowcount

    def audit(self, crawl: CrawlDirectory) -> None:
        audit_file(crawl.database)

    def test_a_table_of_merged_urls_from_before_gets_the_columns_it_lacks(self, tmp_path: Path) -> None:
        crawl = self.make(tmp_path / "c")
        self.stopped_after(crawl, 1, policy="aggressive")
        with connected(crawl) as database:
            for column in ("route", "next_visit", "interval_ms", "changed", "content"):
                database.execute(f"ALTER TABLE merged DROP COLUMN {column}")
        self.schedule(crawl)
        assert self.rekey(crawl, policy="aggressive") is not None
        merged = self.tables(crawl)["merged"]
        assert {row["route"] for row in merged} > {None, "browser"}
        assert sum(row["next_visit"] is not None for row in merged) > 10


@contextmanager
def connected(crawl: CrawlDirectory) -> Iterator[sqlite3.Connection]:
    database = sqlite3.connect(crawl.database, isolation_level=None)
    try:
        yield database
    finally:
        database.close()


def test_a_fact_that_cannot_be_read_is_damage() -> None:
    assert decoded("") is None
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decoded('{"stage": 3}')
