"""Killed with SIGKILL at any moment and started again, a crawl ends as if it had never been killed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.replay import replay
from crawlspace.cli.options import reading, settings_used
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, Size, ToyWeb, read_log
from crawlspace.types import Unusable

Quick = Callable[..., dict[str, Any]]
DELAY_MS = 40
NOISE_MS = 30
"""How late a busy machine may note an arrival."""
FETCHED = 300
"""Most pages fetched but not settled at one moment: a group."""


def start(directory: Path, config: Path, seeds: list[str]) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "crawlspace",
        "crawl",
        *seeds,
        "--dir",
        str(directory),
        "--config",
        str(config),
        "-q",
    ]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run_to_end(directory: Path, config: Path, seeds: list[str]) -> None:
    with start(directory, config, seeds) as process:
        _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err.decode()


def killed_at(directory: Path, config: Path, web: ToyWeb, requests: int) -> bool:
    """Start or resume, and kill once the web has seen this many more requests; False when it ended before."""
    goal = len(web.requests) + requests
    with start(directory, config, web.seeds) as process:
        while runs(process):
            if len(web.requests) >= goal:
                process.send_signal(signal.SIGKILL)
                process.wait()
                return True
    return False


def runs(process: subprocess.Popen[bytes]) -> bool:
    """Whether it still runs, a moment later."""
    try:
        process.wait(0.002)
    except subprocess.TimeoutExpired:
        return True
    return False


async def ends(directory: Path, urls: list[str]) -> dict[str, UrlState]:
    """The state of each URL; every done one has a readable capture."""
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    states: dict[str, UrlState] = {}
    async with reading(directory, settings) as (frontier, identity):
        addresses = [identity.identify(url) for url in urls]
        stories = await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])
        counts = await frontier.counts()
    assert counts.known == sum(counts.states.values())
    assert counts.states[UrlState.QUEUED] == counts.states[UrlState.LEASED] == 0
    for url, story in zip(urls, stories, strict=True):
        assert story is not None, url
        states[url] = story.state
        if story.state is UrlState.DONE:
            assert story.evidence is not None
            assert story.evidence.pointer is not None
            assert replay(place, story.evidence.pointer, settings).status == 200
    return states


def kill_and_compare(tmp_path: Path, quick_settings: Quick, kills: int, seed: int, size: Size = Size.LARGE) -> None:
    chance = random.Random(seed)
    with ToyWeb(seed=seed, size=size, features=LIGHT, tls=False) as web:
        config = tmp_path / "crawl.toml"
        config.write_text(tomli_w.dumps(nested(quick_settings(web, DELAY_MS))))
        run_to_end(tmp_path / "whole", config, web.seeds)
        pages = sorted(web.truth.pages)
        whole = asyncio.run(ends(tmp_path / "whole", pages))
        total = len(web.requests)
        web.forget()
        log = tmp_path / "log.jsonl"
        web.log_to(log)
        done_kills = 0
        for _ in range(kills):
            done_kills += killed_at(tmp_path / "killed", config, web, chance.randint(1, max(2, total // (kills + 2))))
        run_to_end(tmp_path / "killed", config, web.seeds)
        assert done_kills >= kills // 2, "the crawl was over before it could be killed"
        assert asyncio.run(ends(tmp_path / "killed", pages)) == whole
        times = Counter(web.truth.page_of.get(request.url) for request in read_log(log) if request.status == 200)
        repeated = sum(n - 1 for page, n in times.items() if page in web.truth.pages)
        assert repeated <= done_kills * FETCHED
        assert web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []


def test_a_crawl_killed_four_times_ends_like_one_that_was_not(tmp_path: Path, quick_settings: Quick) -> None:
    kill_and_compare(tmp_path, quick_settings, kills=4, seed=11, size=Size.DEMO)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [21, 22, 23])
def test_a_crawl_killed_twenty_times_ends_like_one_that_was_not(
    tmp_path: Path, quick_settings: Quick, seed: int
) -> None:
    kill_and_compare(tmp_path, quick_settings, kills=20, seed=seed)


def test_ctrl_c_stops_cleanly_and_says_that_it_can_go_on(tmp_path: Path, quick_settings: Quick) -> None:
    with ToyWeb(seed=5, size=Size.DEMO, features=LIGHT, tls=False) as web:
        config = tmp_path / "crawl.toml"
        config.write_text(tomli_w.dumps(nested(quick_settings(web, DELAY_MS))))
        with start(tmp_path / "crawl", config, web.seeds) as process:
            while len(web.requests) < 100 and runs(process):
                pass
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        assert process.returncode == 3, err.decode()
        command = [sys.executable, "-m", "crawlspace", "stats", str(tmp_path / "crawl"), "--json"]
        stats = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        assert stats["states"]["leased"] == 0
        assert stats["states"]["done"] > 0
        asked = Counter(request.url for request in web.requests)
        run_to_end(tmp_path / "crawl", config, web.seeds)
        again = Counter(request.url for request in web.requests) - asked
        assert not [url for url in again if asked[url] and web.truth.page_of.get(url) in web.truth.pages]


def test_the_states_add_up_to_the_urls_known_at_every_moment(tmp_path: Path, quick_settings: Quick) -> None:
    """Read from outside while the crawl writes: the totals are never of another moment than the rows."""
    names = [state.name.lower() for state in UrlState]
    with ToyWeb(seed=7, size=Size.DEMO, features=LIGHT, tls=False) as web:
        config = tmp_path / "crawl.toml"
        config.write_text(tomli_w.dumps(nested(quick_settings(web, 0))))
        looks: list[int | None] = []
        with start(tmp_path / "crawl", config, web.seeds) as process:
            while runs(process):
                looks.append(_look(tmp_path / "crawl" / "frontier.db", names))
        assert process.returncode == 0
        known = [look for look in looks if look is not None]
        assert len(set(known)) > 5, "the crawl was watched while it ran"
        assert known == sorted(known)


def _look(database: Path, names: list[str]) -> int | None:
    """URLs known, by the totals and by the rows alike; None before there is a store."""
    if not database.exists():
        return None
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=5)) as connection:
        try:
            connection.execute("BEGIN")
            tally = dict(connection.execute("SELECT name, n FROM tally").fetchall())
            seen = connection.execute("SELECT count(*) FROM seen").fetchone()[0]
        except sqlite3.OperationalError:
            return None  # the store is being made
    total = sum(tally.get(name, 0) for name in names)
    assert total == seen
    return int(seen)
