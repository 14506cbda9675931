"""A whole crawl of the toy web finds exactly what there is, once, politely, and can show it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.replay import replay
from crawlspace.cli.options import reading, settings_used
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import ToyWeb
from crawlspace.types import Counts, Story, Unusable

DELAY_MS = 60
NOISE_MS = 30
"""How late a busy machine may note an arrival; `make long` holds a quiet one to 5 ms."""
Quick = Callable[..., dict[str, Any]]


@dataclass
class Crawled:
    """A finished crawl and the web it was made of."""

    web: ToyWeb
    directory: Path
    config: Path
    code: int
    told: str

    def ask(self, *arguments: str) -> list[dict[str, Any]]:
        """What a reading verb prints as JSON."""
        verb, *rest = arguments
        command = [sys.executable, "-m", "crawlspace", verb, *rest, "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in ran.stdout.splitlines()]

    @cached_property
    def pages(self) -> list[str]:
        """Fetch URLs that ended done with a success, in order of their numbers."""
        with closing(sqlite3.connect(self.directory / "frontier.db")) as database:
            rows = database.execute(
                "SELECT url FROM outcome WHERE state = ? AND status BETWEEN 200 AND 299 ORDER BY id", [UrlState.DONE]
            )
            return [url for (url,) in rows]

    def stories(self, urls: list[str]) -> list[Story | None]:
        async def main() -> list[Story | None]:
            async with reading(self.directory) as (frontier, identity):
                addresses = [identity.identify(url) for url in urls]
                return await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])

        return asyncio.run(main())

    def story(self, url: str) -> Story:
        (story,) = self.stories([url])
        assert story is not None, f"{url} is not known"
        return story

    def counts(self) -> Counts:
        async def main() -> Counts:
            async with reading(self.directory) as (frontier, _):
                return await frontier.counts()

        return asyncio.run(main())


def crawl(directory: Path, config: Path, seeds: list[str]) -> subprocess.CompletedProcess[str]:
    """Crawl in a process of its own, so that neither its work nor the web's blurs the other's clock."""
    command = [sys.executable, "-m", "crawlspace", "crawl", *seeds, "--dir", str(directory), "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory, quick_settings: Quick) -> Iterator[Crawled]:
    """One crawl of the whole web, traps and broken hosts included, which many tests look at."""
    folder = tmp_path_factory.mktemp("toy")
    config = folder / "crawl.toml"
    with ToyWeb(seed=3) as web:
        config.write_text(tomli_w.dumps(nested(quick_settings(web, DELAY_MS))))
        ran = crawl(folder / "crawl", config, web.seeds)
        yield Crawled(web, folder / "crawl", config, ran.returncode, ran.stderr + ran.stdout)


def test_it_ends_by_itself(crawled: Crawled) -> None:
    assert crawled.code == 0, crawled.told
    assert "Finished" in crawled.told


def test_it_finds_every_page_and_no_strange_one(crawled: Crawled) -> None:
    difference = crawled.web.truth.compare(crawled.pages)
    assert not difference.missing
    assert not difference.strange


def test_no_page_is_fetched_twice_under_any_spelling(crawled: Crawled) -> None:
    assert crawled.web.fetched_twice() == {}


def test_no_host_is_asked_twice_at_once_or_sooner_than_its_delay(crawled: Crawled) -> None:
    assert crawled.web.audit(DELAY_MS, tolerance_ms=NOISE_MS, is_busy=True) == []


def test_by_its_own_clock_no_request_leaves_sooner_than_the_delay(crawled: Crawled) -> None:
    with closing(sqlite3.connect(crawled.directory / "frontier.db")) as database:
        rows = database.execute(
            "SELECT hid, requested_at FROM outcome WHERE requested_at > 0 AND hops = 0 ORDER BY hid, requested_at"
        ).fetchall()
    gaps = [after[1] - before[1] for before, after in pairwise(rows) if before[0] == after[0]]
    assert len(gaps) > 100
    assert min(gaps) >= DELAY_MS - 1


def test_robots_are_asked_first_and_obeyed(crawled: Crawled) -> None:
    assert crawled.web.asked_robots_first() == []
    assert crawled.web.trespasses() == []


def test_the_states_add_up_to_what_is_known(crawled: Crawled) -> None:
    counts = crawled.counts()
    assert counts.known == sum(counts.states.values())
    assert counts.states[UrlState.QUEUED] == counts.states[UrlState.LEASED] == 0
    assert counts.pages >= len(crawled.web.truth.pages)


def test_dead_urls_are_dead_with_their_class(crawled: Crawled) -> None:
    dead = crawled.web.truth.dead
    for url, story in zip(dead, crawled.stories(list(dead)), strict=True):
        assert story is not None
        assert (story.state, story.reason) == (UrlState.DEAD, dead[url]), url


def test_redirects_are_kept_as_edges(crawled: Crawled) -> None:
    for url, target in crawled.web.truth.redirects.items():
        story = crawled.story(url)
        assert story.state in (UrlState.REDIRECTED, UrlState.DONE), url
        if story.state is UrlState.REDIRECTED:
            assert story.target == target


def test_disallowed_urls_are_skipped_with_the_rule(crawled: Crawled) -> None:
    for url in crawled.web.truth.disallowed:
        story = crawled.story(url)
        assert (story.state, story.reason) == (UrlState.SKIPPED, "robots"), url
        assert story.detail


def test_a_seed_that_moved_for_good_takes_its_new_host_into_scope(crawled: Crawled) -> None:
    assert "new.test now belongs to the crawl" in crawled.told


def test_a_page_that_always_breaks_off_is_kept_and_flagged(crawled: Crawled) -> None:
    for url in crawled.web.truth.broken:
        story = crawled.story(url)
        assert (story.state, story.reason, story.attempts) == (UrlState.DONE, "truncated", 2)
        assert story.evidence is not None
        assert story.evidence.pointer is not None


def test_a_trap_ends_by_the_limits(crawled: Crawled) -> None:
    for prefix, found in crawled.web.truth.traps.items():
        inside = [url for url in crawled.pages if url.startswith(prefix)]
        assert len(inside) <= found.bound(), prefix


def test_every_capture_reads_back_with_its_digest(crawled: Crawled) -> None:
    place = CrawlDirectory(crawled.directory)
    settings = settings_used(place)
    read = 0
    for story in crawled.stories(sorted(set(crawled.pages))):
        assert story is not None
        assert story.evidence is not None
        assert story.evidence.pointer is not None
        result = replay(place, story.evidence.pointer, settings)
        if result.body:
            assert story.evidence.digest == hashlib.sha256(result.body).digest()
        read += 1
    assert read >= len(crawled.web.truth.pages)


def test_warcio_finds_no_fault(crawled: Crawled) -> None:
    files = sorted((crawled.directory / "archive").glob("*.warc.gz"))
    assert files
    checked = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", *map(str, files)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_a_second_run_fetches_nothing(crawled: Crawled) -> None:
    before, counts = len(crawled.web.requests), crawled.counts()
    again = crawl(crawled.directory, crawled.config, crawled.web.seeds)
    assert again.returncode == 0, again.stderr
    assert len(crawled.web.requests) == before
    assert crawled.counts() == counts


def test_the_reading_verbs_tell_the_story(crawled: Crawled) -> None:
    directory = str(crawled.directory)
    (stats,) = crawled.ask("stats", directory)
    assert stats["known"] == sum(stats["states"].values()) == crawled.counts().known
    assert set(stats["states"]) == {state.name.lower() for state in UrlState}
    assert {"pages", "bytes", "duplicates", "hosts"} <= set(stats)
    (explained,) = crawled.ask("explain", directory, crawled.pages[0])
    assert explained["state"] == "done"
    assert explained["pointer"]["length"] > 0
    assert {host["host"] for host in crawled.ask("hosts", directory)} >= {"shop.test", "new.test"}
    assert {letter["url"] for letter in crawled.ask("dlq", "list", directory)} >= set(crawled.web.truth.dead)
    (parsed,) = crawled.ask("parse", directory, crawled.pages[0])
    assert parsed["links"]
