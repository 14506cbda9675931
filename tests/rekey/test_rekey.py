"""The embedded store keeps the contract of re-keying."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {name: [dict(row) for row in database.execute(f"SELECT * FROM {name}")] for name in names}

    def alter(self, crawl: CrawlDirectory, table: str, where: dict[str, Any], **fields: Any) -> int:
        changed = ", ".join(f"{name} = ?" for name in fields)
        if "parked" in fields:
            changed += ", ready = 0" if fields["parked"] else ", ready = n_queued > 0"
        [(name, value)] = where.items()
        with connected(crawl) as database:
            order = f"UPDATE {table} SET {changed} WHERE {name} = ?"
            return database.execute(order, (*fields.values(), value)).rowcount

    def audit(self, crawl: CrawlDirectory) -> None:
        audit_file(crawl.database)


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
