"""Hosts of a pace group are asked one after another, by the clock of whoever asks."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli_w

import crawlspace
from crawlspace.events import Ending
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch.http import HttpFetcher
from crawlspace.settings import nested

DELAY = 0.12
HOSTS = ("a", "b", "c")


class Asked(NamedTuple):
    """A request, and when it was begun, in seconds of the clock by which delays are kept."""

    begun: float
    url: str
    sent_at: int
    """In milliseconds of the wall clock."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """The requests of a crawl, in order."""
    found: list[Asked] = []
    fetch = HttpFetcher.fetch

    async def noted(self: HttpFetcher, request: FetchRequest) -> FetchResult:
        begun = time.monotonic()
        result = await fetch(self, request)
        found.append(Asked(begun, request.url, result.started_at))
        return result

    monkeypatch.setattr(HttpFetcher, "fetch", noted)
    return found


def crawl(web: Any, asked: list[Asked], **settings: Any) -> None:
    """Five pages on each of three hosts."""
    for host in HOSTS:
        web.page(f"http://{host}.test/", *(f"/p{number}" for number in range(4)))
        for number in range(4):
            web.page(f"http://{host}.test/p{number}")
    values = {**web.quick(), "robots.obey": False, "discovery.sitemaps": False, "group.delay": DELAY}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    seeds = [f"http://{host}.test/" for host in HOSTS]
    assert crawlspace.Crawl(web.directory, seeds, settings=values).run().ending is Ending.FINISHED
    assert len(asked) == 15
    asked.sort()


def gaps(asked: list[Asked], hosts: str = "abc") -> list[float]:
    begun = [each.begun for each in asked if each.url[len("http://")] in hosts]
    return [after - before for before, after in pairwise(begun)]


def assert_apart(found: list[float]) -> None:
    """Each gap is the delay, give or take what a busy machine does between the start and our note of it."""
    assert min(found) >= DELAY / 2
    assert sum(found) >= (len(found) - 0.5) * DELAY


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_request_to_an_address_is_sooner_than_its_delay_after_another(
    web: Any, asked: list[Asked], concurrency: int
) -> None:
    """From the first request on: a host is looked up before anything is asked of it."""
    crawl(web, asked, group__by="address", group__concurrency=concurrency)
    assert_apart(gaps(asked))
    if concurrency == 1:
        sent = [each.sent_at for each in asked]
        assert min(after - before for before, after in pairwise(sent)) >= DELAY * 1000 - 1
    assert web.story("http://a.test/p0").state.name == "DONE"


def test_hosts_that_fit_a_rule_share_its_delay_and_others_do_not(web: Any, asked: list[Asked]) -> None:
    crawl(web, asked, group__rules=[{"host": "^[ab]", "delay": DELAY, "concurrency": 2}])
    assert_apart(gaps(asked, "ab"))
    assert min(gaps(asked, "c")) < DELAY


def test_hosts_of_different_domains_do_not_wait_for_each_other(web: Any, asked: list[Asked]) -> None:
    crawl(web, asked, group__by="domain")
    assert min(gaps(asked)) < DELAY
    for host in HOSTS:
        assert_apart(gaps(asked, host))


def test_two_processes_keep_the_delay_of_a_group_together(web: Any, tmp_path: Path) -> None:
    for host in HOSTS:
        web.page(f"http://{host}.test/", *(f"/p{number}" for number in range(6)))
        for number in range(6):
            web.page(f"http://{host}.test/p{number}")
    group = {"group.by": "address", "group.delay": 0.05, "concurrency.workers": 2, "concurrency.hosts": 2}
    config = tmp_path / "settings.toml"
    values = {**web.quick(), **group, "robots.obey": False, "discovery.sitemaps": False}
    config.write_text(tomli_w.dumps(nested(values)))
    seeds = [f"http://{host}.test/" for host in HOSTS]
    command = [sys.executable, "-m", "crawlspace", "crawl", *seeds, "-q", "--dir", str(web.directory)]
    assert subprocess.run([*command, "--config", str(config)], timeout=100, check=False).returncode == 0
    with closing(sqlite3.connect(web.directory / "frontier.db")) as connection:
        rows = connection.execute("SELECT requested_at FROM outcome WHERE state = 3 ORDER BY 1").fetchall()
    assert len(rows) == 21
    # Both read the same clock, in whole milliseconds.
    assert min(after - before for (before,), (after,) in pairwise(rows)) >= 50 - 2
