"""What offers cost while a crawl goes on, with few URLs known and with millions.

    python -m bench.known [--known 10000 1000000] [--hosts 20000] [--offers 300000] [--by-host] [--keep FOLDER]

For each number of known URLs a store is filled through its own calls (some of them are leased and settled as pages,
the others wait), closed and opened again. Then batches of 1,000 claims come, four known links to a new one, near and
far, each batch in one call with the settlements of the URLs that are leased meanwhile at the rate that is wanted:
2,000 for 60,000 offers. So it is in a crawl, where a group of pages is settled together with its links; `--apart`
claims in calls of their own, and leases ten hosts at a time. One process, one thread, nothing else in its time: the
claims are made before. The new links of a batch go to as many hosts as there are, one after the other: with
`--hosts` near the number of known URLs each lies in a page of the file of its own, which is the hardest case.
`--keep` leaves the filled stores in a folder, where the next run finds them: the measured part works on a copy.

Opening is what a crawl does before its first request can be leased: open the file, give up the leases of the owner
before, read the totals and the facts, lease once.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import json
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.frontier import BATCH, REPEATS, SETTINGS, address
from bench.room import room
from crawlspace.clock import SystemClock
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.types import Claim, Evidence, Finished, Lease, Released, Wish

FILLING = 20_000
OFFERS_TO_A_SETTLED = 30
WISH = Wish(worker=1, hosts=10, urls_per_host=10, ttl_ms=120_000, visit_ms=60_000)
MANY = Wish(worker=1, hosts=200, urls_per_host=50, ttl_ms=120_000, visit_ms=60_000)


@dataclass(frozen=True)
class Figures:
    """What one size costs."""

    known: int
    finished: int
    bytes_per_known_url: float
    bytes_per_queued_url: float | None
    bytes_per_finished_url_beyond_its_outcome: float | None
    """Both as `bench.room` has them; None where SQLite cannot tell."""
    open_seconds: float
    offers_per_second: float
    offers_per_cpu_second: float
    settled_per_second: float
    cpu_seconds_for_60000_offers_and_2000_settled: float
    rss_mb: float


def claim_of(number: int, hosts: int) -> Claim:
    return Claim(address(number, hosts), depth=3, front_class=5, parent=1)


async def opened(path: Path) -> Any:
    return await SqliteFrontier.open(path, SETTINGS, SystemClock(), threaded=False)


def settlements(leases: list[Lease]) -> list[Any]:
    """All URLs of the leases finished as pages without links, their hosts let go."""
    told: list[Any] = []
    for lease in leases:
        for url in lease.urls:
            digest = hashlib.sha256(url.key).digest()
            evidence = Evidence(1, 200, digest=digest, mime="text/html", size=9_000, elapsed_ms=40)
            told.append(Finished(lease.token, lease.host.hid, url, evidence))
        told.append(Released(lease.token, lease.host.hid, lease.host.pace))
    return told


async def spend(store: Any, wish: Wish, most: int) -> int:
    """Lease and settle until there were so many; how many there were."""
    settled = 0
    while settled < most and (leases := await store.lease(wish)):
        await store.settle(settlements(leases), [])
        settled += sum(len(lease.urls) for lease in leases)
    return settled


def arrivals(known: int, hosts: int, *, by_host: bool) -> Iterator[int]:
    """Numbers of the known URLs as they arrive: from host to host, or all of a host's together, as keys lie."""
    if not by_host:
        return iter(range(known))
    ordered = sorted(range(hosts), key=lambda host: address(host, hosts).key)
    return (number for host in ordered for number in range(host, known, hosts))


async def fill(path: Path, known: int, options: argparse.Namespace) -> None:
    """A store of so many known URLs."""
    store, hosts, finished = await opened(path), options.hosts, options.finished
    numbers = arrivals(known, hosts, by_host=options.by_host)
    while batch := [claim_of(number, hosts) for number in islice(numbers, FILLING)]:
        await store.claim(batch)
    await spend(store, MANY, int(known * finished))
    await store.close()


