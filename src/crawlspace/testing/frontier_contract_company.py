"""The frontier's contract, part eight: workers that share the hosts out among them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, cast

from msgspec.structs import replace

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.groups import GroupRule, GroupSettings
from crawlspace.policy.sharing import part, surplus
from crawlspace.ports import Company
from crawlspace.testing.frontier_contract_words import (
    DELAY,
    T0,
    TTL,
    FrontierSuite,
    Store,
    finished,
    links,
    released,
    spend,
    wish,
)
from crawlspace.types import Crew, Lease

MOST = 100
"""Hosts that a worker visits at once."""
WORD = 5_000


class SharedStore(Store, Company, Protocol):
    """What this part is about."""


class Hand:
    """A worker, with the hosts that it holds. It leases only when it is told to."""

    def __init__(self, store: SharedStore, number: int, most: int = MOST) -> None:
        self.store = store
        self.number = number
        self.most = most
        self.leases: list[Lease] = []
        self.crew = Crew((), 0, 0)

    async def meet(self, now: int = T0) -> int:
        """How many hosts it should give back."""
        self.crew = await self.store.meet(self.number, self.most, WORD, now)
        return surplus(self.lone, self.part, self.crew)

    @property
    def part(self) -> int:
        return part(self.most, self.crew)

    @property
    def lone(self) -> int:
        return sum(lease.host.group is None for lease in self.leases)

    async def take(self, now: int = T0) -> int:
        """Lease what it may; how many that were."""
        left = max(0, self.part - self.lone) if self.crew.others else None
        room = self.most - len(self.leases)
        got = await self.store.lease(replace(wish(room, 10, self.number), lone=left), now)
        self.leases += got
        return len(got)

    async def give(self, hosts: int, now: int = T0) -> None:
        """Give back hosts, unspent but for one URL each."""
        for lease in self.leases[:hosts]:
            await self.store.settle([finished(lease, lease.urls[0]), released(lease, now)], [], now)
        del self.leases[:hosts]


async def sixteen_hosts(store: Store) -> None:
    await store.claim(
        [claim for host in range(16) for claim in links(20, f"h{host}.test", front_class=host % 10)], T0
    )


class CompanySuite(FrontierSuite):
    """Workers that share hosts."""

    def together(
        self, story: Callable[[SharedStore], Awaitable[None]], settings: FrontierSettings | None = None
    ) -> None:
        self.play(lambda store: story(cast("SharedStore", store)), settings)

    def test_two_workers_have_eight_of_sixteen_hosts_each(self) -> None:
        """Though one came first and took all."""

        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            first, second = Hand(store, 1), Hand(store, 2)
            assert await first.meet() == 0
            assert await first.take() == 16
            assert await second.meet() == 0
            assert (second.part, await second.take()) == (8, 0)
            assert await first.meet() == 8
            await first.give(8)
            assert await first.take() == 0, "what was given back is for the other"
            assert await first.meet() == 0
            assert await second.take() == 8
            for now in range(T0, T0 + 6 * WORD, WORD // 2):
                for hand in (first, second):
                    assert await hand.meet(now) == 0, "nobody gives back what is his part"
                    await hand.give(3, now)
                    assert await hand.take(now) == 3
            assert (first.lone, second.lone) == (8, 8)

        self.together(story)

    def test_a_worker_alone_gets_all(self) -> None:
        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            alone = Hand(store, 1)
            for now in (T0, T0 + WORD, T0 + 100 * WORD):
                assert await alone.meet(now) == 0
                assert alone.crew == Crew((), 0, 0)
                assert await alone.take(now) == 16
                await alone.give(16, now)

        self.together(story)

    def test_the_part_of_a_worker_that_dies_is_for_the_others(self) -> None:
        """What it took no more of at once, what it held when its leases end."""

        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            first, second = Hand(store, 1), Hand(store, 2)
            await second.meet()
            await first.meet()
            await second.meet()
            assert (await second.take(), await first.take()) == (8, 8)
            now = T0 + WORD
            assert (await store.meet(1, MOST, WORD, now - 1)).others == (MOST,)
            await first.meet(now)
            assert not first.crew.others
            now = T0 + TTL
            assert await store.renew([lease.token for lease in first.leases], TTL, now) == [True] * 8
            assert await store.reclaim(now) == 8
            assert await first.take(now + DELAY) == 8

        self.together(story)

    def test_a_worker_that_takes_no_more_leaves_its_part(self) -> None:
        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            first, second = Hand(store, 1), Hand(store, 2)
            await second.meet()
            await first.meet()
            assert await first.take() == 8
            assert await store.meet(2, 0, WORD, T0) == Crew((MOST,), 16, 8)
            await first.meet()
            assert first.crew.others == ()
            assert await first.take() == 8

        self.together(story)

    def test_what_a_small_worker_cannot_visit_is_for_the_others(self) -> None:
        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            large, small = Hand(store, 1), Hand(store, 2, most=3)
            await small.meet()
            await large.meet()
            assert await large.take() == 13
            await small.meet()
            assert await small.take() == 3
            assert (await large.meet(), await small.meet()) == (0, 0)

        self.together(story)

    def test_hosts_that_rest_for_long_and_those_of_others_do_not_count(self) -> None:
        """Nor more free ones than all could take."""

        async def story(store: SharedStore) -> None:
            await sixteen_hosts(store)
            [one] = await store.lease(wish(1, 1, worker=7), T0)
            [two, three] = await store.lease(wish(2, 1, worker=8), T0)
            await store.settle([released(two, T0 + WORD), released(three, T0 + WORD + 1)], [], T0)
            await store.meet(1, 2, WORD, T0)
            assert await store.meet(2, MOST, WORD, T0) == Crew((2,), 14, 13)
            await store.meet(2, 1, WORD, T0)
            assert await store.meet(1, 2, WORD, T0) == Crew((1,), 3, 3)
            await store.meet(7, MOST, WORD, T0)
            await store.meet(2, MOST, WORD, T0)
            assert await store.meet(1, 2, WORD, T0) == Crew((MOST, MOST), 15, 13)
            await spend(store, one)

        self.together(story)

    def test_a_groups_hosts_are_nobodys_part(self) -> None:
        """Its turns are one worker's: what that one leaves, no other could take."""
        rule = GroupRule(host="glob:*.one.test", delay=0, concurrency=6)

        async def story(store: SharedStore) -> None:
            hosts = [*(f"h{n}.one.test" for n in range(10)), *(f"h{n}.test" for n in range(20))]
            await store.claim([claim for host in hosts for claim in links(3, host)], T0)
            first, second = Hand(store, 1), Hand(store, 2)
            for hand in (first, second, first):
                await hand.meet()
            await first.take()
            assert first.lone == first.part == 15
            assert len(first.leases) == 15 + 6, "beside its part it has all turns of the group"
            await second.meet()
            assert await second.take() == 5
            assert second.lone == 5
            assert await first.meet() == 5
            grouped = [lease for lease in first.leases if lease.host.group is not None]
            first.leases.sort(key=lambda lease: lease.host.group is None)
            await first.give(6)
            assert await first.take() == 6, "of the group, though its part is used up"
            assert {lease.host.group for lease in first.leases[-6:]} == {grouped[0].host.group}

        self.together(story, FrontierSettings(group=GroupSettings(rules=(rule,))))

    def test_words_are_no_facts_of_the_crawl_and_a_wrong_clock_writes_none(self) -> None:
        async def story(store: SharedStore) -> None:
            before = await store.notes()
            await store.meet(1, MOST, WORD, T0 + 1_000_000_000)
            assert await store.notes() == before
            assert (await store.meet(2, MOST, WORD, T0)).others == ()
            await store.meet(1, MOST, WORD, T0)
            assert (await store.meet(2, MOST, WORD, T0)).others == (MOST,)

        self.together(story)
