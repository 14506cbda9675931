"""A worker that is stopped within a transaction, wherever, holds nobody up for long; who is not one of us, may."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from crawlspace.errors import StoreError
from crawlspace.frontier.postgres import Place, PostgresFrontier, sessions
from crawlspace.testing.frontier_contract_words import T0, TTL, links, one_lease, states
from crawlspace.types import Claimed

Play = Callable[..., None]
Silence = Callable[[psycopg.Connection, ExitStack], None]
SILENT_MS = 200
LOCK_MS = 300
HOLD = "SELECT * FROM host FOR UPDATE"


def between_orders(connection: psycopg.Connection, _: ExitStack) -> None:
    """The server has answered all that was asked."""
    connection.execute("BEGIN")
    connection.execute(HOLD)


def within_a_row_of_orders(connection: psycopg.Connection, stack: ExitStack) -> None:
    """It waits for the end of a pipeline, and its own limit for idle sessions does not count."""
    stack.enter_context(connection.pipeline())
    connection.execute("BEGIN")
    connection.execute(HOLD).fetchall()


def within_an_order(connection: psycopg.Connection, stack: ExitStack) -> None:
    """It has the first bytes of an order."""
    within_a_row_of_orders(connection, stack)
    os.write(connection.fileno(), b"Q" + (100).to_bytes(4, "big") + b"SELECT")


def within_an_answer(connection: psycopg.Connection, _: ExitStack) -> None:
    """It has more to say than lines hold, and nobody listens."""
    between_orders(connection, _)
    connection.pgconn.send_query(b"SELECT repeat('x', 10000) FROM generate_series(1, 10000)")


ALL = [between_orders, within_a_row_of_orders, within_an_order, within_an_answer]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SILENT_MS", SILENT_MS)
    monkeypatch.setattr(sessions, "LOCK_MS", LOCK_MS)


@contextmanager
def stopped(place: Place, silence: Silence, name: str = "crawlspace") -> Iterator[psycopg.Connection]:
    """A session that holds all hosts and says no more."""
    connection = psycopg.connect(place.address, application_name=name, autocommit=True)
    try:
        with ExitStack() as stack:
            connection.execute("SELECT set_config('search_path', %s, false)", [place.schema])
            silence(connection, stack)
            yield connection
            # It is dead or in the middle of something: nothing is said any more on leaving.
            stack.pop_all()
    finally:
        connection.pgconn.finish()


@pytest.mark.parametrize("silence", ALL)
def test_others_wait_no_longer_for_a_stopped_worker_than_it_may_be_silent(
    place: Place, play: Play, silence: Silence
) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(3), T0)
        with stopped(place, silence):
            assert await store.claim(links(4), T0) == [Claimed.KNOWN] * 3 + [Claimed.NEW]
        assert await states(store) == {"queued": 4}

    play(place, story)


@pytest.mark.parametrize("silence", ALL)
def test_the_leases_of_a_stopped_worker_come_back_though_it_holds_their_hosts(
    place: Place, play: Play, silence: Silence
) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(3), T0)
        await one_lease(store)
        with stopped(place, silence):
            taken_back = 0
            async with asyncio.timeout(30):
                while not taken_back:
                    taken_back = await store.reclaim(T0 + TTL)
        assert await states(store) == {"queued": 3}

    play(place, story)


def test_who_is_no_worker_may_hold_what_he_wants_and_the_crawl_says_who_is_in_its_way(
    place: Place, play: Play
) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(3), T0)
        with stopped(place, between_orders, "psql") as person:
            with pytest.raises(StoreError, match="too busy"):
                await store.claim(links(4), T0)
            assert person.execute(HOLD).fetchall()
        assert await states(store) == {"queued": 3}

    play(place, story)


def test_a_session_that_was_ended_while_its_worker_was_stopped_is_begun_anew(
    place: Place, play: Play, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., Awaitable[PostgresFrontier]]
) -> None:
    """Its call is made again from its beginning, and what was meant to happen once happens once."""
    order = sessions.Sessions.write

    async def story(store: PostgresFrontier) -> None:
        other = await opened(place, "other")
        await store.claim(links(3), T0)
        waiting = [links(4)]

        async def slow(self: sessions.Sessions, work: Callable[..., Awaitable[object]]) -> object:
            async def whole(connection: sessions.Connection) -> object:
                done = await work(connection)
                if waiting:
                    await other.claim(waiting.pop(), T0)
                return done

            return await order(self, whole)

        with monkeypatch.context() as patched:
            patched.setattr(store._sessions, "write", slow.__get__(store._sessions))
            assert await store.claim(links(5), T0) == [Claimed.KNOWN] * 4 + [Claimed.NEW]
        assert await states(store) == {"queued": 5}
        await other.close()

    play(place, story)
