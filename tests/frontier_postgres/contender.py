"""One of several processes that work on one frontier without any delay: run by `test_contention.py`.

Leases, settles most of what it got, claims links to the same few hosts, and gives the hosts back, for some seconds.
Prints as JSON what it was answered.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter

from crawlspace.clock import SystemClock
from crawlspace.frontier.postgres import Place, PostgresFrontier
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.testing.frontier_contract_words import finished, link, retry, seen
from crawlspace.types import Lease, Pace, Released, Settlement, Wish

HOSTS = 6
NAMES = 4_000
SETTINGS = FrontierSettings(delay_ms=0, queue_per_host=None, pages_per_host=None)


async def work(store: PostgresFrontier, seconds: float, chance: random.Random) -> dict[str, object]:
    answers: Counter[str] = Counter()
    claimed: Counter[str] = Counter()
    tokens: list[int] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = [link(str(chance.randrange(NAMES)), f"h{chance.randrange(HOSTS)}.test") for _ in range(8)]
        claimed.update(answer.name for answer in await store.claim(found))
        for lease in await store.lease(Wish(1, 2, 10, 120_000, 60_000)):
            tokens.append(lease.token)
            found = [link(str(chance.randrange(NAMES)), f"h{chance.randrange(HOSTS)}.test") for _ in range(30)]
            told = settlements(lease, chance)
            answers.update(answer.name for answer in await store.settle(told, found))
    return {"answers": answers, "claimed": claimed, "tokens": tokens}


def settlements(lease: Lease, chance: random.Random) -> list[Settlement]:
    """Most URLs end, some are tried again, some come back unspent."""
    told: list[Settlement] = []
    for url in lease.urls:
        what = chance.random()
        if what < 0.8:
            told.append(finished(lease, url, seen(200, str(url.id % 50).encode())))
        elif what < 0.9:
            told.append(retry(lease, url, 0))
    return [*told, Released(lease.token, lease.host.hid, Pace(next_at=0, delay_ms=0))]


async def main(address: str, seconds: float, seed: int) -> None:
    store = await PostgresFrontier.open(Place.parse(address), SETTINGS, SystemClock(), worker=f"contender {seed}")
    sys.stdout.write(json.dumps(await work(store, seconds, random.Random(seed))))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
