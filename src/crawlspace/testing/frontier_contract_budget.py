"""The frontier's contract, part seven: the page budget, which all workers of a crawl share."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from crawlspace.states import UrlState
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
from crawlspace.types import Lease, Reason, Refused, Wish


def within(pages: int, hosts: int = 10, urls_per_host: int = 10, worker: int = 1) -> Wish:
    """What a worker of a crawl with this budget asks for."""
    return replace(wish(hosts, urls_per_host, worker), pages=pages)


def urls(leases: list[Lease]) -> int:
    return sum(len(lease.urls) for lease in leases)


class BudgetSuite(FrontierSuite):
    """Leases under a page budget."""

    @pytest.mark.parametrize("pages", [0, 1, 2, 7, 30])
    def test_no_more_urls_are_given_out_than_the_budget_has_pages_however_many_ask_at_once(self, pages: int) -> None:
        """And in the end exactly as many, or all there are."""

        async def story(store: Store) -> None:
            await store.claim([claim for host in "abcd" for claim in links(6, f"{host}.test")], T0)
            done, now = 0, T0
            while True:
                asked = (store.lease(within(pages, 2, 3, worker), now) for worker in range(1, 5))
                leases = [lease for got in await asyncio.gather(*asked) for lease in got]
                assert done + urls(leases) <= pages
                if not leases:
                    break
                for lease in leases:
                    await spend(store, lease, now)
                done, now = done + urls(leases), now + DELAY
            assert (await store.counts()).fetches == done == min(pages, 24)

        self.play(story)

    def test_what_is_leased_stands_for_a_page_until_it_turns_out_to_be_none(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([*links(3, "a.test"), *links(3, "b.test")], T0)
            [first] = await store.lease(within(2, hosts=1, urls_per_host=2), T0)
            assert len(first.urls) == 2
            assert await store.lease(within(2), T0) == []
            refusal = Refused(first.token, first.host.hid, first.urls[0], Reason.ROBOTS)
            await store.settle([refusal, finished(first, first.urls[1]), released(first, T0)], [], T0)
            assert urls(await store.lease(within(2), T0)) == 1

        self.play(story)

    def test_a_lost_lease_gives_its_pages_back(self) -> None:
        async def story(store: Store) -> None:
            await store.claim(links(3), T0)
            assert urls(await store.lease(within(1), T0)) == 1
            assert await store.lease(within(1), T0) == []
            await store.reclaim(T0 + TTL)
            assert urls(await store.lease(within(1), T0 + TTL + DELAY)) == 1
            assert (await store.counts()).states[UrlState.LEASED] == 1

        self.play(story)
