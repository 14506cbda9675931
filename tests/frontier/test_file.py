"""The embedded frontier's file: read beside a crawl, refused with words people can act on, brought up to date."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlspace.errors import Bug, CrawlDirError, DiskFull, StoreDamaged, StoreError, UsageError
from crawlspace.frontier.settings import Durability, FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.frontier.sqlite.connection import connect
from crawlspace.frontier.sqlite.schema import migrate, steps
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_audit import schema
from crawlspace.testing.frontier_contract_files import opened, play
from crawlspace.testing.frontier_contract_words import (
    T0,
    finished,
    link,
    links,
    one_lease,
    only_state,
    released,
    states,
)
from crawlspace.types import Claimed, Settlement

NOBODY = 65_534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


async def nothing(_: SqliteFrontier) -> None:
    """A store that was only made."""


# -- reading beside a crawl ---------------------------------------------------------------------------------


def test_a_reader_sees_what_a_crawl_writes_and_can_write_nothing(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(3), T0)
        reader = await opened(path, read_only=True)
        assert await states(reader) == {"queued": 3}
        await store.claim(links(5), T0)
        assert await states(reader) == {"queued": 5}
        assert await only_state(reader, "4") is UrlState.QUEUED
        with pytest.raises(CrawlDirError, match="cannot be written"):
            await reader.claim(links(9), T0)
        await reader.close()

    play(path, story)


@contextmanager
def read_only_directory() -> Iterator[Path]:
    """A store in a directory that nobody may write, and a process that may not do what root may."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "frontier.db"
        play(path, a_few_links)
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            if root:
                os.seteuid(NOBODY)
            yield path
        finally:
            if root:
                os.seteuid(0)
            path.parent.chmod(0o755)


async def a_few_links(store: SqliteFrontier) -> None:
    await store.claim(links(3), T0)


def test_a_reader_works_where_nothing_can_be_written() -> None:
    """SQLite cannot make its shared memory there; without a log left over the file is all there is."""

    async def read(path: Path) -> dict[str, int]:
        reader = await opened(path, read_only=True)
        try:
            return await states(reader)
        finally:
            await reader.close()

    with read_only_directory() as path:
        assert asyncio.run(read(path)) == {"queued": 3}


def test_a_disk_that_cannot_be_written_is_said_so() -> None:
    with read_only_directory() as path:
        assert_refused(path, CrawlDirError, "cannot be written")


# -- errors -------------------------------------------------------------------------------------------------


def assert_refused(path: Path, error: type[Exception], match: str, read_only: bool = False) -> None:
    with pytest.raises(error, match=match):
        asyncio.run(opened(path, read_only=read_only))


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_of_a_newer_version_is_refused(path: Path, read_only: bool) -> None:
    play(path, nothing)
    newer = connect(str(path), FrontierSettings())
    migrate(newer, str(path), [*steps(), "CREATE TABLE later (x);"])
    newer.close()
    assert_refused(path, CrawlDirError, "use a newer crawlspace", read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_another_program_is_refused_and_left_alone(path: Path, read_only: bool) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    assert_refused(path, CrawlDirError, "another program", read_only)
    other = sqlite3.connect(path)
    assert [name for _, name, _, _ in schema(other)] == ["theirs"]
    other.close()


def test_a_file_that_is_no_database_is_damaged(path: Path) -> None:
    path.write_bytes(b"anything at all, but no database" * 100)
    assert_refused(path, StoreDamaged, "damaged or no frontier")


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "frontier.db"
    assert_refused(missing, CrawlDirError, "cannot be opened")
    assert_refused(missing, CrawlDirError, "cannot be opened", read_only=True)
    assert not missing.parent.exists()


def test_a_reader_does_not_make_a_file(path: Path) -> None:
    assert_refused(path, CrawlDirError, "cannot be opened", read_only=True)
    assert not path.exists()


def test_a_reader_refuses_an_older_format(path: Path) -> None:
    connect(str(path), FrontierSettings()).close()
    assert_refused(path, CrawlDirError, "bring it up to date", read_only=True)


def test_a_full_disk_changes_nothing_and_is_no_end(path: Path) -> None:
    """Links, outcome and host of the call that failed are as before; with room again the call succeeds."""

    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(2), T0)
        lease = await one_lease(store)
        before = await store.counts()
        [(pages,)] = store._connection.execute("PRAGMA page_count").fetchall()
        store._connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
        told: list[Settlement] = [finished(lease, lease.urls[0]), released(lease)]
        found = links(3_000, "b.test")
        with pytest.raises(DiskFull, match="free some space") as caught:
            await store.settle(told, found, T0)
        assert (caught.value.exit_code, type(caught.value.__cause__)) == (5, sqlite3.OperationalError)
        assert await store.counts() == before
        store._connection.execute("PRAGMA max_page_count = 1000000").fetchall()
        await store.settle(told, found, T0)
        assert await states(store) == {"queued": 3_001, "done": 1}

    play(path, story)


def test_a_file_held_by_another_program_is_said_so(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        store._connection.execute("PRAGMA busy_timeout = 0")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="held by another program"):
            await store.claim(links(1), T0)
        assert await states(store) == {}, "reading goes on"
        other.execute("ROLLBACK")
        other.close()
        assert await store.claim(links(1), T0) == [Claimed.NEW]

    play(path, story)


def test_what_breaks_the_stores_own_rules_is_a_bug_and_changes_nothing(path: Path) -> None:
    """The database holds the rules too: here a class that does not exist."""

    async def story(store: SqliteFrontier) -> None:
        with pytest.raises(Bug, match="breaks its own rules"):
            await store.claim([link("fine"), link("x", front_class=10)], T0)
        assert await states(store) == {}

    play(path, story)


def test_an_sqlite_too_old_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    assert_refused(path, CrawlDirError, r"SQLite 3\.37\.0 or newer is needed")


def test_a_closed_store_says_so(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="is closed"):
            await store.counts()

    play(path, story)


def test_the_number_of_the_format_is_the_stores_own(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        with pytest.raises(UsageError, match="'format'"):
            await store.note({"a": "1", "format": "9"})
        assert await store.notes() == {"format": str(len(steps()))}

    play(path, story)


# -- durability and format ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("durability", "level"), [(Durability.NORMAL, 1), (Durability.FULL, 2)])
def test_durability_is_set_and_survives_a_note(path: Path, durability: Durability, level: int) -> None:
    async def story(store: SqliteFrontier) -> None:
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        await store.note({"a": "1"})
        assert store._connection.execute("PRAGMA synchronous").fetchone() == (level,)
        assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    play(path, story, durability=durability)


def test_a_migrated_store_equals_a_fresh_one(path: Path, tmp_path: Path) -> None:
    """From every format there ever was."""
    play(path, nothing)
    fresh = sqlite3.connect(path)
    for have in range(len(steps())):
        old = connect(str(tmp_path / f"format{have}.db"), FrontierSettings())
        migrate(old, "old", steps()[:have])
        migrate(old, "old", steps())
        assert schema(old) == schema(fresh)
        old.close()
    assert len(schema(fresh)) > 10
    fresh.close()


def test_a_step_that_fails_is_undone(path: Path) -> None:
    play(path, nothing)
    connection = connect(str(path), FrontierSettings())
    before = schema(connection)
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "x", [*steps(), "CREATE TABLE more (x);\nCREATE TABLE more (x);\n"])
    assert schema(connection) == before
    assert connection.execute("PRAGMA user_version").fetchone() == (len(steps()),)
    connection.close()
