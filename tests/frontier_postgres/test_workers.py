"""Two workers crawl the toy web over one shared frontier as one would: each page once, politely, also when killed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
import tomli_w

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.replay import replay
from crawlspace.app.store import facts_at
from crawlspace.cli.options import reading, settings_used
from crawlspace.clock import SystemClock
from crawlspace.engine.intake import Request
from crawlspace.errors import CrawlDirError, UsageError
from crawlspace.frontier.postgres import Place
from crawlspace.settings import load, nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb
from crawlspace.types import Unusable

DELAY_MS = 60
NOISE_MS = 45
"""How late a busy machine may note an arrival; by the workers' own clock no gap is shorter than the delay."""


def quick(web: ToyWeb) -> dict[str, Any]:
    """Settings under which the toy web is crawled quickly, and as politely as it is told."""
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": DELAY_MS / 1000,
        "host.failure_wait": 0.1,
        "robots.retry": 0.2,
        "retry.wait": 0.1,
        "concurrency.hosts": 3,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


class Fleet:
    """A web, a shared frontier, and the processes at work."""

    def __init__(self, web: ToyWeb, place: Place, folder: Path) -> None:
        self.web = web
        self.folder = folder
        self.place = place
        self.address = f"{place.address}&schema={place.schema}&shards={place.shards}"
        self.config = folder / "settings.toml"
        self.config.write_text(tomli_w.dumps(nested(quick(web))))

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "crawlspace", *arguments, "-q"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def crawl(self) -> Iterator[subprocess.Popen[str]]:
        """The process that is given the seeds; entered when others can come."""
        place = ["--dir", str(self.folder / "first"), "--frontier", self.address, "--config", str(self.config)]
        with self.running("crawl", *self.web.seeds, *place) as process:
            self.wait_for_requests(1, process)
            yield process

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[str]]:
        with self.running("worker", str(self.folder / "second"), "--frontier", self.address) as process:
            yield process

    def wait_for_requests(self, more: int, process: subprocess.Popen[str]) -> None:
        goal = len(self.web.requests) + more
        deadline = time.monotonic() + 60
        while len(self.web.requests) < goal and process.poll() is None:
            assert time.monotonic() < deadline, "nothing is asked of the web"
            with_patience(process)

    def settled_by(self) -> Counter[str]:
        """How many pages each worker's archive has."""
        with psycopg.connect(self.place.address) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", [self.place.schema])
            rows = connection.execute(
                "SELECT s.name, count(*) FROM outcome o JOIN segment s ON s.id = o.segment GROUP BY s.name"
            ).fetchall()
        found: Counter[str] = Counter()
        for name, n in rows:
            [owner] = [each for each in ("first", "second") if (self.folder / each / "archive" / name).exists()]
            found[owner] += n
        return found

    def gaps(self) -> list[int]:
        """Milliseconds between the starts of requests that followed one another on a host, by the workers' clock."""
        with psycopg.connect(self.place.address) as connection:
            connection.execute("SELECT set_config('search_path', %s, false)", [self.place.schema])
            rows = connection.execute(
                "SELECT hid, requested_at FROM outcome WHERE requested_at IS NOT NULL AND hops = 0 ORDER BY 1, 2"
            ).fetchall()
        return [after - before for (host, before), (same, after) in pairwise(rows) if host == same]

    async def states(self) -> dict[str, UrlState]:
        """Where each page of the web ended; every capture can be read in the archive of whoever made it."""
        first = CrawlDirectory(self.folder / "first")
        settings = settings_used(first)
        states: dict[str, UrlState] = {}
        pages = sorted(self.web.truth.pages)
        async with reading(first.path, settings) as (frontier, identity):
            counts = await frontier.counts()
            addresses = [identity.identify(url) for url in pages]
            stories = await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])
        assert counts.known == sum(counts.states.values())
        assert counts.states[UrlState.QUEUED] == counts.states[UrlState.LEASED] == 0
        for url, story in zip(pages, stories, strict=True):
            assert story is not None, url
            assert story.evidence is not None
            assert story.evidence.pointer is not None
            owners = [CrawlDirectory(self.folder / name) for name in ("first", "second")]
            [owner] = [each for each in owners if (each.archive / story.evidence.pointer.file).exists()]
            assert replay(owner, story.evidence.pointer, settings).status == 200
            states[url] = story.state
        return states


