"""What the queue of the embedded store leaves out of its rows, and that all of it comes out again."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawlspace.frontier.rows import shortened, whole
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.frontier_contract_files import play
from crawlspace.testing.frontier_contract_words import T0, address, finished, released, retry, wish
from crawlspace.types import Address, Claim, QueuedUrl, Relation

SHORT = {
    "https://a.test/": "/",
    "https://a.test/x?a=b/c": "/x?a=b/c",
    "http://a.test/x": "+/x",
    "http://a.test//b.test/": "+//b.test/",
    "https://a.test:444/x": "https://a.test:444/x",
    "https://www.a.test/x": "https://www.a.test/x",
    "http://za.test/x": "http://za.test/x",
    "https://a.test.evil.test/": "https://a.test.evil.test/",
}
"""Addresses as they stand in the queue of `a.test`; a rule of the crawl may fold other names into it."""
LABELLED = {"relation": Relation.REDIRECT, "hops": 2, "label": "x", "meta": '{"a": 1}'}


def claims(**more: object) -> list[Claim]:
    """One to each of these addresses, all of one host."""
    return [
        Claim(Address(url, url, "a.test", address(url, "a.test").key), **more)  # type: ignore[arg-type]
        for url in SHORT
    ]


def rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(("url", "short"), SHORT.items())
def test_an_address_is_shortened_and_made_whole(url: str, short: str) -> None:
    assert shortened(url, "a.test") == short
    assert whole(short, "a.test") == url


@pytest.mark.parametrize("more", [{}, LABELLED], ids=["links", "labelled"])
def test_the_queue_holds_short_addresses_and_tells_whole_ones(tmp_path: Path, more: dict[str, object]) -> None:
    """Links are shortened by us, what has more to say by the database: both alike."""
    path = tmp_path / "frontier.db"
    leased: list[QueuedUrl] = []

    async def claim(store: SqliteFrontier) -> None:
        await store.claim(claims(**more), T0)

    async def lease(store: SqliteFrontier) -> None:
        [one] = await store.lease(wish(), T0)
        leased.extend(one.urls)

    play(path, claim)
    assert [short for (short,) in rows(path, "SELECT short FROM queued ORDER BY id")] == [*SHORT.values()]
    assert [url for (url,) in rows(path, "SELECT url FROM queue ORDER BY id")] == [*SHORT]
    assert len(rows(path, "SELECT id FROM queued_more")) == (len(SHORT) if more else 0)
    play(path, lease)
    assert [url.url for url in leased] == [*SHORT]
    assert {(url.relation, url.hops, url.label, url.meta) for url in leased} == {
        (Relation.REDIRECT, 2, "x", '{"a": 1}') if more else (Relation.HYPERLINK, 0, None, None)
    }


def test_nothing_is_left_of_what_left_the_queue(tmp_path: Path) -> None:
    """Finished, or gone to wait and come back, with and without more to say."""
    path = tmp_path / "frontier.db"

    async def go(store: SqliteFrontier) -> None:
        await store.claim([*claims(), *(Claim(address(str(n), "b.test"), label="x") for n in range(4))], T0)
        later = T0 + 60_000
        for now in (T0, later):
            for lease in await store.lease(wish(), now):
                first, *others = lease.urls
                last = retry(lease, first, later) if now == T0 else finished(lease, first)
                await store.settle([last, *(finished(lease, url) for url in others), released(lease, now)], [], now)
            if now == T0:
                assert len(rows(path, "SELECT id FROM queued UNION ALL SELECT id FROM queued_more")) == 0
        counts = await store.counts()
        assert sum(counts.states.values()) == len(SHORT) + 4

    play(path, go)
    assert rows(path, "SELECT id FROM queued UNION ALL SELECT id FROM queued_more") == []
    ended = {url for (url,) in rows(path, "SELECT url FROM outcome")}
    assert ended == {*SHORT, *(address(str(n), "b.test").fetch_url for n in range(4))}
