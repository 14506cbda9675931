"""Statements find their rows by an index, and a call's work depends on its batch, not on the size of the store."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.postgres import sessions as sessions_module
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import T0, failed_processing, finished, link, released, retry, wish
from crawlspace.types import Reason

PACKAGE = "crawlspace.frontier.postgres"
FILES = (
    *("book", "claim", "condemned", "control", "hosts", "lease", "ledger", "loss", "review", "revisit", "revive"),
    "settle",
    *("urls", "wake", "groups", "crowds"),
)
SMALL = {
    "meta": "a few facts",
    "tally": "one row for each slot",
    "segment": "one row for each file of the archives",
    "worker": "one row for each worker",
    "control": "commands of the last hour",
}
"""Tables that may be read whole, and why."""

ALL = [
    (file, name, text)
    for file in FILES
    for name, text in statements(PACKAGE, f"{file}.sql").items()
    if name not in ("one_moment", "way")
]
_PARAMETER = re.compile(r"%\((\w+)\)s")


async def fill(store: PostgresFrontier, hosts: int, urls: int) -> None:
    """Queued, delayed, leased, finished, refused and dead URLs."""
    for start in range(0, urls, 1_000):
        numbers = range(start, start + 1_000)
        await store.claim([link(str(n), f"h{n % hosts}.test", front_class=n % 10) for n in numbers], T0)
    refused = [link(f"r{n}", f"h{n % hosts}.test", refusal=Reason.DEPTH) for n in range(urls // 20)]
    await store.claim(refused, T0)
    for _ in range(3):
        for lease in await store.lease(wish(hosts // 4), T0):
            first, second, *rest = lease.urls
            told: list[Any] = [finished(lease, url) for url in rest]
            told += [retry(lease, first, T0 + 1_000), failed_processing(lease, second)]
            await store.settle([*told, released(lease, T0 + 10)], [], T0)
    await store.lease(wish(hosts // 10), T0)


def made(place: Place, hosts: int, urls: int) -> Place:
    async def make() -> None:
        store = await PostgresFrontier.open(place, FrontierSettings(), ManualClock())
        await fill(store, hosts, urls)
        await store.close()

    asyncio.run(make())
    return place


@pytest.fixture(scope="module")
def module_places(server: str) -> Callable[[str, int], Place]:
    return lambda name, shards: Place.parse(f"{server}&schema=plans_{name}&shards={shards}")


@pytest.fixture(scope="module")
def large(module_places: Callable[[str, int], Place]) -> Place:
    return made(module_places("large", 16), hosts=200, urls=20_000)


@pytest.fixture(scope="module")
def small(module_places: Callable[[str, int], Place]) -> Place:
    return made(module_places("small", 16), hosts=200, urls=4_000)


class Session:
    """A session as the store has them, that explains instead of doing."""

    def __init__(self, place: Place) -> None:
        self.connection = psycopg.connect(place.address, autocommit=True, prepare_threshold=None)
        way = sessions_module.queries("sessions.sql")["way"]
        limits = {"commit": "local", "statement_ms": "0", "lock_ms": "0", "idle_ms": "0", "keep_alive": "10"}
        self.connection.execute(way, {"schema": place.schema, "name": "plans", **limits})

    def plan(self, text: str) -> list[dict[str, Any]]:
        """The steps of a statement's generic plan, outermost first."""
        names = list(dict.fromkeys(_PARAMETER.findall(text)))
        numbered = _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", text)
        self.connection.execute(b"DEALLOCATE ALL")
        self.connection.execute(f"PREPARE explained AS {numbered}".encode())
        nothing = ", ".join(["NULL"] * len(names))
        call = f"EXECUTE explained({nothing})" if names else "EXECUTE explained"
        [(plan,)] = self.connection.execute(f"EXPLAIN (FORMAT JSON) {call}".encode()).fetchall()
        found = plan if isinstance(plan, list) else json.loads(plan)
        return list(steps(found[0]["Plan"]))


def steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from steps(inner)


@pytest.fixture(scope="module")
def session(large: Place) -> Iterator[Session]:
    session = Session(large)
    with session.connection:
        yield session


@pytest.mark.parametrize(("file", "name", "text"), ALL, ids=[f"{file}-{name}" for file, name, _ in ALL])
def test_no_statement_reads_a_table_that_grows_whole(file: str, name: str, text: str, session: Session) -> None:
    for step in session.plan(text):
        assert step["Node Type"] not in ("Hash Join", "Merge Join", "Bitmap Heap Scan"), step
        if step["Node Type"] == "Seq Scan":
            assert step["Relation Name"] in SMALL, f"{step}\n{text}"


