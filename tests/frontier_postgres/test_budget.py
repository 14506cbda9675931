"""A page budget is that of the whole crawl: workers anywhere share it, and together spend exactly as much."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_words import finished, links, released, wish

PAGES = 41
HOSTS = 30


async def spend(store: PostgresFrontier, number: int) -> int:
    """Take what can be had and finish it, until three answers in a row gave nothing; how many pages."""
    pages = refused = 0
    while refused < 3:
        leases = await store.lease(replace(wish(hosts=3, urls_per_host=2, worker=number), pages=PAGES))
        refused = 0 if leases else refused + 1
        for lease in leases:
            await store.settle([*(finished(lease, url) for url in lease.urls), released(lease, 0)], [])
            pages += len(lease.urls)
    return pages


def test_workers_on_several_machines_spend_one_page_budget(place: Place) -> None:
    """Each over its own connections, as fast as they can, at the same time."""

    async def main() -> tuple[list[int], int, list[str]]:
        names = ("first", "second", "third")
        settings = FrontierSettings()
        stores = [await PostgresFrontier.open(place, settings, SystemClock(), worker=name) for name in names]
        try:
            for host in range(HOSTS):
                await stores[0].claim(links(3, f"h{host}.test"))
            spent = await asyncio.gather(*(spend(store, store.worker) for store in stores))
            return spent, (await stores[0].counts()).fetches, await stores[0].audit()
        finally:
            for store in stores:
                await store.close()

    spent, fetches, contradictions = asyncio.run(main())
    assert sum(spent) == fetches == PAGES
    assert contradictions == []
