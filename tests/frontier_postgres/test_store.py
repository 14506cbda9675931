"""What the shared store does beyond the contract: many workers, the server's clock, and text from the web."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from psycopg import sql

from crawlspace.clock import SystemClock
from crawlspace.exchange import RobotsFile, RobotsVerdict
from crawlspace.frontier.bounds import BURIED_AT_ONCE, LONGEST_WAIT_MS
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.postgres.control import TAKEN_MS
from crawlspace.frontier.postgres.store import LOOK_AGAIN_MS
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.commands import Asked
from crawlspace.testing.frontier_contract_words import (
    T0,
    TTL,
    address,
    end_all,
    finished,
    link,
    links,
    one_lease,
    released,
    retry,
    spend,
    states,
    wish,
)
from crawlspace.types import Answer, Evidence, Pointer, Wish

Story = Callable[[PostgresFrontier], Awaitable[None]]
Places = Callable[..., Place]
Opened = Callable[..., Awaitable[PostgresFrontier]]
Play = Callable[..., None]


# -- many workers -------------------------------------------------------------------------------------------


def test_a_worker_voids_its_own_leases_and_no_others(place: Place, play: Play, opened: Opened) -> None:
    async def story(first: PostgresFrontier) -> None:
        second = await opened(place, "second")
        await first.claim([link("x", f"h{n}.test") for n in range(4)], T0)
        [kept, _] = await second.lease(Wish(second.worker, 2, 5, TTL, TTL), T0)
        await first.lease(Wish(first.worker, 2, 5, TTL, TTL), T0)
        assert await states(first) == {"leased": 4}
        again = await opened(place)
        assert again.worker == first.worker != second.worker
        assert await again.void_leases(T0) == 2
        assert await states(first) == {"queued": 2, "leased": 2}
        assert await second.renew([kept.token], TTL, T0) == [True]
        assert await again.reclaim(T0 + TTL) == 2, "anybody takes back what has expired"
        await again.close()
        await second.close()

    play(place, story)


def test_each_worker_knows_the_files_of_its_own_archive(place: Place, play: Play, opened: Opened) -> None:
    async def story(first: PostgresFrontier) -> None:
        second = await opened(place, "second")
        await first.claim([link("x", "a.test"), link("x", "b.test")], T0)
        for store, file in ((first, "1.warc.gz"), (second, "2.warc.gz")):
            [lease] = await store.lease(wish(hosts=1), T0)
            evidence = Evidence(at=T0, status=200, pointer=Pointer(file, 100, 50))
            await store.settle([finished(lease, lease.urls[0], evidence), released(lease)], [], T0)
        assert (await first.segments(), await second.segments()) == ({"1.warc.gz": 150}, {"2.warc.gz": 150})
        stories = await second.find([address("x", host).key for host in ("a.test", "b.test")])
        files = {told.evidence.pointer.file for told in stories if told and told.evidence and told.evidence.pointer}
        assert files == {"1.warc.gz", "2.warc.gz"}
        await second.close()

    play(place, story)


def test_the_first_key_of_the_fingerprints_stays(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.note({"hash_key": "first", "scope": "1"})
        await store.note({"hash_key": "second", "scope": "2"})
        notes = await store.notes()
        assert (notes["hash_key"], notes["scope"], notes["shards"]) == ("first", "2", "16")

    play(place, story)


def test_a_command_is_carried_out_by_one_worker(place: Place, play: Play, opened: Opened) -> None:
    """Another gets it only when the first has not been heard of for some time."""

    async def story(first: PostgresFrontier) -> None:
        clock = SystemClock()
        one, two = await opened(place, "one", clock), await opened(place, "two", clock)
        beside = await PostgresFrontier.open_beside(place, FrontierSettings(), clock)
        [number] = await beside.ask(["{}"])
        assert [asked.number for asked in await one.asked()] == [number]
        assert await two.asked() == []
        assert [asked.number for asked in await one.asked()] == [number]
        assert [asked.number for asked in await beside.asked()] == [number], "looking takes nothing"
        async with one._sessions.plain() as connection:
            await connection.execute("UPDATE control SET taken_until = taken_until - %s", [TAKEN_MS])
        assert [asked.number for asked in await two.asked()] == [number]
        await two.rule([], Asked(number, "{}", '{"n":1}', done=True))
        assert await one.asked() == []
        [answer] = await beside.answers([number])
        assert answer == Asked(number, "{}", '{"n":1}', done=True)
        for store in (one, two, beside):
            await store.close()

    play(place, story)


def test_stores_may_open_a_new_crawl_at_the_same_time(place: Place, opened: Opened) -> None:
    async def run() -> None:
        stores = await asyncio.gather(*(opened(place, f"w{n}") for n in range(5)))
        assert len({store.worker for store in stores}) == 5
        await asyncio.gather(*(store.claim(links(20), T0) for store in stores))
        assert await states(stores[0]) == {"queued": 20}
        await asyncio.gather(*(store.close() for store in stores))

    asyncio.run(run())


def test_a_dump_that_holds_its_snapshot_does_not_stop_the_crawl(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim([link(str(n), f"h{n % 50}.test") for n in range(1_500)], T0)
        with psycopg.connect(place.address) as dump:
            dump.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            dump.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(place.schema, "queue")))
            await end_all(store)
        assert await states(store) == {"done": 1_500}

    play(place, story)


# -- the server's clock -------------------------------------------------------------------------------------


class Skewed(SystemClock):
    """A machine whose clock is wrong."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now(self) -> int:
        return super().now() + self._ahead_ms


