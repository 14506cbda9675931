"""Killed with SIGKILL at a point between two effects, a crawl that is started again ends like one that was not."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.replay import replay
from crawlspace.cli.options import reading, settings_used
from crawlspace.content.digest import body_digest
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sqlite.connection import connect
from crawlspace.frontier.sqlite.schema import migrate, steps
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.frontier_contract_audit import audit_file, integrity
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb
from crawlspace.types import Unusable

ZYGOTE = Path(__file__).parent / "zygote.py"
NEVER = 1 << 30
FIRST_FORMAT = 1
POINTS = (
    "lease.sent",
    "lease.got",
    "fetch.sent",
    "fetch.got",
    "parse.mid",
    "raw.written",
    "raw.synced",
    "segment.rotate.sent",
    "segment.rotate.got",
    "commit.sent",
    "links.offered.partial",
    "links.offered",
    "outcome.mid",
    "commit.mid",
    "checkpoint",
    "commit.got",
    "renew.sent",
    "renew.got",
)
RARE = frozenset({"lease.sent", "fetch.got", "segment.rotate.got", "commit.sent", "links.offered", "renew.got"})
"""Points between two others at which as much is in hand; left to the long tests."""


@dataclass(slots=True)
class Crawls:
    """Crawls of one web, and what it takes to run them."""

    web: ToyWeb
    config: Path
    process: subprocess.Popen[str]
    pages: list[str] = field(default_factory=list)

    def run(self, directory: Path, point: str = "", hit: int = NEVER) -> dict[str, int] | None:
        """Start or resume; how often each point was passed, or None when it was killed at the given one."""
        report = directory.with_suffix(".json")
        report.unlink(missing_ok=True)
        job = {"directory": str(directory), "config": str(self.config), "seeds": self.web.seeds}
        line = json.dumps(job | {"point": point, "hit": hit, "report": str(report)})
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        assert status in (0, -signal.SIGKILL), f"the crawl failed with status {status}"
        return json.loads(report.read_text(encoding="utf-8")) if status == 0 else None

    def requests(self) -> Counter[str]:
        """Requests so far, robots files apart: they are asked for before anything can be stored."""
        return Counter(each.url for each in self.web.requests if not each.target.endswith("/robots.txt"))


@dataclass(frozen=True, slots=True)
class Whole:
    """A crawl that nobody killed."""

    ends: dict[str, UrlState]
    totals: dict[UrlState, int]
    requests: Counter[str]


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawls]:
    directory = tmp_path_factory.mktemp("faults")
    with (
        ToyWeb(seed=31, size=Size.TINY, features=LIGHT, tls=False) as web,
        subprocess.Popen(
            [sys.executable, str(ZYGOTE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        config = directory / "crawl.toml"
        config.write_text(tomli_w.dumps(nested(settings_for(web))))
        yield Crawls(web, config, process, sorted(web.truth.pages))
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture(scope="module")
def whole(crawls: Crawls, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    directory = tmp_path_factory.mktemp("whole") / "crawl"
    before = crawls.requests()
    assert crawls.run(directory) is not None
    return Whole(*asyncio.run(ends(directory, crawls.pages)), crawls.requests() - before)


def settings_for(web: ToyWeb) -> dict[str, Any]:
    return {
        "contact": "tests@crawlspace.test",
        "host.delay": 0,
        "retry.wait": 0.1,
        "robots.crawl_delay_max": 0.02,
        # It invents a path each time, which no other run of the crawl has asked for.
        "content.probe_after": 0,
        "network.resolve": dict(web.resolve),
        "network.allow": ["127.0.0.1"],
        "identity.hosts": [dict(rule) for rule in web.truth.own_folds],
    }


async def ends(directory: Path, urls: list[str]) -> tuple[dict[str, UrlState], dict[UrlState, int]]:
    """The state of each page, and all totals; every page that is done has its bytes in the archive."""
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    async with reading(directory, settings) as (frontier, identity):
        addresses = [identity.identify(url) for url in urls]
        stories = await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])
        counts = await frontier.counts()
    states: dict[str, UrlState] = {}
    for url, story in zip(urls, stories, strict=True):
        assert story is not None, url
        states[url] = story.state
        if story.state is UrlState.DONE:
            assert story.evidence is not None
            assert story.evidence.pointer is not None
            answer = replay(place, story.evidence.pointer, settings)
            assert body_digest(answer.body)[:16] == (story.evidence.digest or body_digest(b""))[:16]
    return states, dict(counts.states)


@dataclass(slots=True)
class Killed:
    """One crawl, its deaths, and what it asked of the web in all its lives."""

    crawls: Crawls
    directory: Path
    asked: Counter[str] = field(default_factory=Counter)
    in_hand: int = 0
    """URLs that were leased when it died, and for each host that was, its robots.txt, possibly under way."""

    def run(self, point: str = "", hit: int = NEVER) -> bool:
        """One life; whether it was killed."""
        before = self.crawls.requests()
        died = self.crawls.run(self.directory, point, hit) is None
        self.asked += self.crawls.requests() - before
        self.in_hand += died * self._leased()
        return died

    def hits_left(self, point: str) -> int:
        """How often a life from here to the end passes the point; a copy of the crawl tells."""
        copy = self.directory.with_name("copy")
        shutil.copytree(self.directory, copy)
        passed = self.crawls.run(copy, point)
        assert passed is not None
        return passed.get(point, 0)

    def _leased(self) -> int:
        database = self.directory / "frontier.db"
        if not database.exists():
            return 0
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            try:
                asked = "SELECT coalesce(sum(n_leased + (n_leased > 0)), 0) FROM host"
                return int(connection.execute(asked).fetchone()[0])
            except sqlite3.OperationalError:
                return 0  # killed before the store was made

    def ends_like(self, whole: Whole) -> None:
        """Nothing is lost, nothing is counted twice, and little was asked for again."""
        self.has_the_end_of(whole)
        again = (self.asked - whole.requests).total()
        assert again <= self.in_hand, "more was asked for again than was leased when it was killed"

    def has_the_end_of(self, whole: Whole) -> None:
        """Every URL is where it is there, and the store and the archive are whole."""
        database = self.directory / "frontier.db"
        assert integrity(database) == "ok"
        audit_file(database)
        assert asyncio.run(ends(self.directory, self.crawls.pages)) == (whole.ends, whole.totals)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "point", [pytest.param(point, marks=[pytest.mark.long] if point in RARE else []) for point in POINTS]
)
def test_killed_at_the_first_second_and_last_hit_of_a_point(
    crawls: Crawls, whole: Whole, tmp_path: Path, point: str
) -> None:
    """The crawl is resumed after each kill, so that it meets the next with all that the last has left behind."""
    crawl = Killed(crawls, tmp_path / "crawl")
    assert crawl.run(point, 1)
    assert crawl.run(point, 2)
    killed_at_the_last(crawl, point)
    crawl.ends_like(whole)


@pytest.mark.timeout(300)
def test_killed_while_the_leases_of_a_killed_crawl_are_given_up(crawls: Crawls, whole: Whole, tmp_path: Path) -> None:
    crawl = Killed(crawls, tmp_path / "crawl")
    assert crawl.run("fetch.got", 20)
    assert crawl.run("expire.mid", 1)
    assert crawl.run("expire.mid", 2)
    killed_at_the_last(crawl, "expire.mid")
    crawl.ends_like(whole)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_while_the_store_is_made(crawls: Crawls, whole: Whole, tmp_path: Path) -> None:
    kill_while_it_migrates(Killed(crawls, tmp_path / "crawl"), whole)


@pytest.mark.timeout(300)
def test_killed_while_an_older_store_is_brought_up_to_date(crawls: Crawls, whole: Whole, tmp_path: Path) -> None:
    crawl = Killed(crawls, tmp_path / "crawl")
    crawl.directory.mkdir()
    database = str(crawl.directory / "frontier.db")
    with closing(connect(database, FrontierSettings())) as connection:
        migrate(connection, database, steps()[:FIRST_FORMAT])
    kill_while_it_migrates(crawl, whole)


def kill_while_it_migrates(crawl: Killed, whole: Whole) -> None:
    """At the first, second and last thing that is made: what a step had made is undone with the step."""
    assert crawl.run("migrate.mid", 1)
    assert crawl.run("migrate.mid", 2)
    assert not crawl.asked, "something was asked for before there was a store"
    killed_at_the_last(crawl, "migrate.mid")
    crawl.has_the_end_of(whole)


def killed_at_the_last(crawl: Killed, point: str) -> None:
    """Die at the last hit, and come to the end in another life."""
    hits = crawl.hits_left(point)
    assert hits > 0
    if crawl.run(point, hits):
        assert not crawl.run()
    # Otherwise it had fewer hits this time, and has ended.
