"""Whatever is asked of a store in whatever order, every number stays what its rows say."""

from __future__ import annotations

import asyncio
import random

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.policy.commands import Hold
from crawlspace.policy.review import Ruling, Shelf
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_audit import audit
from crawlspace.testing.frontier_contract_words import (
    T0,
    address,
    died,
    finished,
    link,
    redirected,
    released,
    retry,
    seen,
    states,
    wish,
)
from crawlspace.types import Lease, Reason, Settlement, host_id

HOSTS = ("a.test", "b.test", "c.test")
EVENTS = 250
REASONS = (None, None, None, Reason.DEPTH, Reason.OUT_OF_SCOPE)


class Life:
    """A store to which anything may happen, by one seed."""

    def __init__(self, store: SqliteFrontier, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.now = T0
        self.leases: list[Lease] = []

    async def step(self) -> None:
        self.now += self.chance.randrange(3_000)
        happen = self.chance.choice(
            [
                self.claim,
                self.claim,
                self.lease,
                self.settle,
                self.settle,
                self.hold,
                self.rule,
                self.rule,
                self.reclaim,
            ]
        )
        await happen()

    async def claim(self) -> None:
        claims = [
            link(
                str(self.chance.randrange(60)),
                self.chance.choice(HOSTS),
                depth=self.chance.randrange(5),
                front_class=self.chance.randrange(10),
                refusal=self.chance.choice(REASONS),
            )
            for _ in range(self.chance.randrange(1, 15))
        ]
        await self.store.claim(claims, self.now)

    async def lease(self) -> None:
        asked = wish(hosts=self.chance.randrange(1, 4), urls_per_host=self.chance.randrange(1, 6))
        self.leases += await self.store.lease(asked, self.now)

    async def settle(self) -> None:
        if not self.leases:
            return
        lease = self.leases.pop(self.chance.randrange(len(self.leases)))
        settlements: list[Settlement] = []
        for url in lease.urls:
            end = self.chance.randrange(6)
            if end < 5:
                ways: list[Settlement] = [
                    finished(lease, url, seen(body=b"same")),
                    retry(lease, url, self.now + self.chance.randrange(20_000)),
                    died(lease, url),
                    redirected(lease, url, "http://b.test/1"),
                    finished(lease, url),
                ]
                settlements.append(ways[end])
        condemned = "host_unreachable" if self.chance.random() < 0.1 else None
        await self.store.settle([*settlements, released(lease, self.now, condemned)], [], self.now)

    async def hold(self) -> None:
        name = self.chance.choice(HOSTS)
        how = self.chance.choice([None, None, Hold.PAUSED, Hold.BLOCKED])
        await self.store.hold([(host_id(address("x", name).key), name)], how)

    async def rule(self) -> None:
        """On URLs that were read a moment or a while ago."""
        browsed = await self.store.browse(self.chance.choice(list(Shelf)), (), 30)
        if self.chance.random() < 0.3:
            await self.settle()
        rulings = [
            Ruling(known, self.chance.choice((None, Reason.EXCLUDED)), self.chance.randrange(10))
            for known in browsed.known
            if self.chance.random() < 0.5
        ]
        await self.store.rule(rulings, None, self.now)

    async def reclaim(self) -> None:
        if self.chance.random() < 0.2:
            self.now += 200_000
            await self.store.reclaim(self.now)


@pytest.mark.parametrize("seed", range(12))
def test_a_life_of_commands_leaves_no_number_wrong(seed: int) -> None:
    async def live() -> None:
        settings = FrontierSettings(refusals_kept=5, queue_per_host=40, pages_per_host=60)
        store = await SqliteFrontier.open(":memory:", settings, ManualClock(T0), threaded=False)
        life = Life(store, seed)
        for _ in range(EVENTS):
            await life.step()
            audit(store._connection)
        known = sum((await states(store)).values())
        assert known == (await store.counts()).known > 50
        await store.close()

    asyncio.run(live())


def test_a_blocked_host_is_emptied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of lease takes no longer for it than for a host that was given up."""
    monkeypatch.setattr("crawlspace.frontier.sqlite.condemned.BURIED_AT_ONCE", 10)

    async def story() -> None:
        store = await SqliteFrontier.open(":memory:", FrontierSettings(), ManualClock(T0), threaded=False)
        await store.claim([link(str(number)) for number in range(25)], T0)
        await store.hold([(host_id(address("x").key), "a.test")], Hold.BLOCKED)
        left = []
        while await store.due_in(T0) is not None:
            await store.lease(wish(), T0)
            left.append((await states(store)).get("queued", 0))
            audit(store._connection)
        assert left == [15, 5, 0]
        await store.close()

    asyncio.run(story())
