"""A crawl goes on from the archive of another: it ends where that one ended, and asks for nothing that it has."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from crawlspace import Crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import settings_used
from crawlspace.frontier.sqlite.export import open_snapshot
from crawlspace.settings import as_toml
from crawlspace.states import UrlState
from crawlspace.testing.toyweb import LIGHT, ToyWeb
from crawlspace.types import Story

PATIENCE_SECONDS = 60.0
SETTLED = frozenset({UrlState.DONE, UrlState.REDIRECTED, UrlState.DEAD})


def values(web: ToyWeb) -> dict[str, Any]:
    return {
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


def crawl(place: Path, web: ToyWeb) -> None:
    Crawl(place, web.seeds, contact="tests@crawlspace.test", settings=values(web)).run()


def stories(place: Path) -> list[Story]:
    directory = CrawlDirectory(place)
    with open_snapshot(directory.database, settings_used(directory).frontier()) as snapshot:
        return list(snapshot.stories(frozenset(UrlState)))


Told = dict[str, tuple[object, ...]]


def told(place: Path) -> Told:
    """What is known of each URL, but for numbers, times and ways, which may be others."""
    return {
        story.url: (story.state, story.reason, story.target, (story.evidence and story.evidence.digest))
        for story in stories(place)
    }


@pytest.fixture(scope="module")
def web() -> Iterator[ToyWeb]:
    with ToyWeb(seed=7, features=LIGHT, tls=False) as web:
        yield web


@pytest.fixture(scope="module")
def crawled(web: ToyWeb, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl that has ended."""
    place = tmp_path_factory.mktemp("continue") / "first"
    crawl(place, web)
    return place


def beside(crawled: Path, path: Path) -> Path:
    """A directory with the settings of a crawl, and nothing else."""
    path.mkdir()
    text = as_toml(settings_used(CrawlDirectory(crawled)))
    (path / "crawl.toml").write_text(text)
    return path


@pytest.fixture(scope="module")
def plainly(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What a crawl knows that has imported the archive, and was not disturbed."""
    place = beside(crawled, tmp_path_factory.mktemp("plain") / "crawl")
    command = [sys.executable, "-m", "crawlspace", "import", str(place), str(crawled / "archive")]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE_SECONDS)
    return told(place)


def test_it_asks_for_nothing_that_it_has_and_ends_where_the_other_ended(
    crawlspace: Callable[..., Any], crawled: Path, web: ToyWeb, tmp_path: Path
) -> None:
    place = beside(crawled, tmp_path / "second")
    seeds = [word for seed in web.seeds for word in ("--seed", seed)]
    ran = crawlspace("import", place, crawled / "archive", *seeds, "--json")
    facts = ran.facts
    first = stories(crawled)
    assert (ran.code, facts["damaged"]) == (0, 0), ran.err
    had = {story.url for story in stories(place) if story.state in SETTLED}
    assert facts["captures"] == len(had)
    assert len(had) > 0.8 * sum(story.state in SETTLED for story in first)
    assert crawlspace("check", place).code == 0
    asked_first = {request.url for request in web.requests}
    web.forget()
    crawl(place, web)
    asked = {request.url for request in web.requests if not request.url.endswith("/robots.txt")}
    assert not asked & had
    after, before = told(place), told(crawled)
    # What the first crawl asked for itself, such as where a robots.txt has moved to, lies in its archive too.
    assert before.keys() <= after.keys() <= before.keys() | asked_first
    assert {url for url in before if after[url][0] is not before[url][0]} == set()
    assert crawlspace("check", place).code == 0


@pytest.mark.parametrize("way", ["linked", "written again"])
def test_where_captures_lie_makes_no_difference(
    crawlspace: Callable[..., Any], crawled: Path, plainly: Told, tmp_path: Path, way: str
) -> None:
    [file] = (crawled / "archive").glob("*.warc.gz")
    source = tmp_path / file.name
    if way == "written again":
        # All in one gzip member: no record opens by itself.
        source.write_bytes(gzip.compress(gzip.decompress(file.read_bytes())))
    else:
        shutil.copy(file, source)
    before = source.read_bytes()
    place = beside(crawled, tmp_path / "crawl")
    ran = crawlspace("import", place, source, *(["--link"] if way == "linked" else []), "--json")
    assert ran.code == 0, ran.err
    # A revisit is written anew in any case: how many the first crawl made is a matter of its timing.
    [kept] = (place / "archive").glob("import-*.warc.gz" if way == "linked" else "*.warc.gz")
    assert kept.name.startswith("import-") is (way != "written again")
    assert (kept.stat().st_ino == source.stat().st_ino) is (way == "linked")
    assert crawlspace("check", place).code == 0
    assert source.read_bytes() == before
    assert told(place) == plainly


def test_an_import_that_is_killed_ends_as_if_it_had_not_been(
    crawlspace: Callable[..., Any], crawled: Path, plainly: Told, tmp_path: Path
) -> None:
    collection = tmp_path / "collection"
    collection.mkdir()
    [file] = (crawled / "archive").glob("*.warc.gz")
    for name in ("a", "b"):
        shutil.copy(file, collection / f"{name}.warc.gz")
    place = beside(crawled, tmp_path / "crawl")
    command = [sys.executable, "-m", "crawlspace", "import", str(place), str(collection)]
    kills = 0
    for settled in (1, 60):
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            deadline = monotonic() + PATIENCE_SECONDS
            while process.poll() is None and settled_at(place) < settled:
                assert monotonic() < deadline
            if process.poll() is None:
                process.kill()
                kills += 1
    assert kills
    ran = crawlspace("import", place, collection, "--json")
    assert ran.code == 0, ran.err
    assert told(place) == plainly
    assert crawlspace("check", place).code == 0


def settled_at(place: Path) -> int:
    """How many URLs are settled at this moment."""
    try:
        with closing(sqlite3.connect(f"file:{place / 'frontier.db'}?mode=ro", uri=True)) as store:
            wanted = "SELECT sum(n) FROM tally WHERE name IN ('done', 'redirected', 'dead')"
            return int(store.execute(wanted).fetchone()[0])
    except sqlite3.Error:  # the store is being made
        return 0
