"""The frontier's contract, part five: pace groups, whose hosts share a clock."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.policy.groups import GroupRule, GroupSettings
from crawlspace.testing.frontier_contract_words import (
    DELAY,
    T0,
    TTL,
    FrontierSuite,
    Store,
    finished,
    link,
    links,
    one_lease,
    spend,
    states,
    wish,
)
from crawlspace.types import Answer, Lease, Pace, Released, Settlement

GROUP_DELAY = 5_000


def by_domain(concurrency: int = 1, **fields: object) -> FrontierSettings:
    """Hosts of a domain share a clock."""
    group = GroupSettings(by="domain", delay=GROUP_DELAY / 1000, concurrency=concurrency)  # type: ignore[arg-type]
    return FrontierSettings(group=group, **fields)  # type: ignore[arg-type]


BY_ADDRESS = FrontierSettings(group=GroupSettings(by="address", delay=GROUP_DELAY / 1000))  # type: ignore[arg-type]


def back(lease: Lease, next_at: int = T0, group_next_at: int = 0, address: str | None = None) -> Released:
    """The host is let go, and its group may be asked again at this time."""
    return Released(lease.token, lease.host.hid, Pace(next_at), None, address, group_next_at)


def hosts(leases: list[Lease]) -> list[str]:
    """Names of the hosts, without their domain."""
    return sorted(lease.host.name.partition(".")[0] for lease in leases)


async def ask(store: Store, now: int, worker: int = 1) -> list[Lease]:
    """All that this worker can have."""
    return await store.lease(wish(hosts=100, urls_per_host=1, worker=worker), now)


async def domain(store: Store, n: int, urls: int = 2) -> None:
    """Hosts h0, h1, ... of one domain with so many URLs each, and a host of another."""
    await store.claim([claim for number in range(n) for claim in links(urls, f"h{number}.one.test")], T0)
    await store.claim(links(urls, "other.two.test"), T0)


class GroupSuite(FrontierSuite):
    """Pace groups."""

    def test_without_groups_hosts_of_a_domain_are_leased_together(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 5)
            leases = await ask(store, T0)
            assert len(leases) == 6
            assert {lease.host.group for lease in leases} == {None}

        self.play(story)

    @pytest.mark.parametrize("concurrency", [1, 2])
    def test_no_more_hosts_of_a_group_are_leased_than_it_has_turns(self, concurrency: int) -> None:
        async def story(store: Store) -> None:
            await domain(store, 6)
            leases = await ask(store, T0)
            assert Counter(lease.host.group for lease in leases) == {
                "domain one.test": concurrency,
                "domain two.test": 1,
            }
            assert await ask(store, T0 + DELAY) == []
            assert await store.due_in(T0 + DELAY) == TTL - DELAY

        self.play(story, by_domain(concurrency))

    def test_a_group_waits_until_its_next_time(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 3)
            first = next(lease for lease in await ask(store, T0) if lease.host.group == "domain one.test")
            told: list[Settlement] = [finished(first, first.urls[0]), back(first, T0, T0 + GROUP_DELAY)]
            assert await store.settle(told, [], T0) == [Answer.SETTLED] * 2
            assert await ask(store, T0 + GROUP_DELAY - 1) == []
            assert await store.due_in(T0 + 1) == GROUP_DELAY - 1
            [second] = await ask(store, T0 + GROUP_DELAY)
            assert second.host.name != first.host.name, "the longest waiting is next"

        self.play(story, by_domain())

    def test_hosts_of_a_group_take_turns_whatever_their_classes(self) -> None:
        """The best class is not served until it is empty: each host gets its turn."""

        async def story(store: Store) -> None:
            for number in range(4):
                await store.claim(links(30, f"h{number}.one.test", front_class=2 * number), T0)
            taken: Counter[str] = Counter()
            for now in range(T0, T0 + 40 * GROUP_DELAY, GROUP_DELAY):
                [lease] = await ask(store, now)
                taken[lease.host.name] += 1
                await store.settle(
                    [finished(lease, lease.urls[0]), back(lease, now + DELAY, now + GROUP_DELAY)], [], now
                )
            assert set(taken.values()) == {10}

        self.play(story, by_domain())

    def test_a_host_that_waits_long_for_itself_holds_up_nobody(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 2)
            slow = next(lease for lease in await ask(store, T0) if lease.host.group == "domain one.test")
            await store.settle([finished(slow, slow.urls[0]), back(slow, T0 + 900_000)], [], T0)
            [quick] = await ask(store, T0)
            assert quick.host.name != slow.host.name
            await spend(store, quick, T0)
            [again] = await ask(store, T0 + 1)
            assert again.host.name == quick.host.name

        self.play(story, by_domain())

    def test_turns_come_back_from_lost_leases_after_the_groups_delay(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 3)
            lost = await ask(store, T0)
            assert await store.reclaim(T0 + TTL) == 2
            again = [lease for lease in await ask(store, T0 + TTL + DELAY) if lease.host.group == "domain one.test"]
            assert again == [], "nobody knows when the last request of the lost lease was sent"
            [lease] = [
                lease for lease in await ask(store, T0 + TTL + GROUP_DELAY) if lease.host.group == "domain one.test"
            ]
            assert lease.host.name not in {each.host.name for each in lost}

        self.play(story, by_domain())

    def test_a_late_release_gives_no_turn_back(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 3)
            late = next(lease for lease in await ask(store, T0) if lease.host.group == "domain one.test")
            await store.reclaim(T0 + TTL)
            now = T0 + TTL + GROUP_DELAY
            await ask(store, now)
            assert await store.settle([back(late)], [], now) == [Answer.STALE]
            assert [lease.host.group for lease in await ask(store, now)] == []

        self.play(story, by_domain())

    def test_a_group_belongs_to_one_worker_at_a_time(self) -> None:
        """Its requests are kept apart by that worker's own clock, which another could not see."""

        async def story(store: Store) -> None:
            await domain(store, 4)
            mine = [lease for lease in await ask(store, T0, worker=1) if lease.host.group == "domain one.test"]
            assert len(mine) == 3
            [first, second, third] = mine
            await store.settle([back(first, T0 + 10), back(second, T0 + 10)], [], T0)
            assert await ask(store, T0 + 1, worker=2) == [], "two turns are free, but not for others"
            assert await ask(store, T0 + 10, worker=2) == []
            mine = [third, *await ask(store, T0 + 20, worker=1)]
            assert len(mine) == 3
            await store.settle([back(lease, T0 + 30) for lease in mine], [], T0 + 20)
            theirs = await ask(store, T0 + 40, worker=2)
            assert len(theirs) == 3
            assert await ask(store, T0 + 40, worker=1) == []

        self.play(story, by_domain(3))

    def test_many_hosts_of_one_group_are_all_served(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 60, urls=1)
            await store.claim(links(3, "late.three.test", front_class=9), T0)
            now, served = T0, 0
            while (await states(store)).get("queued", 0):
                leases = await ask(store, now)
                assert len([lease for lease in leases if lease.host.group == "domain one.test"]) <= 1
                served += len(leases)
                for lease in leases:
                    told: list[Settlement] = [finished(lease, lease.urls[0]), back(lease, now, now + 100)]
                    await store.settle(told, [], now)
                due = await store.due_in(now)
                assert leases or due != 0, "whoever is told to ask at once gets something"
                now += due or 0
            assert served == 64
            assert now <= T0 + 70 * 100

        self.play(story, by_domain())

    def test_hosts_of_one_address_are_a_group_once_it_is_known(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([claim for name in "abc" for claim in links(2, f"x.{name}.test")], T0)
            unknown = await ask(store, T0)
            assert [lease.host.group for lease in unknown] == [None] * 3
            where = {"x.a.test": "192.0.2.1", "x.b.test": "192.0.2.1", "x.c.test": "192.0.2.3"}
            await store.settle([back(lease, T0, 0, where[lease.host.name]) for lease in unknown], [], T0)
            leases = await ask(store, T0)
            assert sorted(lease.host.group or "" for lease in leases) == ["address 192.0.2.1", "address 192.0.2.3"]
            assert {lease.host.address for lease in leases} == {"192.0.2.1", "192.0.2.3"}

        self.play(story, BY_ADDRESS)

    def test_hosts_that_fit_a_rule_are_a_group_of_their_own(self) -> None:
        rules = (GroupRule(host=r"^h\d+\.", delay=2.0, concurrency=2), GroupRule(host="glob:*.one.test"))
        settings = FrontierSettings(group=GroupSettings(rules=rules))

        async def story(store: Store) -> None:
            await domain(store, 5)
            await store.claim([*links(2, "x.one.test"), *links(2, "y.one.test")], T0)
            leases = await ask(store, T0)
            assert Counter(lease.host.group for lease in leases) == {
                r"rule ^h\d+\.": 2,
                "rule glob:*.one.test": 1,
                None: 1,
            }

        self.play(story, settings)

    def test_a_visit_gets_no_more_urls_than_fit_its_groups_delay(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(20, "h.one.test"), T0)
            lease = await one_lease(store, urls_per_host=20)
            assert len(lease.urls) == 60_000 // GROUP_DELAY

        self.play(story, by_domain())

    def test_a_host_tells_for_which_group_it_waits(self) -> None:
        async def story(store: Store) -> None:
            await domain(store, 2)
            first = next(lease for lease in await ask(store, T0) if lease.host.group == "domain one.test")
            await store.settle([back(first, T0, T0 + GROUP_DELAY, "192.0.2.9")], [], T0)
            figures = {host.name: host for host in await store.hosts()}
            waiting = next(host for name, host in figures.items() if "one" in name and name != first.host.name)
            assert (waiting.parked, waiting.group, waiting.group_next_at) == (
                "group",
                "domain one.test",
                T0 + GROUP_DELAY,
            )
            assert figures[first.host.name].address == "192.0.2.9"

        self.play(story, by_domain())

    def test_a_spent_host_takes_no_turn(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("0", "a.one.test"), link("1", "a.one.test"), link("0", "b.one.test")], T0)
            [lease] = await ask(store, T0)
            await store.settle([finished(lease, lease.urls[0]), back(lease)], [], T0)
            [other] = await ask(store, T0)
            await store.settle([finished(other, other.urls[0]), back(other)], [], T0)
            assert await ask(store, T0) == []
            assert await store.due_in(T0) is None

        self.play(story, by_domain(pages_per_host=1))

    @pytest.mark.parametrize("seed", range(6))
    def test_whatever_happens_groups_keep_their_bounds_and_everybody_is_served(self, seed: int) -> None:
        """Two workers and leases that are lost: bounds hold at each moment, and all comes to an end."""
        chance = random.Random(seed)
        concurrency = 1 + seed % 3

        async def story(store: Store) -> None:
            play = _Play(store, chance, concurrency)
            for number in range(12):
                await store.claim(links(4, f"h{number}.d{number % 3}.test", front_class=chance.randrange(10)), T0)
            for _ in range(120):
                await play.one()
            await play.end()
            ended = await states(store)
            assert ended.keys() <= {"done", "dead"}, "a lease that is lost alone may bury its URL"
            assert sum(ended.values()) == 48

        self.play(story, by_domain(concurrency, pages_per_host=None))