def offers(known: int, hosts: int, most: int) -> Iterator[list[Claim]]:
    """Batches in which each new URL comes with four that are known, from all there are."""
    chance = random.Random(known)
    fresh = BATCH // (REPEATS + 1)
    for start in range(known, known + most // (REPEATS + 1), fresh):
        numbers = [*range(start, start + fresh), *(chance.randrange(start) for _ in range(BATCH - fresh))]
        chance.shuffle(numbers)
        yield [claim_of(number, hosts) for number in numbers]


async def begin(path: Path) -> tuple[Any, float]:
    """Open the store and lease once; the store, and the seconds that took."""
    began = time.perf_counter()
    store = await opened(path)
    await store.void_leases()
    await store.counts()
    await store.notes()
    leases = await store.lease(WISH)
    took = time.perf_counter() - began
    assert leases, "nothing was leased"
    await store.settle(settlements(leases), [])
    return store, took


async def work(store: Any, batches: list[list[Claim]]) -> int:
    """Claim each batch with the settlements of what is leased meanwhile; how many were settled."""
    settled = offered = 0
    for batch in batches:
        offered += len(batch)
        wanted = max(0, offered // OFFERS_TO_A_SETTLED - settled)
        leases = await store.lease(replace(WISH, hosts=wanted))
        await store.settle(settlements(leases), batch)
        settled += sum(len(lease.urls) for lease in leases)
    return settled


async def work_apart(store: Any, batches: list[list[Claim]]) -> int:
    """Claim the batches, and lease and settle between them; how many were settled."""
    settled = offered = 0
    for batch in batches:
        await store.claim(batch)
        offered += len(batch)
        settled += await spend(store, WISH, offered // OFFERS_TO_A_SETTLED - settled)
    return settled


async def measure(path: Path, size: int, known: int, options: argparse.Namespace) -> Figures:
    places = room(path)
    store, opening = await begin(path)
    batches = list(offers(known, options.hosts, options.offers))
    gc.collect()
    gc.freeze()
    wall, cpu = time.perf_counter(), time.process_time()
    settled = await (work_apart if options.apart else work)(store, batches)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    await store.close()
    gc.unfreeze()
    offered = sum(map(len, batches))
    return Figures(
        known=known,
        finished=int(known * options.finished),
        bytes_per_known_url=size / known,
        bytes_per_queued_url=places.queued,
        bytes_per_finished_url_beyond_its_outcome=places.finished,
        open_seconds=opening,
        offers_per_second=offered / wall,
        offers_per_cpu_second=offered / cpu,
        settled_per_second=settled / wall,
        cpu_seconds_for_60000_offers_and_2000_settled=cpu * 60_000 / offered,
        rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def prepared(folder: Path, known: int, options: argparse.Namespace) -> Path:
    """A filled store, made unless it is there."""
    way = "by-host" if options.by_host else "by-turns"
    path = folder / f"known-{known}-{options.hosts}-{options.finished}-{way}.db"
    if not path.exists():
        making = path.with_suffix(".part")
        asyncio.run(fill(making, known, options))
        making.rename(path)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.known", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--known", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--hosts", type=int, default=20_000)
    parser.add_argument("--offers", type=int, default=300_000)
    parser.add_argument("--finished", type=float, default=0.05, help="share of the known URLs that are done")
    parser.add_argument("--by-host", action="store_true", help="fill host by host: many times faster for millions")
    parser.add_argument("--apart", action="store_true", help="claim in calls of their own")
    parser.add_argument("--keep", type=Path, help="folder for the filled stores")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="crawlspace-bench-", dir=options.keep) as folder:
        kept = options.keep or Path(folder)
        for known in options.known:
            filled, copy = prepared(kept, known, options), Path(folder) / "frontier.db"
            shutil.copy(filled, copy)
            figures = asdict(asyncio.run(measure(copy, filled.stat().st_size, known, options)))
            print(json.dumps(figures), flush=True)
            for name in (name for name, value in figures.items() if value is not None):
                print(f"{name.replace('_', ' '):48}{figures[name]:>14,.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
