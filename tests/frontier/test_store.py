"""What the embedded frontier does beyond the contract: its file, its death and return, errors people can act on."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from crawlspace.frontier.bounds import BURIED_AT_ONCE, LONGEST_WAIT_MS, LOST_AT_ONCE
from crawlspace.frontier.quotas import DUE_AT_ONCE
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.frontier_contract_audit import audit_file
from crawlspace.testing.frontier_contract_files import opened, play
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
    released,
    retry,
    seen,
    spend,
    states,
    wish,
)
from crawlspace.types import Claimed, Lease, Pace, Pointer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "frontier.db"


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
        assert await store.due_in(T0 + 50) == 30_000

    play(path, story)


def test_a_clock_that_was_set_back_does_not_shorten_it_either(path: Path) -> None:
    async def story(store: SqliteFrontier) -> None:
        await store.claim(links(2), T0)
        lease = await one_lease(store)
        await store.settle([released(lease, T0 + 9_000)], [], T0)
        await one_lease(store, T0 + 9_000)
        await store.void_leases(T0)
        assert await store.due_in(T0) == 9_000

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
        while await store.due_in(T0) == 0:
            assert await store.lease(wish(), T0) == [], "what is about to be buried is not leased"
        assert await states(store) == {"dead": total}
        assert [host.parked for host in await store.hosts()] == [None]
        assert await store.due_in(T0) is None

    play(path, story)


def test_a_raised_budget_brings_parked_hosts_back_some_at_a_time(path: Path) -> None:
    hosts = DUE_AT_ONCE + 100

    async def spent(store: SqliteFrontier) -> None:
        await store.claim([claim for n in range(hosts) for claim in links(2, f"h{n}.test")], T0)
        assert await store.due_in(T0) is None

    async def raised(store: SqliteFrontier) -> None:
        assert await store.due_in(T0) == 0
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
        assert await store.due_in(T0) is None
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
        assert await store.due_in() is None

    play(path, story)