class _Play:
    """What two workers do by chance, and what must hold of it."""

    def __init__(self, store: Store, chance: random.Random, concurrency: int) -> None:
        self._store = store
        self._chance = chance
        self._concurrency = concurrency
        self._now = T0
        self._held: dict[int, tuple[int, Lease, int]] = {}
        """Worker, lease and end of each live lease, by token."""
        self._next_at: Counter[str] = Counter()

    async def one(self) -> None:
        """Something."""
        match self._chance.randrange(5):
            case 0 | 1:
                await self._lease(self._chance.choice((1, 2)))
            case 2 | 3 if self._held:
                await self._let_go(self._chance.choice(list(self._held)))
            case _:
                self._now += self._chance.choice((1, 700, GROUP_DELAY, TTL // 2))
                await self._lose()

    async def end(self) -> None:
        """Go on until nothing is left."""
        for _ in range(1_000):
            for token in list(self._held):
                await self._let_go(token)
            await self._lease(1)
            due = await self._store.due_in(self._now)
            if due is None:
                return
            self._now += due
            await self._lose()
        raise AssertionError("somebody is never served")

    async def _lease(self, worker: int) -> None:
        leases = await self._store.lease(
            wish(self._chance.randrange(1, 9), self._chance.randrange(1, 3), worker), self._now
        )
        for lease in leases:
            group = lease.host.group
            assert group is not None
            assert self._now >= self._next_at[group]
            self._held[lease.token] = worker, lease, self._now + TTL
        for group in {lease.host.group for lease in leases}:
            of_group = [held for held in self._held.values() if held[1].host.group == group]
            assert len(of_group) <= self._concurrency
            assert len({held[0] for held in of_group}) == 1, "a group has one worker at a time"

    async def _let_go(self, token: int) -> None:
        _, lease, _ = self._held.pop(token)
        group = lease.host.group or ""
        next_at = self._now + self._chance.choice((0, GROUP_DELAY))
        self._next_at[group] = max(self._next_at[group], next_at)
        told: list[Settlement] = [finished(lease, url) for url in lease.urls]
        told.append(back(lease, self._now + self._chance.choice((0, DELAY)), next_at))
        await self._store.settle(told, [], self._now)

    async def _lose(self) -> None:
        lost = [token for token, (_, _, until) in self._held.items() if until <= self._now]
        assert await self._store.reclaim(self._now) == len(lost)
        for token in lost:
            _, lease, _ = self._held.pop(token)
            self._next_at[lease.host.group or ""] = self._now + GROUP_DELAY