def test_a_whole_table_being_read_would_be_seen(session: Session) -> None:
    """The test above can fail."""
    kinds = [
        step["Node Type"] for step in session.plan("SELECT count(*) FROM outcome WHERE status = %(status)s::int")
    ]
    assert "Seq Scan" in kinds


@pytest.fixture(scope="module")
def counted(large: Place, small: Place, module_places: Callable[[str, int], Place]) -> dict[str, dict[str, int]]:
    """Pages that each statement of some calls looks at, in a small store, one with five times its rows, and one with
    as many shards as there can be."""
    many = made(module_places("many", 1024), hosts=100, urls=4_000)
    return {name: asyncio.run(count(place)) for name, place in [("small", small), ("large", large), ("many", many)]}


async def count(place: Place) -> dict[str, int]:
    store = await PostgresFrontier.open(place, FrontierSettings(), ManualClock())
    before = await touched(store)
    leases = await store.lease(wish(10, 5), T0 + 20)
    after_lease = await touched(store)
    told: list[Any] = [finished(lease, url) for lease in leases for url in lease.urls]
    await store.settle([*told, *(released(lease, T0 + 30) for lease in leases)], [], T0 + 20)
    after_settle = await touched(store)
    await store.claim([link(f"new{n}", f"h{n % 10}.test") for n in range(50)], T0)
    after_claim = await touched(store)
    await store.due_in(T0)
    after_due = await touched(store)
    await store.close()
    assert len(leases) == 10
    return {
        "lease": after_lease - before,
        "settle": after_settle - after_lease,
        "claim": after_claim - after_settle,
        "due_in": after_due - after_claim,
    }


async def touched(store: PostgresFrontier) -> int:
    """Rows and index entries of the crawl's tables that were read so far, by the server's own counters."""
    async with store._sessions.plain() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await connection.execute("SELECT pg_stat_clear_snapshot()")
        row = await (
            await connection.execute(
                "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint "
                "FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname <> 'tally'"
            )
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("call", ["lease", "settle", "claim", "due_in"])
def test_a_calls_work_does_not_grow_with_the_store(counted: dict[str, dict[str, int]], call: str) -> None:
    assert counted["large"][call] <= 1.5 * counted["small"][call] + 20


@pytest.mark.parametrize("call", ["lease", "settle", "claim", "due_in"])
def test_a_calls_work_does_not_grow_with_the_number_of_shards(counted: dict[str, dict[str, int]], call: str) -> None:
    """A hundred hosts in a thousand shards: nobody looks into the empty ones."""
    assert counted["many"][call] <= 1.5 * counted["small"][call] + 20


def test_a_lease_reads_what_it_gives_however_long_a_queue_is(large: Place) -> None:
    """Fairness: what is read for a lease is bounded by what it gives, however long the queue."""

    async def story() -> tuple[int, int]:
        store = await PostgresFrontier.open(large, FrontierSettings(queue_per_host=None), ManualClock())
        for start in range(0, 10_000, 1_000):
            await store.claim([link(f"x{n}", "long.test", front_class=0) for n in range(start, start + 1_000)], T0)
        before = await touched(store)
        leases = await store.lease(wish(5, 4), T0 + 40)
        after = await touched(store)
        await store.close()
        return sum(len(lease.urls) for lease in leases), after - before

    given, read = asyncio.run(story())
    assert given == 20
    assert read <= 10 * given


def test_exports_read_in_the_order_of_an_index_and_sort_nothing(large: Place) -> None:
    texts = statements(PACKAGE, "export.sql")
    way = statements(PACKAGE, "looks.sql")["way"].encode()
    with psycopg.connect(large.address, autocommit=True) as connection:
        connection.execute(b"ANALYZE")
        connection.execute(way, {"schema": large.schema, "purpose": "plans"})
        with connection.transaction():
            for name in ("queued", "delayed", "ended"):
                query = f"EXPLAIN DECLARE {name} CURSOR FOR {texts[name]}".encode()
                found = connection.execute(query, {"shard": 3, "hids": None, "states": [3]}).fetchall()
                assert not [line for (line,) in found if "Sort" in line], (name, found)
