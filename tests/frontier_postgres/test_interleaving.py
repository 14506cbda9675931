"""What one session does while another is in the middle of a statement, in an order that the test decides.

A policy on the rows of `host` makes one user wait wherever it looks for hosts; the others pass freely.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_words import finished, links, names, released, wish

KEY = 4711
"""Of the lock that is waited for."""


@pytest.fixture
def gate(place: Place) -> Iterator[psycopg.Connection]:
    """A session that holds the lock as long as it has it."""
    with psycopg.connect(place.address, autocommit=True) as connection:
        yield connection


def waiting_user(place: Place, gate: psycopg.Connection) -> Place:
    """The place for a user who waits at each look for hosts while the gate is closed."""
    user = f"waits_{place.schema}"
    for order in (
        f"CREATE ROLE {user} LOGIN",
        f"GRANT USAGE ON SCHEMA {place.schema} TO {user}",
        f"GRANT ALL ON ALL TABLES IN SCHEMA {place.schema} TO {user}",
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {place.schema} TO {user}",
        f"""
        CREATE FUNCTION {place.schema}.pause() RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock_shared({KEY}); RETURN true; END $$
        """,
        f"CREATE POLICY paused ON {place.schema}.host USING ({place.schema}.pause())",
        f"ALTER TABLE {place.schema}.host ENABLE ROW LEVEL SECURITY",
    ):
        gate.execute(order.encode())
    return Place(place.address.replace("postgres:@", f"{user}@"), place.schema, place.shards)


async def until_somebody_waits(gate: psycopg.Connection) -> None:
    """Until a session waits for the lock."""
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with asyncio.timeout(60):
        while (row := gate.execute(waiting).fetchone()) is None or not row[0]:  # noqa: ASYNC110 -- no other way to know
            await asyncio.sleep(0.002)


def test_urls_that_end_while_hosts_are_looked_for_are_not_given_out(place: Place, gate: psycopg.Connection) -> None:
    """Hosts are taken in one statement, and their queues read in the next: one alone sees them as they were."""

    async def run() -> None:
        quick = await PostgresFrontier.open(place, FrontierSettings(), SystemClock(), worker="quick")
        await quick.claim(links(3))
        theirs = waiting_user(place, gate)
        slow = await PostgresFrontier.open_beside(theirs, FrontierSettings(), SystemClock())
        try:
            gate.execute("SELECT pg_advisory_lock(%s)", [KEY])
            late = asyncio.ensure_future(slow.lease(wish()))
            await until_somebody_waits(gate)
            [lease] = await quick.lease(wish(urls_per_host=2))
            told = [finished(lease, url) for url in lease.urls]
            await quick.settle([*told, released(lease, next_at=0)], [])
            gate.execute("SELECT pg_advisory_unlock(%s)", [KEY])
            given = [name for each in await late for name in names(each.urls)]
            assert given == ["2"]
            assert await quick.audit() == []
        finally:
            await slow.close()
            await quick.close()

    asyncio.run(run())
