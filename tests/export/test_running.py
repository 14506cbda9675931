"""Exports while a crawl runs, exports that are killed, and exports of much."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crawlspace import Crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.export import Format, Wanted, What, export, format_of
from crawlspace.app.index import index_archive
from crawlspace.cli.options import settings_used
from crawlspace.events import Event, PageSettled
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading
from crawlspace.frontier.sqlite.export import open_snapshot
from crawlspace.frontier.sqlite.store import SqliteFrontier
from crawlspace.settings import Settings, convert, nested
from crawlspace.states import UrlState
from crawlspace.testing.clock import ManualClock
from crawlspace.testing.toyweb import LIGHT, ToyWeb
from crawlspace.types import Address, Claim, Reason, Wish
from crawlspace.urls import Identity, policy_from

Command = Callable[..., Any]

ALL = frozenset(UrlState)
T0 = 1_700_000_000_000


def wide() -> Settings:
    return convert(nested({"scope.strategy": "any", "store.refusals_kept": 1_000_000}), "test")


def filled(path: Path, urls: int) -> CrawlDirectory:
    """A crawl that knows so many URLs, one half queued and the other refused."""
    place = CrawlDirectory(path)
    place.create()
    settings = wide()
    place.write_effective(settings)
    identity = Identity(policy_from(settings.identity))

    def claims(start: int) -> Iterator[Claim]:
        for number in range(start, min(start + 1000, urls)):
            address = identity.identify(f"http://h{number % 97}.test/page/{number}?q={number}")
            assert isinstance(address, Address)
            yield Claim(address, depth=1, refusal=Reason.OUT_OF_SCOPE if number % 2 else None)

    async def fill() -> None:
        frontier = await SqliteFrontier.open(place.database, settings.frontier(), ManualClock(T0))
        for start in range(0, urls, 1000):
            await frontier.claim(list(claims(start)))
        await frontier.close()

    asyncio.run(fill())
    return place


def test_an_export_is_of_the_moment_at_which_it_began(tmp_path: Path) -> None:
    """Whatever is leased, settled or found while it is read, each URL is there once, as it was."""
    place = filled(tmp_path / "crawl", 600)

    async def change(frontier: SqliteFrontier, number: int) -> None:
        await frontier.lease(Wish(1, 1, 2, 60_000, 10**9), T0 + number)
        address = Identity(policy_from(wide().identity)).identify(f"http://new.test/{number}")
        assert isinstance(address, Address)
        await frontier.claim([Claim(address)], T0 + number)

    async def run() -> None:
        frontier = await SqliteFrontier.open(place.database, wide().frontier(), ManualClock(T0))
        with open_snapshot(place.database, wide().frontier()) as snapshot:
            seen: list[tuple[int, UrlState]] = []
            for story in snapshot.stories(ALL):
                seen.append((story.id, story.state))
                if len(seen) % 20 == 1:
                    await change(frontier, len(seen))
        assert Counter(number for number, _ in seen) == Counter(range(1, 601))
        assert Counter(state for _, state in seen) == {UrlState.QUEUED: 300, UrlState.SKIPPED: 300}
        assert (await frontier.counts()).known == 630
        assert (await frontier.counts()).states[UrlState.LEASED] > 0
        await frontier.close()

    asyncio.run(run())


def test_an_export_sorts_nothing_and_finds_names_by_their_numbers(tmp_path: Path) -> None:
    place = filled(tmp_path / "crawl", 1)
    with closing(connect_reading(str(place.database), wide().frontier())) as connection:
        for name, sql in statements("crawlspace.frontier.sqlite", "export.sql").items():
            if name in ("host", "leases"):
                continue
            plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", {"hid": None, "states": 127}).fetchall()
            first, *others = [step[3] for step in plan]
            assert first.startswith("SCAN")
            assert all(step.startswith(("SEARCH", "CORRELATED SCALAR")) for step in others), others


def test_memory_does_not_grow_with_the_number_of_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is remembered of addresses has a bound of its own, which these crawls are too small to reach.
    monkeypatch.setattr("crawlspace.urls.reader._RECENT_KEPT", 500)
    peaks = []
    for urls in (1000, 4000):
        place = filled(tmp_path / str(urls), urls)
        tracemalloc.start()
        try:
            for name in ("urls.jsonl.zst", "urls.csv"):
                gc.collect()
                done = export(place, wide(), Wanted(format_of(Path(name))), tmp_path / f"{urls}{name}")
                assert done.rows == urls
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 100_000


KILLS = """
import os, signal

