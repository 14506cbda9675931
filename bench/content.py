"""`python -m bench.content`: what content identity costs a page, and what its index takes for many pages.

usage: python -m bench.content [--fingerprints 1000000]

Pages are those of Debian's documentation packages between 30 and 56 KB, which are 42 KB in the mean. Times are CPU,
the lowest of several, in milliseconds; the machine's own unsteadiness is in the calibration.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean

from selectolax.lexbor import LexborHTMLParser

from bench.calibration import seconds
from bench.sites import REAL_SITES
from crawlspace.clock import SystemClock
from crawlspace.content.minhash import Document, NearDuplicates
from crawlspace.content.novelty import novelty
from crawlspace.content.shingles import distinct, shingles
from crawlspace.content.significant import significant_fields
from crawlspace.content.simhash import BandedIndex, text_simhash
from crawlspace.content.text import follow_digest, text_digest
from crawlspace.content.volatile import mask
from crawlspace.frontier.near import Slot, added, search, slots
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.pages.scan import COMPILED, scan

_SMALLEST, _LARGEST, _PAGES = 30_000, 56_000, 60
_REPEATS = 25
_SEED = 7
_LINKS = 10_000
_DISTANCE, _BITS, _MEMBER = 3, 16, 10
"""Of the index: bits that may differ, bits of a band, bytes of a member of a row."""
_ASKED, _GROUP = 30_000, 300
_ROWS = statements("crawlspace.frontier.sqlite", "content.sql")["rows"]
_ADDRESS = "https://docs.example.org/manual/15/sql-createtable.html"


def main() -> int:
    """Print both tables; the exit code is 2 when no documentation package is installed."""
    parser = argparse.ArgumentParser(prog="python -m bench.content")
    parser.add_argument("--fingerprints", type=int, default=1_000_000, help="how many the index holds")
    options = parser.parse_args()
    pages = pages_of_docs()
    if not pages:
        print("\n".join(site.missing() for site in REAL_SITES.values()), file=sys.stderr)
        return 2
    print(f"calibration {seconds():.3f} s; {len(pages)} pages, {mean(map(len, pages)) / 1000:.1f} KB in the mean\n")
    _pages_table(pages)
    _index_table(options.fingerprints)
    _store_table(options.fingerprints)
    return 0


def files_of_docs() -> list[Path]:
    """Pages of documentation of middling size."""
    files = sorted(file for site in REAL_SITES.values() for file in site.folder.rglob("*.html"))
    fitting = [file for file in files if _SMALLEST <= file.stat().st_size <= _LARGEST]
    return fitting[:: max(len(fitting) // _PAGES, 1)]


def pages_of_docs() -> list[bytes]:
    """Their bytes."""
    return [file.read_bytes() for file in files_of_docs()]


def _pages_table(pages: list[bytes]) -> None:
    print("| part | ms a page |\n| --- | --- |")
    trees = [LexborHTMLParser(page) for page in pages]
    links = [[node.attributes.get("href") or "" for node in tree.css("a[href]")] for tree in trees]
    _row("a tree of it, made by lexbor", [lambda page=page: LexborHTMLParser(page) for page in pages])
    how = "compiled" if COMPILED else "in Python"
    _row(f"links and declarations ({how})", [lambda page=page: scan(page, _LINKS, text=False) for page in pages])
    _row("the same with its text", [lambda page=page: scan(page, _LINKS) for page in pages])
    said = [scan(page, _LINKS).text or b"" for page in pages]
    _row("masks, and the digest of the text", [lambda text=text: text_digest(mask(text)) for text in said])
    texts = [mask(text).decode() for text in said]
    _row("SimHash of the text", [lambda text=text: text_simhash(text.encode()) for text in texts])
    _row(
        "digest of the links, and of the text's digest",
        [
            lambda text=text, of=of: follow_digest(text, of)
            for text, of in zip(map(text_digest, texts), links, strict=True)
        ],
    )
    _row("what it says beyond its address", [lambda text=text: novelty(text, _ADDRESS) for text in texts])
    _row("significant fields", [lambda text=text: significant_fields(text) for text in texts])
    _row("set of shingles", [lambda text=text: distinct(shingles(text)) for text in texts])
    _row("add to the near-duplicates", [lambda text=text: _added(text) for text in texts])


def _added(text: str) -> None:
    NearDuplicates[int](lambda _: text).add(Document(0, text))


def _row(name: str, works: list[Callable[[], object]]) -> None:
    print(f"| {name} | {mean(map(_lowest, works)) * 1000:.3f} |", flush=True)


def _lowest(work: Callable[[], object]) -> float:
    taken: list[float] = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _index_table(count: int) -> None:
    chance = random.Random(_SEED)
    gc.collect()
    before = _resident()
    index = BandedIndex()
    begin = time.process_time()
    asked: list[int] = []
    for number in range(count):
        value = chance.getrandbits(64)
        index.add(value, number)
        if number % (count // 1000) == 0:
            asked.append(value ^ 1 << 5 ^ 1 << 30 ^ 1 << 50)
    added = (time.process_time() - begin) / count
    size = (_resident() - before) / count
    begin = time.process_time()
    found = sum(bool(index.near(value)) for value in asked)
    looked = (time.process_time() - begin) / len(asked)
    print(f"\nindex of {count:,} fingerprints at distance 3: {size:.0f} bytes each, {added * 1e6:.1f} us to add one,")
    print(f"{looked * 1e6:.1f} us to look one up ({1 / looked:,.0f} a second), {found} of {len(asked)} found")


def _store_table(count: int) -> None:
    """The same in the embedded store. Its rows are filled with chance, as so many pages would fill them."""
    chance = random.Random(_SEED)
    with tempfile.TemporaryDirectory() as folder:
        path, settings = Path(folder) / "frontier.db", FrontierSettings()
        asyncio.run(_made(path, settings))
        with closing(connect(str(path), settings)) as store:
            asked = _fill(store, chance, count)
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            size = path.stat().st_size / count
            resident, begin = _resident(), time.process_time()
            found = sum(_hits(store, asked[start : start + _GROUP]) for start in range(0, len(asked), _GROUP))
            looked = (time.process_time() - begin) / len(asked)
            grown = (_resident() - resident) / 1e6
    rate = f"{looked * 1e6:.1f} us to look one up ({1 / looked:,.0f} a second)"
    print(f"\nrows of the store for as many: {size:.0f} bytes each, {rate},")
    print(f"{found} of {len(asked)} found, {grown:.0f} MB more in memory meanwhile")


async def _made(path: Path, settings: FrontierSettings) -> None:
    await (await SqliteFrontier.open(path, settings, SystemClock())).close()


def _fill(store: sqlite3.Connection, chance: random.Random, count: int) -> list[int]:
    """Write the rows of so many fingerprints, some of them known; numbers that are near to those."""
    known = [chance.getrandbits(64) for _ in range(min(_ASKED, count))]
    planted: dict[int, list[tuple[Slot, int]]] = {}
    for number, value in enumerate(known):
        for slot in slots(value, _DISTANCE):
            planted.setdefault(slot.key, []).append((slot, number))
    firsts = [slot.key >> _BITS << _BITS for slot in slots(0, _DISTANCE)]
    members = (count - len(known)) / (1 << _BITS)
    store.execute("BEGIN")
    for first in firsts:
        rows = ((first + low, _row_of(chance, members, planted.get(first + low, ()))) for low in range(1 << _BITS))
        store.executemany("INSERT INTO near_row (key, members) VALUES (?, ?)", rows)
    store.execute("COMMIT")
    return [value ^ 1 << 5 ^ 1 << 30 ^ 1 << 50 for value in known]


def _row_of(chance: random.Random, members: float, planted: Iterable[tuple[Slot, int]]) -> bytes:
    row = chance.randbytes(_MEMBER * max(round(chance.gauss(members, members**0.5)), 0))
    for slot, number in planted:
        row = added(slot, number, row) or row
    return row


def _hits(store: sqlite3.Connection, values: Sequence[int]) -> int:
    """How many of a group are found, all its rows read at once, as a settlement does."""
    of = [slots(value, _DISTANCE) for value in values]
    keys = sorted({slot.key for each in of for slot in each})
    rows = dict(store.execute(_ROWS.replace("?*", ",".join("?" * len(keys))), keys).fetchall())
    return sum(bool(search(each, _DISTANCE, rows)) for each in of)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    raise SystemExit(main())
