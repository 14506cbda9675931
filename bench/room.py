"""What lies where in a store's file: bytes on disk for a URL that waits, and for one that is finished.

    python -m bench.room [--urls 200000] [--pages 20000] [--file FRONTIER.DB]

A queued URL has its key and a row in the queue; a finished one has its key, its outcome, and, if it was the first
with its bytes, a row that says so. What pages are recognised by under other addresses (fingerprints of their text,
the index of near-duplicates) is told apart: it is kept for pages, not for URLs. Sizes are whole database pages, free
room in them included, as SQLite's `dbstat` gives them; they need a SQLite that was built with it.
`--file` tells the same of any frontier, of a real crawl too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.frontier import SETTINGS, address
from crawlspace.clock import SystemClock
from crawlspace.frontier.sqlite import SqliteFrontier
from crawlspace.types import Claim, Evidence, Fingerprints, Finished, Released, Wish

COUNTS = {
    "seen": "SELECT count(*) FROM seen",
    "queue": "SELECT count(*) FROM queue",
    "outcome": "SELECT count(*) FROM outcome",
    "content": "SELECT count(*) FROM content",
    "page": "SELECT count(*) FROM page",
}
CONTENT = ("page", "page_group", "page_sign", "said", "near_row")
WISH = Wish(worker=1, hosts=200, urls_per_host=50, ttl_ms=120_000, visit_ms=60_000)
BATCH = 20_000
HOSTS = 500
LENGTH = 9_000


@dataclass(frozen=True)
class Room:
    """Bytes of one URL. None where the store has no such URL, or its SQLite cannot tell."""

    queued: float | None
    """Its row in the queue and its key."""
    finished: float | None
    """Its key, and whose its bytes are: what there is beyond its outcome."""
    outcome: float | None
    content: float | None
    """What a page's content is known by."""


def sizes(path: Path) -> Mapping[str, int]:
    """Bytes on disk of each table and index; empty where SQLite cannot tell."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name").fetchall())
    except sqlite3.OperationalError:
        return {}
    finally:
        connection.close()


def numbers(path: Path) -> Mapping[str, int]:
    """Rows of the tables in question."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return {name: connection.execute(statement).fetchone()[0] for name, statement in COUNTS.items()}
    finally:
        connection.close()


def room(path: Path) -> Room:
    """What URLs take in this store."""
    size, n = sizes(path), numbers(path)

    def each(*tables: str, of: str) -> float | None:
        return sum(size.get(table, 0) for table in tables) / n[of] if size and n[of] else None

    key, queue, first = (
        each("seen", of="seen"),
        each("queued", "queued_more", of="queue"),
        each("content", of="content"),
    )
    return Room(
        queued=None if key is None or queue is None else key + queue,
        finished=None if key is None or first is None else key + first,
        outcome=each("outcome", of="outcome"),
        content=each(*CONTENT, of="page"),
    )


def evidence(chance: random.Random) -> Evidence:
    """Of a page that is like no other."""
    text, follow, body = (chance.randbytes(32) for _ in range(3))
    bits = chance.getrandbits
    known_by = Fingerprints(text, follow, LENGTH, bits(64), bits(64), bits(64), "en", "/a/path/{n}")
    return Evidence(1, 200, digest=body, mime="text/html", size=9_000, elapsed_ms=40, fingerprints=known_by)


async def fill(path: Path, urls: int, pages: int) -> None:
    """A store of so many URLs, of which so many are settled as pages with a text of their own."""
    store: Any = await SqliteFrontier.open(path, SETTINGS, SystemClock(), threaded=False)
    for start in range(0, urls, BATCH):
        few = range(start, min(urls, start + BATCH))
        await store.claim([Claim(address(number, HOSTS), depth=3, front_class=5, parent=1) for number in few])
    chance, settled = random.Random(urls), 0
    while settled < pages and (leases := await store.lease(WISH)):
        told: list[Any] = []
        for lease in leases:
            for url in lease.urls:
                told.append(Finished(lease.token, lease.host.hid, url, evidence(chance), links=20))
            told.append(Released(lease.token, lease.host.hid, lease.host.pace))
            settled += len(lease.urls)
        await store.settle(told, [])
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.room", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--urls", type=int, default=200_000)
    parser.add_argument("--pages", type=int, default=20_000, help="how many of them are finished")
    parser.add_argument("--file", type=Path, help="a frontier that is there already")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="crawlspace-bench-") as folder:
        path = options.file or Path(folder) / "frontier.db"
        if options.file is None:
            asyncio.run(fill(path, options.urls, options.pages))
        figures = asdict(room(path))
        print(json.dumps(figures))
        for name, value in figures.items():
            print(f"bytes, {name:24}{'not known' if value is None else f'{value:,.1f}':>12}")


if __name__ == "__main__":
    main()
