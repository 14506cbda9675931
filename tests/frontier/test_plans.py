"""Every statement finds its rows by an index; a call's work depends on its batch, not on the size of the store."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import listed, statements
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import (
    T0,
    TTL,
    address,
    failed_processing,
    finished,
    link,
    released,
    retry,
    wish,
)
from crawlspace.types import Reason

PACKAGE = "crawlspace.frontier.sqlite"
FILES = (
    "book",
    "claim",
    "condemned",
    "control",
    "crowds",
    "groups",
    "lease",
    "ledger",
    "loss",
    "moves",
    "review",
    "revisit",
    "schema",
    "settle",
    "urls",
)
"""All but what audits and re-keys a store, which reads it whole."""
SMALL = {
    "meta": "a few facts",
    "tally": "one row for each total",
    "segment": "one row for each file of the archive",
    "sqlite_master": "one row for each table and index",
    "(subquery-1)": "the rows a statement just limited",
    "asked": "the rows a call asks for",
    "round": "one row for each generation and end",
}
"""Tables that may be read whole, and why."""

BY_INDEX = {
    ("loss", "live"): "all leases are wanted",
    ("loss", "of_worker"): "all leases of a worker are wanted, of which there are some among those of all",
    ("groups", "next"): "the first group is wanted that nobody else holds",
    ("control", "open"): "all open commands are wanted, and they are few",
}
"""Statements that walk an index from its beginning, up to their LIMIT."""

ALL = [(file, name, sql) for file in FILES for name, sql in statements(PACKAGE, f"{file}.sql").items()]


class Anything(dict[str, Any]):
    """Whatever a statement is asked with: its plan does not depend on it."""

    def __missing__(self, name: str) -> None:
        return None


def filled(path: Path, hosts: int, urls: int) -> None:
    """A store with queued, delayed, leased, finished, refused and dead URLs."""

    async def fill() -> None:
        store = await SqliteFrontier.open(path, FrontierSettings(), ManualClock(), threaded=False)
        for start in range(0, urls, 1_000):
            await store.claim(
                [link(str(n), f"h{n % hosts}.test", front_class=n % 10) for n in range(start, start + 1_000)], T0
            )
        await store.claim([link(f"r{n}", f"h{n % hosts}.test", refusal=Reason.DEPTH) for n in range(urls // 20)], T0)
        for _ in range(3):
            for lease in await store.lease(wish(hosts // 4), T0):
                first, second, *rest = lease.urls
                told = [finished(lease, url) for url in rest]
                told += [retry(lease, first, T0 + 1_000), failed_processing(lease, second)]  # type: ignore[list-item]
                await store.settle([*told, released(lease, T0 + 10)], [], T0)
        await store.lease(wish(hosts // 10), T0)
        await store.close()

    asyncio.run(fill())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "frontier.db"
    filled(path, hosts=200, urls=20_000)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "frontier.db"
    filled(path, hosts=200, urls=4_000)
    return path


@pytest.mark.parametrize(("file", "name", "sql"), ALL, ids=[f"{file}-{name}" for file, name, _ in ALL])
def test_no_statement_scans_a_table_that_grows(file: str, name: str, sql: str, large: Path) -> None:
    connection = sqlite3.connect(large)
    try:
        steps = plan(connection, listed(sql, 64))
    finally:
        connection.close()
    for step in steps:
        words = step.split()
        if words[0] != "SCAN" or words[1] in SMALL or "CONSTANT" in words:
            continue
        assert (file, name) in BY_INDEX, f"{step}\n{sql}"
        assert "USING" in words, step


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    """The steps SQLite means to take."""
    parameters: Any = Anything() if ":" in sql else [None] * sql.count("?")
    return [row[-1] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]


def test_a_scan_would_be_seen(large: Path) -> None:
    """The test above can fail."""
    connection = sqlite3.connect(large)
    try:
        assert plan(connection, "SELECT count(*) FROM outcome WHERE status = 404") == ["SCAN outcome"]
    finally:
        connection.close()


@contextmanager
def counted(store: SqliteFrontier) -> Iterator[Callable[[], int]]:
    """How many steps SQLite's machine takes, in units of ten."""
    steps = 0

    def tick() -> int:
        nonlocal steps
        steps += 1
        return 0

    store._connection.set_progress_handler(tick, 10)
    try:
        yield lambda: steps
    finally:
        store._connection.set_progress_handler(None, 10)


async def claim(store: SqliteFrontier) -> None:
    await store.claim([link(f"new{n}", f"h{n % 200}.test") for n in range(200)], T0)


async def repeat(store: SqliteFrontier) -> None:
    waiting = range(2_000, 2_200)
    await store.claim([link(str(n), f"h{n % 200}.test", front_class=n % 10) for n in waiting], T0)


async def lease_and_settle(store: SqliteFrontier) -> None:
    leases = await store.lease(wish(hosts=20, urls_per_host=5), T0 + 20)
    told = [finished(lease, url) for lease in leases for url in lease.urls]
    assert len(told) == 100
    await store.settle([*told, *(released(lease) for lease in leases)], [], T0 + 20)


async def lose(store: SqliteFrontier) -> None:
    assert await store.reclaim(T0 + TTL) == 20


async def look(store: SqliteFrontier) -> None:
    await store.due_in(T0)
    await store.counts()
    await store.find([address(str(n), f"h{n % 200}.test").key for n in range(100)])
    await store.dead(limit=10)
    await store.unprocessed(limit=10)
    await store.hosts(after="h100.test", limit=10)


async def start(store: SqliteFrontier) -> None:
    await store.void_leases(T0)


@pytest.mark.parametrize("work", [claim, repeat, lease_and_settle, lose, look, start])
def test_five_times_the_urls_are_no_more_work(
    work: Callable[..., Any], small: Path, large: Path, tmp_path: Path
) -> None:
    """Counted in steps of SQLite's machine, not in time."""

    async def steps(path: Path) -> int:
        store = await SqliteFrontier.open(path, FrontierSettings(), ManualClock(), threaded=False)
        with counted(store) as count:
            await work(store)
        await store.close()
        return count()

    few, many = (asyncio.run(steps(Path(shutil.copy(path, tmp_path / path.parent.name)))) for path in (small, large))
    assert few > 5
    assert many < few * 1.3