@pytest.mark.parametrize("ahead", [-3_600_000, 0, 3_600_000])
def test_a_worker_with_a_wrong_clock_sees_its_own_time_and_the_store_the_servers(
    place: Place, ahead: int, opened: Opened
) -> None:
    """What it says of a host's next time comes out right for others, never too early."""

    async def run() -> None:
        wrong, right = await opened(place, "wrong", Skewed(ahead)), await opened(place, "right", SystemClock())
        await wrong.claim(links(2))
        [lease] = await wrong.lease(wish(urls_per_host=2))
        assert abs(lease.until - TTL - Skewed(ahead).now()) < 10_000
        theirs = Skewed(ahead).now()
        told = [retry(lease, lease.urls[0], theirs + 90_000), released(lease, theirs + 60_000)]
        assert await wrong.settle(told, []) == [Answer.SETTLED] * 2
        ours = SystemClock().now()
        delayed, queued = await right.find([address("0").key, address("1").key])
        assert delayed is not None
        assert queued is not None
        assert 90_000 <= (delayed.due or 0) - ours + 5_000 < 100_000
        assert (queued.due or 0) >= ours + 60_000 - (ours - theirs + ahead)
        assert await right.lease(wish()) == []
        for store in (wrong, right):
            due = await store.due_in()
            assert due is not None
            assert due == LOOK_AGAIN_MS, "others may queue something: look again soon"
            await store.close()

    asyncio.run(run())


def test_a_wait_that_only_a_wrong_clock_can_have_written_is_cut_at_the_start(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(1), T0)
        lease = await one_lease(store)
        await store.settle([released(lease, T0 + 10 * LONGEST_WAIT_MS)], [], T0)
        assert await store.void_leases(T0) == 0
        assert await store.due_in(T0) == LONGEST_WAIT_MS

    play(place, story)


# -- large hosts and changed settings -----------------------------------------------------------------------


def test_a_large_host_is_buried_in_parts(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        total = BURIED_AT_ONCE + 10
        await store.claim(links(total), T0)
        lease = await one_lease(store)
        await store.settle([retry(lease, lease.urls[0], T0 + 9)], [], T0)
        await store.settle([released(lease, T0, condemned="host_unreachable")], [], T0)
        assert await states(store) == {"queued": 10, "dead": BURIED_AT_ONCE}
        assert [host.parked for host in await store.hosts()] == ["condemned"]
        assert await store.due_in(T0) == 0
        assert await store.lease(wish(), T0) == []
        assert await states(store) == {"dead": total}
        assert [host.parked for host in await store.hosts()] == [None]
        assert await store.due_in(T0) is None

    play(place, story)


def test_a_raised_budget_brings_hosts_back_and_a_lowered_one_parks_them_in_their_turn(
    place: Place, play: Play
) -> None:
    async def spent(store: PostgresFrontier) -> None:
        await store.claim([*links(3), *links(3, "seed.test", seed_host=True)], T0)
        await end_all(store)
        assert await states(store) == {"queued": 4, "done": 2}
        assert await store.due_in(T0) is None

    async def raised(store: PostgresFrontier) -> None:
        assert await store.due_in(T0) == 0
        leases = await store.lease(wish(urls_per_host=1), T0)
        assert [lease.host.name for lease in leases] == ["a.test", "seed.test"]
        for lease in leases:
            await spend(store, lease)

    async def lowered(store: PostgresFrontier) -> None:
        assert await store.lease(wish(), T0) == []
        assert [(host.parked, host.queued) for host in await store.hosts()] == [("host_budget", 1)] * 2
        assert await store.due_in(T0) is None

    play(place, spent, pages_per_host=1, pages_per_seed_host=1)
    play(place, raised, pages_per_host=9, pages_per_seed_host=9)
    play(place, lowered, pages_per_host=2, pages_per_seed_host=2)


def test_a_raised_budget_that_is_used_up_already_changes_nothing(place: Place, play: Play) -> None:
    """Requests that were under way when a host was parked count too."""

    async def story(store: PostgresFrontier) -> None:
        await store.claim(links(5), T0)
        lease = await one_lease(store, urls_per_host=3)
        for url in lease.urls:
            await store.settle([finished(lease, url)], [], T0)
        await store.settle([released(lease)], [], T0)

    async def raised(store: PostgresFrontier) -> None:
        assert await store.due_in(T0) is None
        assert await store.lease(wish(), T0) == []

    play(place, story, pages_per_host=3)
    play(place, raised, pages_per_host=2)


# -- text from the web --------------------------------------------------------------------------------------


def test_text_that_the_database_cannot_keep_does_not_stop_a_crawl(place: Place, play: Play) -> None:
    async def story(store: PostgresFrontier) -> None:
        await store.claim([link("x", label="a\0b")], T0)
        lease = await one_lease(store)
        evidence = Evidence(at=T0, status=200, mime="text/\0html", etag="\ud800", detail='"\\\0')
        await store.settle([finished(lease, lease.urls[0], evidence), released(lease)], [], T0)
        [told] = await store.find([address("x").key])
        assert told is not None
        assert told.evidence is not None
        assert (told.label, told.evidence.mime, told.evidence.etag) == ("a\ufffdb", "text/\ufffdhtml", "?")
        file = RobotsFile("http://a.test", T0, T0, RobotsVerdict.RULES, "User-agent: *\0\nDisallow: /\ud800", "200")
        await store.keep_robots([file, file])
        [kept] = await store.robots(["http://a.test"])
        assert kept is not None
        assert kept.text == "User-agent: *\ufffd\nDisallow: /?"

    play(place, story)
