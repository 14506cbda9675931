"""The frontier's contract, part six: caps on the hosts of a domain and of an address."""

from __future__ import annotations

from collections import Counter

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_groups import back
from crawlspace.testing.frontier_contract_words import (
    T0,
    FrontierSuite,
    Store,
    address,
    end_all,
    finished,
    link,
    links,
    states,
    wish,
)
from crawlspace.types import Claimed, Reason, Settlement


async def reason(store: Store, name: str, host: str) -> str | None:
    """Why a page is refused; "unknown" when nobody knows it."""
    [story] = await store.find([address(name, host).key])
    return "unknown" if story is None else story.reason


class CrowdSuite(FrontierSuite):
    """Caps on hosts."""

    def test_urls_of_more_hosts_than_a_domain_may_have_are_refused(self) -> None:
        async def story(store: Store) -> None:
            claims = [link("x", f"h{n}.one.test") for n in range(4)]
            assert await store.claim(claims, T0) == [Claimed.NEW] * 4
            assert await states(store) == {"queued": 2, "skipped": 2}
            assert await reason(store, "x", "h2.one.test") == Reason.DOMAIN_HOSTS
            await store.claim([*links(3, "h1.one.test"), link("x", "h9.two.test"), link("y", "h3.one.test")], T0)
            assert await states(store) == {"queued": 6, "skipped": 3}
            assert (await store.counts()).hosts == 3

        self.play(story, FrontierSettings(hosts_per_domain=2))

    def test_a_seeds_host_is_never_refused_for_its_domain(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", f"h{n}.one.test") for n in range(3)], T0)
            await store.claim([link("x", "seed.one.test", seed_host=True)], T0)
            assert await states(store) == {"queued": 2, "skipped": 2}

        self.play(story, FrontierSettings(hosts_per_domain=1))

    def test_hosts_made_up_without_end_leave_few_rows(self) -> None:
        """A number stays of those that are not kept, and what was refused adds up."""

        async def story(store: Store) -> None:
            answers: Counter[Claimed] = Counter()
            for start in range(0, 300, 50):
                batch = [link("x", f"h{n}.one.test") for n in range(start, start + 50)]
                answers.update(await store.claim(batch, T0))
            assert answers == {Claimed.NEW: 10 + 7, Claimed.OVER_BUDGET: 300 - 17}
            assert await states(store) == {"queued": 10, "skipped": 7}
            assert (await store.counts()).refused_beyond_cap == 283
            assert await reason(store, "x", "h299.one.test") == "unknown"
            assert await store.claim([link("y", "h3.one.test")], T0) == [Claimed.NEW], "a host that it has goes on"

        self.play(story, FrontierSettings(hosts_per_domain=10, refusals_kept=7))

    def test_a_refusal_for_the_domain_is_undone_when_there_is_room(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([link("x", f"h{n}.one.test") for n in range(3)], T0)
            await store.claim([link("x", "h2.one.test")], T0)
            assert await reason(store, "x", "h2.one.test") == Reason.DOMAIN_HOSTS
            await store.claim([link("x", "h2.one.test", seed_host=True)], T0)
            assert await states(store) == {"queued": 3}

        self.play(story, FrontierSettings(hosts_per_domain=2))

    def test_a_host_too_many_at_an_address_rests_with_its_urls(self) -> None:
        async def story(store: Store) -> None:
            hosts = ["h0.a.test", "h1.b.test", "h2.c.test", "seed.test"]
            await store.claim([claim for host in hosts[:3] for claim in links(2, host)], T0)
            await store.claim(links(2, hosts[3], seed_host=True), T0)
            leases = await store.lease(wish(urls_per_host=1), T0)
            for lease in sorted(leases, key=lambda each: each.host.name):
                told: list[Settlement] = [finished(lease, lease.urls[0]), back(lease, T0, 0, "192.0.2.1")]
                await store.settle(told, [], T0)
            parked = {host.name: host.parked for host in await store.hosts()}
            assert parked == {**dict.fromkeys(hosts, None), "h2.c.test": "address_hosts"}
            assert {lease.host.name for lease in await store.lease(wish(), T0)} == {*hosts} - {"h2.c.test"}
            await store.claim([link("later", "h2.c.test")], T0)
            assert await reason(store, "later", "h2.c.test") == Reason.ADDRESS_HOSTS
            [_, _, third, _] = await store.hosts()
            assert (third.queued, third.address) == (1, "192.0.2.1")

        self.play(story, FrontierSettings(hosts_per_address=2))

    def test_what_is_told_again_of_an_address_counts_once(self) -> None:
        async def story(store: Store) -> None:
            await store.claim([claim for name in "ab" for claim in links(3, f"x.{name}.test")], T0)
            for _ in range(3):
                for lease in await store.lease(wish(urls_per_host=1), T0):
                    told: list[Settlement] = [finished(lease, lease.urls[0]), back(lease, T0, 0, "192.0.2.1")]
                    await store.settle(told, [], T0)
            await end_all(store)
            assert await states(store) == {"done": 6}

        self.play(story, FrontierSettings(hosts_per_address=2))
