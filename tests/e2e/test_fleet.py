"""Several processes on one machine crawl as one: each page once, politely, and whoever is killed is no loss."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import tomli_w

import crawlspace
from crawlspace.app.backup import back_up
from crawlspace.app.check import Checker, Report
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import reading, settings_used
from crawlspace.clock import SystemClock
from crawlspace.errors import UsageError
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb
from crawlspace.types import Counts, Unusable

DELAY_MS = 40
NOISE_MS = 30
"""How late a busy machine may note an arrival."""
IN_HAND = 2
"""Hosts that each worker has at most: what is lost with it is little, and others get some too."""
Quick = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Crawling:
    """A web, and a crawl of it by real processes."""

    web: ToyWeb
    place: Path
    config: Path

    @contextmanager
    def running(self, workers: int, *more: str) -> Iterator[subprocess.Popen[str]]:
        limits = ["-s", f"concurrency.hosts={IN_HAND * workers}"]
        place = ["--dir", str(self.place), "--config", str(self.config), "-q", "--workers", str(workers)]
        command = [sys.executable, "-m", "crawlspace", "crawl", *self.web.seeds, *place, *limits]
        with subprocess.Popen(
            [*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, workers: int, *more: str) -> tuple[int, str]:
        """From start or resume to the end: exit code, and what was said."""
        with self.running(workers, *more) as process:
            return ended(process)

    def wait_for_requests(self, more: int, process: subprocess.Popen[str]) -> None:
        goal, deadline = len(self.web.requests) + more, time.monotonic() + 60
        while len(self.web.requests) < goal and process.poll() is None:
            assert time.monotonic() < deadline, "nothing is asked of the web"
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.005)

    def checked(self) -> Report:
        """What a deep check finds, also while the crawl runs."""
        place = CrawlDirectory(self.place)
        return Checker(place, settings_used(place), SystemClock(), deep=True).run()

    async def counts(self) -> Counts:
        async with reading(self.place) as (frontier, _):
            return await frontier.counts()

    def archives(self) -> set[str]:
        """The numbers of the workers that made archive files."""
        return {file.name.split(".")[0].rpartition("-")[2] for file in (self.place / "archive").iterdir()}

    async def states(self) -> dict[str, UrlState]:
        """Where each page of the web ended."""
        pages = sorted(self.web.truth.pages)
        async with reading(self.place, settings_used(CrawlDirectory(self.place))) as (frontier, identity):
            addresses = [identity.identify(url) for url in pages]
            stories = await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])
        return {url: story.state for url, story in zip(pages, stories, strict=True) if story is not None}

    def is_whole(self) -> None:
        """Every page is done, nothing is left over, and every capture can be read back."""
        counts = asyncio.run(self.counts())
        assert counts.states[UrlState.QUEUED] == counts.states[UrlState.LEASED] == 0
        states = asyncio.run(self.states())
        assert set(states) == set(self.web.truth.pages)
        assert set(states.values()) == {UrlState.DONE}
        assert self.checked().faults == []

    def is_polite(self) -> None:
        assert self.web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []
        assert self.web.trespasses() == []


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out + err


def wait_for(words: str, process: subprocess.Popen[str]) -> None:
    """Until it has said this."""
    assert process.stderr is not None
    while words not in (said := process.stderr.readline()):
        assert said, f"it ended, and has not said {words!r}"


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(process.pid).children()
    return found


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether they have ended, within a few seconds."""
    return not psutil.wait_procs(processes, timeout=20)[1]


@pytest.fixture
def crawling(tmp_path: Path, quick_settings: Quick) -> Iterator[Crawling]:
    with ToyWeb(seed=7, size=Size.SMALL, features=LIGHT, tls=False) as web:
        config = tmp_path / "settings.toml"
        config.write_text(tomli_w.dumps(nested(quick_settings(web, DELAY_MS))))
        yield Crawling(web, tmp_path / "crawl", config)


def test_two_workers_fetch_each_page_once_and_politely(crawling: Crawling) -> None:
    code, said = crawling.run(2)
    assert code == 0, said
    assert said.count("new.test now belongs to the crawl") == 1, "a seed has moved there for good"
    crawling.is_whole()
    crawling.is_polite()
    assert crawling.web.fetched_twice() == {}
    assert crawling.archives() == {"1", "2"}


