"""The schema is made by numbered steps, once, and is nobody else's; what cannot be used is refused and left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest

from crawlspace.errors import (
    Bug,
    CrawlDirError,
    UsageError,
)
from crawlspace.frontier.postgres import Place, PostgresFrontier, schema
from crawlspace.frontier.postgres.schema import migrate, steps
from crawlspace.frontier.postgres.sessions import Sessions
from crawlspace.frontier.settings import Durability, FrontierSettings
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import (
    T0,
    link,
)

Story = Callable[[PostgresFrontier], Awaitable[None]]
Places = Callable[..., Place]
Opened = Callable[..., Awaitable[PostgresFrontier]]
Play = Callable[..., None]


def tables(place: Place) -> list[Any]:
    """Columns, constraints and indexes of a schema, without its name."""
    with psycopg.connect(place.address) as connection:
        rows = connection.execute(
            """
            SELECT c.relname, c.relkind::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
              c.reloptions, replace(pg_get_indexdef(c.oid), %(schema)s || '.', '')
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
            WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)
            UNION ALL SELECT c.relname, 'constraint', o.conname, pg_get_constraintdef(o.oid), true, NULL, NULL
            FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
            WHERE o.connamespace = (SELECT oid FROM pg_namespace WHERE nspname = %(schema)s)
            ORDER BY 1, 2, 3
            """,
            {"schema": place.schema},
        )
        return rows.fetchall()


async def nothing(_: PostgresFrontier) -> None:
    """Only open and close."""


async def brought_to(place: Place, upgrades: list[str]) -> None:
    """Make the schema, as an older or newer version would."""
    sessions = Sessions(place, FrontierSettings(), ManualClock())
    await sessions.open()
    try:
        async with sessions.plain() as connection:
            await migrate(connection, place, upgrades)
    finally:
        await sessions.close()


def test_a_migrated_store_equals_a_fresh_one(places: Places, play: Play) -> None:
    """From every format there ever was."""
    fresh = places()
    play(fresh, nothing)
    for have in range(1, len(steps()) + 1):
        old = places()
        asyncio.run(brought_to(old, steps()[:have]))
        play(old, nothing)
        assert tables(old) == tables(fresh)
    assert len(tables(fresh)) > 100


def test_a_step_that_fails_is_undone(place: Place, play: Play) -> None:
    play(place, nothing)
    before = tables(place)
    with pytest.raises(Bug):
        asyncio.run(brought_to(place, [*steps(), "CREATE TABLE more (x int); CREATE TABLE more (x int);"]))
    assert tables(place) == before


def test_shards_are_fixed_when_a_crawl_is_made(places: Places, play: Play) -> None:
    made = places(64)
    play(made, nothing)
    other = Place(made.address, made.schema, 16)

    async def story(store: PostgresFrontier) -> None:
        assert store._shards.number == 64
        await store.claim([link("x", f"h{n}.test") for n in range(200)], T0)

    play(other, story)


def test_a_schema_of_a_newer_version_is_refused(place: Place, opened: Opened) -> None:
    asyncio.run(brought_to(place, [*steps(), "CREATE TABLE later (x int)"]))
    with pytest.raises(CrawlDirError, match="use a newer crawlspace"):
        asyncio.run(opened(place))
    with pytest.raises(CrawlDirError, match="use a newer crawlspace"):
        asyncio.run(PostgresFrontier.open_beside(place, FrontierSettings(), ManualClock()))


def test_who_only_asks_leaves_an_older_format_as_it_is(
    place: Place, monkeypatch: pytest.MonkeyPatch, play: Play
) -> None:
    play(place, nothing)
    monkeypatch.setattr("crawlspace.frontier.postgres.store.steps", lambda: [*steps(), "CREATE TABLE later (x int)"])
    with pytest.raises(CrawlDirError, match="bring it up to date"):
        asyncio.run(PostgresFrontier.open_beside(place, FrontierSettings(), ManualClock()))
    assert not [row for row in tables(place) if row[0] == "later"]


@pytest.mark.parametrize("table", ["theirs (x int)", "meta (key text, value text)"])
def test_a_schema_of_another_program_is_refused_and_left_alone(place: Place, table: str, opened: Opened) -> None:
    with psycopg.connect(place.address, autocommit=True) as other:
        other.execute(f"CREATE SCHEMA {place.schema}".encode())
        other.execute(f"CREATE TABLE {place.schema}.{table}".encode())
    before = tables(place)
    with pytest.raises(CrawlDirError, match="another program"):
        asyncio.run(opened(place))
    assert tables(place) == before


def test_a_place_without_a_crawl_is_said_to_be_empty(place: Place) -> None:
    with pytest.raises(CrawlDirError, match="holds no crawl"):
        asyncio.run(PostgresFrontier.open_beside(place, FrontierSettings(), ManualClock()))
    assert tables(place) == []


def test_a_server_too_old_is_named(place: Place, monkeypatch: pytest.MonkeyPatch, opened: Opened) -> None:
    monkeypatch.setattr(schema, "OLDEST_SERVER", 990_000)
    with pytest.raises(CrawlDirError, match="PostgreSQL 99 or newer is needed"):
        asyncio.run(opened(place))


def test_the_stores_own_facts_are_its_own(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        for name in ("format", "shards", "program"):
            with pytest.raises(UsageError, match=name):
                await store.note({name: "9"})

    play(place, story)


@pytest.mark.parametrize(("durability", "level"), [(Durability.NORMAL, "local"), (Durability.FULL, "on")])
def test_what_was_answered_is_on_the_servers_disk(
    place: Place, durability: Durability, level: str, play: Play
) -> None:
    async def story(store: PostgresFrontier) -> None:
        async with store._sessions.plain() as connection:
            row = await (await connection.execute("SHOW synchronous_commit")).fetchone()
        assert row == (level,)

    play(place, story, durability=durability)