class Last:
    n = 0

    def __call__(self, item):
        self.n += 1
        if self.n == 400:
            os.kill(os.getpid(), signal.SIGKILL)
        return item
"""


@pytest.mark.parametrize("name", ["urls.jsonl", "urls.csv", "urls.sqlite", "urls.parquet"])
def test_a_killed_export_leaves_no_half_file_under_its_name(tmp_path: Path, name: str) -> None:
    place = filled(tmp_path / "crawl", 500)
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / name
    (tmp_path / "kills.py").write_text(KILLS)
    killed = [sys.executable, "-m", "crawlspace", "export", str(place.path), "-o", str(target)]
    killed += ["--pipeline", f"{tmp_path / 'kills.py'}:Last"]
    assert subprocess.run(killed, capture_output=True, check=False, timeout=60).returncode == -9
    (partial,) = folder.iterdir()
    assert partial.name.endswith(".partial")
    assert export(place, wide(), Wanted(format_of(target)), target).rows == 500
    whole = folder.parent / name
    export(place, wide(), Wanted(format_of(target)), whole)
    assert target.read_bytes() == whole.read_bytes()


@pytest.fixture
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=7, features=LIGHT, tls=False) as web:
        yield web


def test_a_crawl_that_runs_can_be_exported_and_indexed(tmp_path: Path, web: ToyWeb) -> None:
    place = CrawlDirectory(tmp_path / "crawl")
    settled: list[str] = []
    looks: list[dict[str, int]] = []

    def look(event: Event) -> None:
        if isinstance(event, PageSettled):
            settled.append(event.url)
            if len(settled) % 50 == 40 and len(looks) < 2:
                looks.append(looked(place, tmp_path / f"look{len(looks)}"))

    values = {
        "host.delay": 0,
        "host.failure_wait": 0.1,
        "host.failures_max": 3,
        "robots.retry": 0.2,
        "retry.wait": 0.1,
        "fetch.idle_timeout": 1.0,
        "fetch.connect_timeout": 1.0,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }
    crawl = Crawl(place.path, web.seeds, contact="tests@crawlspace.test", settings=values, watch=look)
    counts = crawl.run().counts
    assert len(looks) == 2
    assert any(look["queued"] for look in looks)
    end = looked(place, tmp_path / "end")
    assert [look["known"] for look in looks] == sorted(look["known"] for look in looks)
    assert end["known"] == counts.known
    assert end["queued"] == 0


def looked(place: CrawlDirectory, folder: Path) -> dict[str, int]:
    """Export everything once: no URL twice, every capture readable."""
    folder.mkdir()
    settings = settings_used(place)
    export(place, settings, Wanted(Format.JSON_LINES), folder / "urls.jsonl")
    rows = [json.loads(line) for line in (folder / "urls.jsonl").read_bytes().splitlines()]
    assert len({row["canonical"] for row in rows}) == len(rows)
    for name in ("a.warc.gz", "a.cdxj"):
        done = export(place, settings, Wanted(format_of(Path(name)), What.CAPTURES), folder / name)
        assert done.damages == []
    assert done.rows == (folder / "a.cdxj").read_bytes().count(b"\n")
    links = export(place, settings, Wanted(Format.CSV, What.LINKS), folder / "links.csv")
    assert links.damages == []
    indexed = index_archive(place, settings, folder / "all.cdxj")
    assert indexed.damages == []
    assert indexed.captures >= done.rows
    return {"known": len(rows), "queued": sum(row["state"] in ("queued", "leased") for row in rows)}