def test_a_worker_that_is_killed_is_replaced_at_once(crawling: Crawling) -> None:
    """Its leases are given up, and not waited for: the crawl would take two minutes otherwise."""
    began = time.monotonic()
    with crawling.running(2) as process:
        for _ in range(2):
            crawling.wait_for_requests(40, process)
            workers_of(process)[0].kill()
        code, said = ended(process)
    assert code == 0, said
    assert said.count("was killed by SIGKILL") == 2
    assert time.monotonic() - began < 100
    crawling.is_whole()
    crawling.is_polite()
    assert all(times <= 3 for times in crawling.web.fetched_twice().values()), "once more for each that was killed"


def test_when_the_owner_is_killed_its_workers_end_and_another_number_goes_on(crawling: Crawling) -> None:
    with crawling.running(2) as process:
        crawling.wait_for_requests(40, process)
        theirs = workers_of(process)
        assert len(theirs) == 2
        process.kill()
        process.wait()
    # Started while they may still be ending: the lock is theirs until then.
    code, said = crawling.run(1)
    assert code == 0, said
    assert all_gone(theirs)
    crawling.is_whole()
    crawling.is_polite()


def test_ctrl_c_stops_all_cleanly(crawling: Crawling) -> None:
    """The signal reaches every process of a terminal; the workers leave it to their owner."""
    with crawling.running(2) as process:
        crawling.wait_for_requests(40, process)
        theirs = workers_of(process)
        for each in (*theirs, psutil.Process(process.pid)):
            each.send_signal(signal.SIGINT)
        code, said = ended(process)
    assert code == 3, said
    assert "was killed" not in said
    assert all_gone(theirs)
    assert asyncio.run(crawling.counts()).states[UrlState.LEASED] == 0
    code, said = crawling.run(2)
    assert code == 0, said
    crawling.is_whole()
    assert crawling.web.fetched_twice() == {}


@pytest.mark.long
def test_a_second_ctrl_c_ends_all_at_once(crawling: Crawling) -> None:
    with crawling.running(2) as process:
        crawling.wait_for_requests(40, process)
        theirs = workers_of(process)
        process.send_signal(signal.SIGINT)
        # The first must have been heard before the second comes, or they are one.
        wait_for("stopping", process)
        process.send_signal(signal.SIGINT)
        code, _ = ended(process)
    assert code == 3
    assert all_gone(theirs)


def test_a_page_budget_is_of_all_workers_together(crawling: Crawling) -> None:
    code, said = crawling.run(2, "-s", "budget.pages=41")
    assert code == 4, said
    assert asyncio.run(crawling.counts()).fetches == 41


@pytest.mark.long
def test_a_full_disk_pauses_all_and_is_told_once(crawling: Crawling) -> None:
    with crawling.running(2, "-s", f"archive.min_free={1 << 50}") as process:
        wait_for("paused: no space is left", process)
        process.send_signal(signal.SIGINT)
        code, said = ended(process)
    assert code == 5, said
    assert "paused" not in said
    assert asyncio.run(crawling.counts()).states[UrlState.DONE] == 0


@pytest.mark.long
def test_a_copy_of_a_crawl_that_several_workers_make_can_be_resumed(crawling: Crawling) -> None:
    copy = replace(crawling, place=crawling.place.with_name("copy"))
    with crawling.running(2) as process:
        crawling.wait_for_requests(60, process)
        back_up(CrawlDirectory(crawling.place), copy.place, settings_used(CrawlDirectory(crawling.place)))
        assert crawling.checked().faults == []
        code, said = ended(process)
    assert code == 0, said
    assert copy.checked().faults == []
    counts = asyncio.run(copy.counts())
    assert 0 < counts.states[UrlState.DONE] < asyncio.run(crawling.counts()).states[UrlState.DONE]
    code, said = copy.run(1)
    assert code == 0, said
    copy.is_whole()


def test_more_workers_than_requests_at_once_are_refused(crawling: Crawling) -> None:
    code, said = crawling.run(2, "-s", "concurrency.global=1")
    assert code == 2
    assert "2 workers cannot share 1 requests" in said


def test_handlers_stay_in_their_process_and_that_is_said(tmp_path: Path) -> None:
    settings = {"network.allow": ["127.0.0.1"], "concurrency.workers": 2}
    crawl = crawlspace.Crawl(tmp_path / "crawl", seeds=["http://127.0.0.1:9/"], settings=settings)
    crawl.handler(print)
    with pytest.raises(UsageError, match="handlers and scorers run in this process"):
        crawl.run()
