"""What the embedded frontier does beyond the contract: its file, its death and return, errors people can act on."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import Bug, CrawlDirError, DiskFull, StoreDamaged, StoreError, UsageError
from crawlspace.frontier.settings import Durability, FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.frontier.sqlite.condemned import BURIED_AT_ONCE
from crawlspace.frontier.sqlite.connection import connect
from crawlspace.frontier.sqlite.lease import DUE_AT_ONCE
from crawlspace.frontier.sqlite.loss import LONGEST_WAIT_MS, LOST_AT_ONCE
from crawlspace.frontier.sqlite.schema import migrate, steps
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit_file, integrity, schema
from crawlspace.testing.frontier_contract_words import (
    DELAY,
    T0,
    TTL,
    address,
    end_all,
    finished,
    link,
    links,
    names,
    one_lease,
    only_state,
    released,
    retry,
    seen,
    spend,
    states,
    wish,
)
from crawlspace.types import Claimed, Lease, Pace, Pointer, Settlement

NOBODY = 65_534

Story = Callable[[SqliteFrontier], Awaitable[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


async def opened(path: Path, *, read_only: bool = False, **settings: Any) -> SqliteFrontier:
    return await SqliteFrontier.open(path, FrontierSettings(**settings), ManualClock(T0), read_only=read_only)


def play(path: Path, *stories: Story, **settings: Any) -> None:
    """Each story on a newly opened store."""

    async def run() -> None:
        for story in stories:
            store = await opened(path, **settings)
            try:
                await story(store)
            finally:
                await store.close()

    asyncio.run(run())
    audit_file(path)
    assert integrity(path) == "ok"


async def nothing(_: SqliteFrontier) -> None:
    """A store that was only made."""


# -- death and return ---------------------------------------------------------------------------------------


def test_a_store_that_was_closed_knows_everything(path: Path) -> None:
    """Leases live on until their time or until the owner voids them; numbers and tokens go on."""
    tokens: list[int] = []

    async def before(store: SqliteFrontier) -> None:
        await store.claim([*links(3), *links(2, "b.test")], T0)
        first = await one_lease_of(store, "a.test", 1)
        await store.settle([finished(first, first.urls[0])], [], T0)
        tokens.append(first.token)

    async def after(store: SqliteFrontier) -> None:
        assert await states(store) == {"queued": 4, "done": 1}
        assert (await store.claim([link("0"), link("new", "c.test")], T0)) == [Claimed.KNOWN, Claimed.NEW]
        leases = await store.lease(wish(), T0)
        assert sorted(lease.host.name for lease in leases) == ["b.test", "c.test"]
        assert all(lease.token > tokens[0] for lease in leases)
        assert sorted(url.id for lease in leases for url in lease.urls) == [4, 5, 6]

    play(path, before, after)


async def one_lease_of(store: SqliteFrontier, host: str, urls: int) -> Lease:
    """The lease of this host, the first to leave."""
    [lease] = await store.lease(wish(hosts=1, urls_per_host=urls), T0)
    assert lease.host.name == host
    return lease


def test_the_files_of_a_killed_process_hold_all_that_was_answered(path: Path, tmp_path: Path) -> None:
    left = tmp_path / "left.db"

    async def live(store: SqliteFrontier) -> None:
        await store.claim(links(4), T0)
        lease = await one_lease(store, urls_per_host=3)
        await store.settle([finished(lease, lease.urls[0])], [link("found", "b.test")], T0)
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{left}{suffix}")
        await spend(store, lease)

    async def again(store: SqliteFrontier) -> None:
        assert await states(store) == {"queued": 2, "leased": 2, "done": 1}
        assert await store.void_leases(T0 + 5) == 1
        assert await states(store) == {"queued": 4, "done": 1}
        leases = await store.lease(wish(), T0 + 5)
        assert [lease.host.name for lease in leases] == ["b.test"], "the other waits its delay"
        lease = await one_lease(store, T0 + 5 + DELAY)
        assert (names(lease.urls), lease.urls[0].suspect, lease.urls[0].attempts) == (["1"], 1, 0)

    play(path, live)
    play(left, again)


def test_all_leases_are_void_at_once_however_many(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        hosts = LOST_AT_ONCE + 20
        await store.claim([link("x", f"h{n}.test") for n in range(hosts)], T0)
        assert len(await store.lease(wish(hosts=hosts), T0)) == hosts
        assert await store.void_leases(T0) == hosts
        assert await states(store) == {"queued": hosts}
        assert await store.void_leases(T0) == 0

    play(path, story)


def test_a_loss_never_shortens_a_hosts_wait(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(2), T0)
        lease = await one_lease(store)
        await store.settle([released(lease, T0, delay_ms=100, crawl_delay_ms=30_000)], [], T0)
        await one_lease(store)
        await store.void_leases(T0 + 50)
        assert await store.next_due(T0 + 50) == T0 + 30_050

    play(path, story)


def test_a_clock_that_was_set_back_does_not_shorten_it_either(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(2), T0)
        lease = await one_lease(store)
        await store.settle([released(lease, T0 + 9_000)], [], T0)
        await one_lease(store, T0 + 9_000)
        await store.void_leases(T0)
        assert await store.next_due(T0) == T0 + 9_000

    play(path, story)


def test_a_clock_that_was_ahead_silences_nobody(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim([*links(2), *links(2, "b.test")], T0)
        year = 365 * 24 * 3_600_000
        for lease in await store.lease(wish(urls_per_host=1), T0 + year):
            wait = {"a.test": year, "b.test": LONGEST_WAIT_MS}[lease.host.name]
            await store.settle([finished(lease, lease.urls[0]), released(lease, T0 + wait)], [], T0)
        await store.void_leases(T0)
        assert [host.pace.next_at for host in await store.hosts()] == [T0 + LONGEST_WAIT_MS] * 2

    play(path, story)


def test_two_processes_share_a_file(path: Path) -> None:
    """Each URL is new to one of them, each host leased to one of them."""

    async def run() -> None:
        stores = [await opened(path), await opened(path)]
        claims = [link(str(n), f"h{n % 9}.test") for n in range(300)]
        work = [store.claim(claims[at : at + 50], T0) for at in range(0, 300, 25) for store in stores]
        answers = [answer for got in await asyncio.gather(*work) for answer in got]
        assert answers.count(Claimed.NEW) == 300
        leases = await asyncio.gather(*(store.lease(wish(hosts=3), T0) for _ in range(2) for store in stores))
        held = [lease.host.name for got in leases for lease in got]
        assert len(held) == len(set(held)) == 9
        for store in stores:
            await store.close()

    asyncio.run(run())
    audit_file(path)


def test_a_cancelled_call_is_done_whole(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        call = asyncio.ensure_future(store.claim(links(500), T0))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await store.counts()).known in (0, 500)

    play(path, story)


# -- large hosts and changed settings -----------------------------------------------------------------------


def test_a_large_host_is_buried_in_parts(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        total = 2 * BURIED_AT_ONCE + 10
        await store.claim(links(total), T0)
        lease = await one_lease(store)
        await store.settle([released(lease, T0, condemned="host_unreachable")], [], T0)
        assert await states(store) == {"queued": total - BURIED_AT_ONCE, "dead": BURIED_AT_ONCE}
        assert [host.parked for host in await store.hosts()] == ["condemned"]
        while await store.next_due(T0) == T0:
            assert await store.lease(wish(), T0) == [], "what is about to be buried is not leased"
        assert await states(store) == {"dead": total}
        assert [host.parked for host in await store.hosts()] == [None]
        assert await store.next_due(T0) is None

    play(path, story)


def test_a_raised_budget_brings_parked_hosts_back_some_at_a_time(path: Path) -> None:
    hosts = DUE_AT_ONCE + 100

    async def spent(store: SqliteFrontier) -> None:
        await store.claim([claim for n in range(hosts) for claim in links(2, f"h{n}.test")], T0)
        assert await store.next_due(T0) is None

    async def raised(store: SqliteFrontier) -> None:
        assert await store.next_due(T0) == T0
        assert len(await store.lease(wish(hosts=hosts), T0)) == DUE_AT_ONCE
        assert len(await store.lease(wish(hosts=hosts), T0)) == hosts - DUE_AT_ONCE

    play(path, spent, pages_per_host=0)
    play(path, raised, pages_per_host=2)


def test_a_lowered_budget_parks_hosts_when_their_turn_comes(path: Path) -> None:
    async def ample(store: SqliteFrontier) -> None:
        await store.claim(links(3), T0)
        await spend(store, await one_lease(store, urls_per_host=2))

    async def short(store: SqliteFrontier) -> None:
        assert await store.lease(wish(), T0) == []
        assert await store.next_due(T0) is None
        assert [(host.parked, host.queued) for host in await store.hosts()] == [("host_budget", 1)]

    play(path, ample)
    play(path, short, pages_per_host=1)


def test_due_retries_come_back_some_at_a_time(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        total = DUE_AT_ONCE + 50
        await store.claim(links(total), T0)
        [lease] = await store.lease(wish(urls_per_host=total, visit_ms=10**9), T0)
        await store.settle([*(retry(lease, url, T0 + 5) for url in lease.urls), released(lease)], [], T0)
        [lease] = await store.lease(wish(urls_per_host=total, visit_ms=10**9), T0 + 5)
        assert len(lease.urls) == DUE_AT_ONCE
        await spend(store, lease, T0 + 5)
        await end_all(store, T0 + 5)
        assert await states(store) == {"done": total}

    play(path, story)


def test_a_host_never_visited_has_the_delay_of_the_settings(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(9), T0)
        [lease] = await store.lease(wish(visit_ms=20_000), T0)
        assert (lease.host.pace, len(lease.urls)) == (Pace(next_at=0, delay_ms=7_000), 2)

    play(path, story, delay_ms=7_000)


def test_the_store_knows_how_far_settled_captures_reach(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(3), T0)
        lease = await one_lease(store)
        where = [Pointer("1.warc.gz", 500, 100), Pointer("1.warc.gz", 0, 500), Pointer("2.warc.gz", 0, 70)]
        for url, pointer in zip(lease.urls, where, strict=True):
            evidence = seen(200)
            told = finished(lease, url, type(evidence)(at=T0, status=200, pointer=pointer))
            await store.settle([told], [], T0)
        assert await store.segments() == {"1.warc.gz": 600, "2.warc.gz": 70}
        [story] = await store.find([address("0").key])
        assert story is not None
        assert story.evidence is not None
        assert story.evidence.pointer == where[0]

    play(path, story)


def test_times_come_from_the_clock_when_none_is_given(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(1))
        [lease] = await store.lease(wish())
        assert lease.until == T0 + TTL
        assert await store.reclaim() == 0
        await store.settle([finished(lease, lease.urls[0]), released(lease)], [])
        [story] = await store.find([address("0").key])
        assert story is not None
        assert (story.found_at, story.settled_at) == (T0, T0)
        assert await store.next_due() is None

    play(path, story)


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
