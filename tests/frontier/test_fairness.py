"""Nobody starves: no class behind better ones, no host beside one with a very long queue. Time is virtual."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.frontier_contract_words import T0, finished, links, released, wish

HOUR = 3_600_000
HOSTS = 12
"""Hosts of each class."""


async def store(**settings: object) -> SqliteFrontier:
    return await SqliteFrontier.open(
        ":memory:",
        FrontierSettings(pages_per_host=None, **settings),  # type: ignore[arg-type]
        ManualClock(),
        threaded=False,
    )


async def visit(frontier: SqliteFrontier, now: int, hosts: int, step: int) -> Counter[str]:
    """One URL of as many hosts as a worker can visit, and the hosts that got a turn."""
    leases = await frontier.lease(wish(hosts, 1), now)
    told = [item for lease in leases for item in (finished(lease, lease.urls[0]), released(lease, now + step))]
    await frontier.settle(told, [], now)
    return Counter(lease.host.name for lease in leases)


def two_hours(step: int) -> None:
    """A worker that can serve a tenth of what is due: each class gets at least its share of what it does."""

    async def story() -> None:
        frontier = await store()
        rounds = 2 * HOUR // step
        shares = FrontierSettings().class_quotas
        urls = rounds // 2 + 1
        for front_class in range(10):
            for number in range(HOSTS):
                await frontier.claim(links(urls, f"h{number}.c{front_class}.test", front_class=front_class), T0)
        served: Counter[str] = Counter()
        last = dict.fromkeys(range(10), 0)
        longest = dict.fromkeys(range(10), 0)
        for number in range(rounds):
            for host, n in (await visit(frontier, T0 + number * step, 10, step)).items():
                front_class = int(host.split(".")[1][1:])
                served[f"class {front_class}"] += n
                longest[front_class] = max(longest[front_class], number - last[front_class])
                last[front_class] = number
        total = served.total()
        assert total == 10 * rounds
        for front_class, share in enumerate(shares):
            assert served[f"class {front_class}"] >= 0.95 * total * share / 100
            # One of a hundred hosts is due to it at least that often; ten hosts are leased each time.
            assert longest[front_class] <= 2 * 100 / share / 10 + 1
        await frontier.close()

    asyncio.run(story())


def test_no_class_starves_in_two_hours() -> None:
    two_hours(step=40_000)


@pytest.mark.long
def test_no_class_starves_in_two_hours_of_seconds() -> None:
    two_hours(step=1_000)


def beside_a_giant(giant: int, hosts: int, urls: int = 3) -> None:
    """Other hosts are done as soon as without it, and it is asked whenever its turn has come."""

    async def rounds(size: int) -> tuple[int, int]:
        frontier = await store(queue_per_host=None)
        for start in range(0, size, 5_000):
            batch = links(min(start + 5_000, size), "giant.test", front_class=1)[start:]
            await frontier.claim(batch, T0)
        for number in range(hosts):
            await frontier.claim(links(urls, f"h{number}.test", front_class=1), T0)
        left, now, of_giant = hosts * urls, T0, 0
        while left:
            got = await visit(frontier, now, 100, 1_000)
            of_giant += got.pop("giant.test", 0)
            left -= got.total()
            now += 1_000
        await frontier.close()
        return (now - T0) // 1_000, of_giant

    without, _ = asyncio.run(rounds(0))
    beside, of_giant = asyncio.run(rounds(giant))
    assert without == hosts * urls // 100
    assert beside <= without + 1
    assert of_giant >= beside // (1 + hosts // 100) - 1


def test_a_host_with_a_very_long_queue_slows_no_other() -> None:
    beside_a_giant(3_000, hosts=200)


@pytest.mark.long
def test_a_host_with_a_million_queued_urls_slows_no_other() -> None:
    beside_a_giant(1_000_000, hosts=500)
