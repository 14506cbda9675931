"""Errors of the server come in our words, and what a new session can mend is done again on one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from psycopg import errors as pg
from psycopg_pool import PoolTimeout

from crawlspace.clock import SystemClock
from crawlspace.errors import (
    Bug,
    CrawlDirError,
    CrawlspaceError,
    DiskFull,
    StoreDamaged,
    StoreError,
    UsageError,
)
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.postgres.sessions import COLLISIONS, DELAYS, OUTAGES, Connection, Sessions
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import (
    T0,
    finished,
    link,
    links,
    one_lease,
    released,
    seen,
    states,
)
from crawlspace.types import Answer, Claimed

Story = Callable[[PostgresFrontier], Awaitable[None]]
Places = Callable[..., Place]
Opened = Callable[..., Awaitable[PostgresFrontier]]
Play = Callable[..., None]


def test_a_server_that_is_not_there_is_named_without_its_password(place: Place, opened: Opened) -> None:
    away = Place.parse("postgresql://me:s3cret@127.0.0.1:1/web")
    with pytest.raises(StoreError, match=r"postgresql://me@127\.0\.0\.1:1/web.* cannot be reached") as caught:
        asyncio.run(opened(away))
    assert "s3cret" not in str(caught.value)


def test_an_address_with_a_word_that_nobody_knows_is_a_mistake_of_its_writer(opened: Opened) -> None:
    with pytest.raises(UsageError, match="is no address of a PostgreSQL server"):
        asyncio.run(opened(Place.parse("postgresql://127.0.0.1/web?no_such_word=1")))


def test_a_closed_store_says_so(place: Place, opened: Opened) -> None:
    async def run() -> None:
        store = await opened(place)
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="is closed"):
            await store.counts()
        with pytest.raises(StoreError, match="is closed"):
            await store.claim(links(1), T0)

    asyncio.run(run())


def test_what_breaks_the_stores_own_rules_is_a_bug_and_changes_nothing(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        with pytest.raises(Bug, match="breaks its own rules"):
            await store.claim([link("fine"), link("x", front_class=10)], T0)
        assert await states(store) == {}

    play(place, story)


async def nothing(_: PostgresFrontier) -> None:
    """Only open and close."""


def test_a_user_without_rights_is_told_so(place: Place, play: Play) -> None:
    play(place, nothing)
    reader = f"reader_{place.schema}"
    with psycopg.connect(place.address, autocommit=True) as connection:
        for order in (
            f"CREATE ROLE {reader} LOGIN",
            f"GRANT USAGE ON SCHEMA {place.schema} TO {reader}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO {reader}",
        ):
            connection.execute(order.encode())
    theirs = Place(place.address.replace("postgres:@", f"{reader}@"), place.schema)

    async def run() -> None:
        store = await PostgresFrontier.open_beside(theirs, FrontierSettings(), ManualClock())
        try:
            assert await states(store) == {}
            with pytest.raises(CrawlDirError, match="cannot be written"):
                await store.claim(links(1), T0)
        finally:
            await store.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (pg.DiskFull("disk"), DiskFull),
        (pg.ReadOnlySqlTransaction("x"), CrawlDirError),
        (pg.QueryCanceled("x"), StoreError),
        (pg.LockNotAvailable("x"), StoreError),
        (pg.DataCorrupted("x"), StoreDamaged),
        (pg.UndefinedTable("x"), CrawlDirError),
        (pg.CheckViolation("x"), Bug),
        (pg.SyntaxError("x"), Bug),
        (pg.AdminShutdown("x"), StoreError),
        (PoolTimeout("x"), StoreError),
    ],
)
def test_the_servers_errors_come_in_our_words(place: Place, error: Exception, ours: type[CrawlspaceError]) -> None:
    """And each that a new session could mend was tried again first, a bounded number of times."""

    class Impatient(ManualClock):
        async def sleep(self, seconds: float) -> None:
            self.advance(round(seconds * 1000))

    async def run() -> None:
        sessions = Sessions(place, FrontierSettings(), Impatient())
        await sessions.open()
        tries = 0

        async def work(_: Connection) -> None:
            nonlocal tries
            tries += 1
            raise error

        try:
            with pytest.raises(ours) as caught:
                await sessions.write(work)
        finally:
            await sessions.close()
        assert type(caught.value) is ours
        assert caught.value.__cause__ is error
        again = {
            pg.AdminShutdown: OUTAGES,
            PoolTimeout: OUTAGES,
            pg.QueryCanceled: DELAYS,
            pg.LockNotAvailable: DELAYS,
        }
        assert tries == again.get(type(error), 0) + 1

    asyncio.run(run())


@pytest.mark.parametrize("error", [pg.DeadlockDetected, pg.SerializationFailure])
def test_a_transaction_that_met_others_in_its_way_is_begun_again(place: Place, error: type[psycopg.Error]) -> None:
    async def run() -> None:
        sessions = Sessions(place, FrontierSettings(), ManualClock())
        await sessions.open()
        tries = 0

        async def work(_: Connection) -> str:
            nonlocal tries
            tries += 1
            if tries <= COLLISIONS:
                raise error
            return "done"

        try:
            assert await sessions.write(work) == "done"
            tries = -1
            with pytest.raises(StoreError, match="too busy"):
                await sessions.write(work)
        finally:
            await sessions.close()

    asyncio.run(run())


def test_calls_survive_sessions_that_are_cut(place: Place, play: Play) -> None:
    """Before a call, and in the middle of one: it is made again on a new session and done once."""

    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(3), T0)
        with psycopg.connect(place.address, autocommit=True) as killer:
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'crawlspace'"
            killer.execute(cut)
            lease = await one_lease(store)
            killer.execute(cut)
            told = [finished(lease, url, seen(200)) for url in lease.urls]
            assert await store.settle([*told, released(lease)], links(2, "b.test"), T0) == [Answer.SETTLED] * 4
            killer.execute(f"BEGIN; LOCK TABLE {place.schema}.host IN ACCESS EXCLUSIVE MODE".encode())
            call = asyncio.ensure_future(store.claim(links(4), T0))
            with psycopg.connect(place.address, autocommit=True) as other:
                waiting = 0
                while not waiting:
                    await asyncio.sleep(0)
                    row = other.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()
                    waiting = row[0] if row else 0
                other.execute(cut)
            killer.execute("COMMIT")
            assert await call == [Claimed.KNOWN] * 3 + [Claimed.NEW]
        assert await states(store) == {"done": 3, "queued": 3}

    play(place, story, SystemClock())


def test_a_call_that_is_cancelled_is_done_whole_or_not_at_all(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        for turns in range(0, 60, 6):
            known = (await store.counts()).known
            call = asyncio.ensure_future(store.claim(links(50, f"h{turns}.test"), T0))
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert (await store.counts()).known - known in (0, 50)

    play(place, story)
