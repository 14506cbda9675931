"""The frontier's contract, part two: who gets which host, in which order, and when."""

from __future__ import annotations

import asyncio

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_words import (
    DELAY,
    T0,
    TTL,
    FrontierSuite,
    Store,
    address,
    all_answers,
    end_all,
    finished,
    link,
    links,
    names,
    one_lease,
    only_state,
    released,
    retry,
    spend,
    states,
    wish,
)
from crawlspace.types import Answer, Pace, Settlement


class LeaseSuite(FrontierSuite):
    """Leases."""

    def test_a_lost_lease_settles_nothing(self) -> None:
        """Two workers, one lost lease: the first comes back late, and nothing it says counts."""

        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            first = await one_lease(store)
            assert await store.reclaim(T0 + TTL) == 1
            second = await one_lease(store, T0 + TTL + DELAY)
            assert second.token > first.token
            before = await store.counts()
            late: list[Settlement] = [*(finished(first, url) for url in first.urls), released(first, T0)]
            assert all_answers(Answer.STALE, await store.settle(late, [], T0 + TTL + DELAY))
            assert await store.counts() == before
            assert await store.renew([first.token, second.token], TTL, T0 + TTL + DELAY) == [False, True]
            await spend(store, second, T0 + TTL + DELAY)
            assert await only_state(store, names(second.urls)[0]) is UrlState.DONE

        self.play(story)

    def test_a_host_is_leased_to_one_worker_only(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(5, "a.test"), *links(5, "b.test")], T0)
            asked = (store.lease(wish(hosts=2, urls_per_host=1, worker=worker), T0) for worker in range(8))
            leases = [lease for got in await asyncio.gather(*asked) for lease in got]
            assert sorted(lease.host.name for lease in leases) == ["a.test", "b.test"]
            assert await store.lease(wish(), T0) == []

        self.play(story)

    def test_tokens_increase_and_are_never_used_again(self) -> None:
        async def story(store: Store) -> None:
            tokens: list[int] = []
            await store.claim([claim for host in "abc" for claim in links(4, f"{host}.test")], T0)
            for round_ in range(4):
                leases = await store.lease(wish(hosts=3, urls_per_host=1), T0 + round_)
                tokens += (lease.token for lease in leases)
                for lease in leases:
                    await spend(store, lease)
            assert len(tokens) == 12
            assert tokens == sorted(set(tokens))
            assert tokens[0] > 0

        self.play(story)

    def test_urls_leave_by_class_then_arrival(self) -> None:
        async def story(store: Store) -> None:
            order = [("late", 9), ("a", 5), ("b", 5), ("first", 0), ("c", 5), ("second", 1)]
            await store.claim([link(name, front_class=front_class) for name, front_class in order], T0)
            lease = await one_lease(store)
            assert names(lease.urls) == ["first", "second", "a", "b", "c", "late"]
            assert [url.id for url in lease.urls] == [4, 6, 2, 3, 5, 1]

        self.play(story)

    def test_hosts_leave_by_class_then_time(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", "late.test", front_class=7), link("x", "early.test", front_class=2)], T0)
            leases = await store.lease(wish(hosts=5), T0)
            assert [lease.host.name for lease in leases] == ["early.test", "late.test"]
            await store.claim([link("y", "late.test", front_class=2), link("y", "early.test", front_class=2)], T0)
            for lease, next_at in zip(leases, (T0 + 20, T0 + 10), strict=True):
                await store.settle([finished(lease, lease.urls[0]), released(lease, next_at)], [], T0)
            leases = await store.lease(wish(hosts=1), T0 + 30)
            assert [lease.host.name for lease in leases] == ["late.test"]

        self.play(story)

    def test_a_host_waits_in_the_class_of_its_best_url(self) -> None:
        """When its better URLs are done, it stands behind hosts that have better ones left."""

        async def story(store: Store) -> None:
            await store.claim([link("first", "a.test", front_class=0), link("last", "a.test", front_class=7)], T0)
            await store.claim([link("middle", "b.test", front_class=5)], T0)
            [lease] = await store.lease(wish(hosts=1, urls_per_host=1), T0)
            assert names(lease.urls) == ["first"]
            await spend(store, lease)
            [lease] = await store.lease(wish(hosts=1), T0)
            assert names(lease.urls) == ["middle"]

        self.play(story)

    def test_no_class_starves(self) -> None:
        """However many hosts of a better class are due, the worst class gets its share of a hundred leases."""

        async def story(store: Store) -> None:
            await store.claim([link("x", "worst.test", front_class=9)], T0)
            await store.claim([claim for n in range(30) for claim in links(40, f"h{n}.test", front_class=0)], T0)
            taken: list[str] = []
            for round_ in range(100):
                for lease in await store.lease(wish(hosts=1, urls_per_host=1), T0 + round_):
                    taken.append(lease.host.name)
                    await spend(store, lease, T0 + round_)
            assert len(taken) == 100
            assert "worst.test" in taken

        self.play(story)

    def test_a_host_rests_until_its_next_time(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(3), T0)
            assert await store.due_in(T0) is not None
            lease = await one_lease(store, urls_per_host=1)
            assert await store.due_in(T0) == TTL
            clock = Pace(T0 + 5_000, delay_ms=5_000, crawl_delay_ms=4_000, failures=2, slowed=1)
            await store.settle([finished(lease, lease.urls[0])], [], T0)
            answer = await store.settle(
                [released(lease, T0 + 5_000, delay_ms=5_000, crawl_delay_ms=4_000, failures=2, slowed=1)], [], T0
            )
            assert answer == [Answer.SETTLED]
            assert await store.due_in(T0) == 5_000
            assert await store.lease(wish(), T0 + 4_999) == []
            lease = await one_lease(store, T0 + 5_000)
            assert lease.host.pace == clock
            assert lease.host.fetched == 1

        self.play(story)

    def test_a_visit_gets_no_more_urls_than_fit_its_time(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(20), T0)
            lease = await one_lease(store)
            await store.settle([released(lease, T0, delay_ms=2_000)], [], T0)
            [lease] = await store.lease(wish(visit_ms=7_000), T0)
            assert len(lease.urls) == 3
            await store.settle([released(lease, T0, delay_ms=60_000)], [], T0)
            [lease] = await store.lease(wish(visit_ms=7_000), T0)
            assert len(lease.urls) == 1
            await store.settle([released(lease, T0, delay_ms=0)], [], T0)
            [lease] = await store.lease(wish(visit_ms=7_000, urls_per_host=15), T0)
            assert len(lease.urls) == 15

        self.play(story)

    def test_unspent_urls_return_without_a_trace(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(3), T0)
            first = await one_lease(store)
            assert await states(store) == {"leased": 3}
            await store.settle([finished(first, first.urls[0]), released(first)], [], T0)
            assert await states(store) == {"queued": 2, "done": 1}
            second = await one_lease(store)
            assert second.urls == first.urls[1:]

        self.play(story)

    def test_a_lost_lease_makes_suspects_that_are_leased_alone(self) -> None:
        """No try is used up; a neighbour that is no suspect is not leased beside one that is."""

        async def story(store: Store) -> None:
            await store.claim(links(3), T0)
            lease = await one_lease(store)
            await store.settle([finished(lease, lease.urls[1])], [], T0)
            await store.claim([link("new")], T0)
            assert await store.reclaim(T0 + TTL - 1) == 0
            assert await store.reclaim(T0 + TTL) == 1
            now = T0 + TTL
            assert await store.lease(wish(), now + DELAY - 1) == [], "the host waits its delay after a loss"
            for name in ("0", "2"):
                now += DELAY
                lease = await one_lease(store, now)
                assert names(lease.urls) == [name]
                assert (lease.urls[0].suspect, lease.urls[0].attempts) == (1, 0)
                await spend(store, lease, now)
            lease = await one_lease(store, now + DELAY)
            assert (names(lease.urls), lease.urls[0].suspect) == (["new"], 0)

        self.play(story)

    def test_a_url_that_kills_its_workers_dies(self) -> None:
        """Lost once in company and three times alone; its neighbour lives."""

        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            now = T0
            lease = await one_lease(store, now)
            for losses in range(4):
                assert await only_state(store, "0") is UrlState.LEASED, losses
                now += TTL
                assert await store.reclaim(now) == 1
                now += DELAY
                lease = await one_lease(store, now)
            assert names(lease.urls) == ["1"]
            [letter] = await store.dead()
            assert (letter.error, letter.attempts) == ("crashes_worker", 0)
            assert await states(store) == {"leased": 1, "dead": 1}

        self.play(story)

    def test_leases_that_are_lost_together_blame_no_url(self) -> None:
        """Who kills a crawl again and again has found no bad page: the worker had others in hand each time."""

        async def story(store: Store) -> None:
            await store.claim([*links(1, "a.test"), *links(1, "b.test")], T0)
            now = T0
            for _ in range(6):
                leases = await store.lease(wish(hosts=2), now)
                assert len(leases) == 2
                now += TTL
                assert await store.reclaim(now) == 2
                now += DELAY
            assert {url.suspect for lease in await store.lease(wish(hosts=2), now) for url in lease.urls} == {1}
            assert await store.dead() == []

        self.play(story)

    def test_a_renewed_lease_lives_on(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(1), T0)
            lease = await one_lease(store)
            assert await store.renew([lease.token], TTL, T0 + TTL - 1) == [True]
            assert await store.reclaim(T0 + TTL) == 0
            assert await store.due_in(T0 + TTL) == TTL - 1
            await spend(store, lease, T0 + TTL)
            assert await store.renew([lease.token, 999], TTL, T0 + TTL) == [False, False]

        self.play(story)

    def test_a_host_out_of_budget_is_parked_with_its_urls(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(5, "a.test"), *links(5, "seed.test", seed_host=True)], T0)
            await end_all(store)
            assert await states(store) == {"queued": 2, "done": 8}
            figures = {host.name: (host.fetched, host.queued, host.parked) for host in await store.hosts()}
            assert figures == {"a.test": (3, 2, "host_budget"), "seed.test": (5, 0, None)}
            assert await store.due_in(T0) is None

        self.play(story, FrontierSettings(pages_per_host=3))

    def test_zero_pages_means_none(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(2, "a.test"), *links(1, "seed.test", seed_host=True)], T0)
            await end_all(store)
            assert await states(store) == {"queued": 2, "done": 1}

        self.play(story, FrontierSettings(pages_per_host=0))

    def test_a_host_that_turns_out_to_be_a_seeds_gets_a_seeds_budget(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(4), T0)
            await end_all(store)
            await store.claim([link("0", seed_host=True)], T0)
            assert await store.due_in(T0) is not None
            await end_all(store)
            assert await states(store) == {"done": 4}

        self.play(story, FrontierSettings(pages_per_host=2))

    def test_a_condemned_host_loses_what_waits(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(4, "a.test"), *links(1, "b.test")], T0)
            [lease, _] = await store.lease(wish(urls_per_host=2), T0)
            await store.settle([retry(lease, lease.urls[0], T0 + 9_000)], [], T0)
            await store.settle([released(lease, T0, condemned="host_unreachable")], [], T0)
            assert await states(store) == {"leased": 1, "dead": 4}
            letters = await store.dead()
            assert [(letter.error, letter.attempts) for letter in letters] == [
                ("host_unreachable", attempts) for attempts in (1, 0, 0, 0)
            ]
            assert {letter.host for letter in letters} == {"a.test"}
            await store.claim([link("found later", "a.test")], T0)
            [lease] = await store.lease(wish(), T0)
            assert names(lease.urls) == ["found later"]

        self.play(story)

    def test_revived_urls_of_a_condemned_host_are_leased_again(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(2), T0)
            lease = await one_lease(store)
            await store.settle([released(lease, T0, condemned="host_unreachable")], [], T0)
            assert await store.revive([1, 2, 2, 3]) == 2
            lease = await one_lease(store)
            assert [url.key for url in lease.urls] == [address("0").key, address("1").key]

        self.play(story)