def with_patience(process: subprocess.Popen[str]) -> None:
    """A moment, shorter when the process ends."""
    try:
        process.wait(0.01)
    except subprocess.TimeoutExpired:
        return


def ended_well(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        told, wrong = process.communicate(timeout=90)
        assert process.returncode == 0, told + wrong


@pytest.fixture
def fleet(tmp_path: Path, places: Callable[..., Place]) -> Iterator[Fleet]:
    with ToyWeb(seed=7, size=Size.SMALL, features=LIGHT, tls=False) as web:
        yield Fleet(web, places(), tmp_path)


@pytest.mark.long
def test_two_workers_fetch_each_page_once_and_politely(fleet: Fleet) -> None:
    with fleet.crawl() as first, fleet.worker() as second:
        ended_well(first, second)
    assert set(asyncio.run(fleet.states()).values()) == {UrlState.DONE}
    assert fleet.web.fetched_twice() == {}
    assert fleet.web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []
    assert min(fleet.gaps()) >= DELAY_MS - 1
    shares = fleet.settled_by()
    assert min(shares["first"], shares["second"]) > 20, shares


def test_a_worker_that_was_killed_comes_back_to_its_own_hosts(fleet: Fleet) -> None:
    """Its leases are void when it starts, those of the other worker are not; what was fetched and not settled is
    fetched again."""
    with fleet.crawl() as first:
        with fleet.worker() as second:
            fleet.wait_for_requests(60, second)
            second.send_signal(signal.SIGKILL)
            second.wait()
        with fleet.worker() as second:
            ended_well(first, second)
    assert set(asyncio.run(fleet.states()).values()) == {UrlState.DONE}
    assert fleet.web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []
    assert min(fleet.gaps()) >= DELAY_MS - 1
    assert all(times == 2 for times in fleet.web.fetched_twice().values())


def told(*arguments: str | Path) -> tuple[int, str]:
    """Exit code of a command and what it says."""
    command = [sys.executable, "-m", "crawlspace", *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return ran.returncode, ran.stderr


def test_a_worker_needs_a_crawl_that_was_started(tmp_path: Path, places: Callable[..., Place]) -> None:
    place = places()
    address = f"{place.address}&schema={place.schema}"
    with pytest.raises(CrawlDirError, match="holds no crawl"):
        asyncio.run(facts_at(address, SystemClock()))
    code, why = told("worker", tmp_path / "w", "--frontier", address)
    assert (code, "holds no crawl" in why) == (2, True)
    code, why = told("worker", tmp_path / "w")
    assert (code, "has no shared frontier" in why) == (2, True)


def test_a_directory_stays_with_its_frontier(tmp_path: Path, places: Callable[..., Place]) -> None:
    """It keeps the address without a password, and takes no other."""

    async def seeded(directory: str, address: str | None) -> int:
        plan = Plan(load(None, {}, values={"network.allow": ["127.0.0.1"]}), frontier=address)
        async with open_crawl(CrawlDirectory(tmp_path / directory), plan) as crawl:
            await crawl.inject([Request(f"http://127.0.0.1:9/{directory}")])
            return crawl.worker

    place, other = places(), places()
    address = f"{place.address}&password=s3cret&schema={place.schema}"
    first = asyncio.run(seeded("one", address))
    kept = (tmp_path / "one" / "frontier.toml").read_text(encoding="utf-8")
    assert place.schema in kept
    assert "s3cret" not in kept
    assert asyncio.run(seeded("one", None)) == first, "it is known there by its name"
    assert asyncio.run(seeded("two", address)) != first
    with pytest.raises(UsageError, match="works on"):
        asyncio.run(seeded("one", f"{other.address}&schema={other.schema}"))
    asyncio.run(seeded("own", None))
    with pytest.raises(UsageError, match="has a frontier of its own"):
        asyncio.run(seeded("own", address))
    stats = [sys.executable, "-m", "crawlspace", "stats", str(tmp_path / "one"), "--json"]
    assert json.loads(subprocess.run(stats, capture_output=True, check=True).stdout)["states"]["queued"] == 2
