"""What the command line can be told, the Python API can be told too."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import crawlspace
from crawlspace.app.exporting.wanted import Wanted
from crawlspace.app.reparsing.selection import Chosen
from crawlspace.cli import crawl, export, reparse, sql
from crawlspace.errors import ConfigError, UsageError
from crawlspace.events import Event, Warned
from crawlspace.settings import Settings
from crawlspace.testing.toyweb import LIGHT, ToyWeb

SHOWN = "what a program gets as a value and shows as it likes"
SETTING = "a setting: "
FIELD = "a field: "
BESIDE = "of the crawl itself: "
CRAWL, EXPORT, REPARSE, SQL = (
    crawlspace.Crawl.__init__,
    crawlspace.Crawl.export,
    crawlspace.Crawl.reparse,
    crawlspace.Crawl.sql,
)
SAME: list[tuple[click.Command, Callable[..., Any], dict[str, str]]] = [
    (
        crawl.command,
        CRAWL,
        {
            "urls": "seeds",
            "seeds": "seeds",
            "listed": "follow",
            "directory": "directory",
            "frontier": "frontier",
            "workers": SETTING + "concurrency.workers",
            "archive": SETTING + "discovery.requisites",
            "recrawl": SETTING + "recrawl.on",
            "config": "config",
            "overrides": "settings",
            "quiet": SHOWN,
        },
    ),
    (
        export.command,
        EXPORT,
        {
            "directory": BESIDE + "directory",
            "target": "target",
            "form": FIELD + "format",
            "what": "what",
            "states": FIELD + "states",
            "host": FIELD + "host",
            "parser": FIELD + "parser",
            "unique": FIELD + "unique",
            "stages": "pipeline",
            "base": FIELD + "base",
            "raw": FIELD + "guard",
            "force": "options",
            "also": BESIDE + "also",
            "json_lines": SHOWN,
        },
    ),
    (
        reparse.command,
        REPARSE,
        {
            "directory": BESIDE + "directory",
            "name": "given",
            "host": FIELD + "host",
            "types": FIELD + "types",
            "statuses": FIELD + "statuses",
            "since": FIELD + "since",
            "until": FIELD + "until",
            "condition": FIELD + "condition",
            "again": FIELD + "again",
            "failed": FIELD + "failed",
            "processes": "processes",
            "engine": "engine",
            "address": "address",
            "json_lines": SHOWN,
        },
    ),
    (
        sql.command,
        SQL,
        {
            "directory": BESIDE + "directory",
            "query": "query",
            "name": "named",
            "wants_list": SHOWN,
            "parameters": "parameters",
            "target": SHOWN,
            "force": SHOWN,
            "memory": "memory",
            "also": BESIDE + "also",
            "json_lines": SHOWN,
        },
    ),
]


@pytest.mark.parametrize(("verb", "method", "same"), SAME, ids=[str(verb.name) for verb, _, _ in SAME])
def test_each_option_of_a_verb_has_its_like(
    verb: click.Command, method: Callable[..., Any], same: dict[str, str]
) -> None:
    assert {each.name for each in verb.params} == set(same)
    fields = {*Wanted.__struct_fields__} if method is EXPORT else {*Chosen.__struct_fields__}
    for like in same.values():
        if like.startswith(SETTING):
            part, _, name = like.removeprefix(SETTING).partition(".")
            assert name in getattr(Settings(), part).__struct_fields__
        elif like.startswith(FIELD):
            assert like.removeprefix(FIELD) in fields
        elif like.startswith(BESIDE):
            assert like.removeprefix(BESIDE) in inspect.signature(CRAWL).parameters
        elif like != SHOWN:
            assert like in inspect.signature(method).parameters


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of one page."""
    place = tmp_path_factory.mktemp("crawled") / "crawl"
    with ToyWeb(seed=2, features=LIGHT, tls=False) as web:
        found = {
            "network.resolve": dict(web.resolve),
            "network.allow": ["127.0.0.1"],
            "contact": "tests@crawlspace.test",
            "discovery.sitemaps": False,
        }
        crawlspace.Crawl(place, [web.seeds[0]], settings=found, follow=False).run()
    return place


def test_archives_of_other_workers_are_read_where_they_are_named(crawled: Path, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    shutil.copytree(crawled, mine)
    shutil.copytree(crawled, other)
    for file in (mine / "archive").glob("*.warc.gz"):
        file.unlink()
    alone = crawlspace.Crawl(mine).export(tmp_path / "alone.jsonl", "pages")
    assert (alone.rows, alone.damaged) == (0, 1)
    both = crawlspace.Crawl(mine, also=[other]).export(tmp_path / "both.jsonl", "pages")
    assert (both.rows, both.damaged) == (1, 0)


def test_places_that_are_not_there_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no directory"):
        crawlspace.Crawl(tmp_path / "crawl", also=[tmp_path / "none"])
    with pytest.raises(UsageError, match="there is no file"):
        crawlspace.Crawl(tmp_path / "crawl", config=tmp_path / "none.toml")


def test_settings_may_lie_elsewhere(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[host]\ndelay = -1\n")
    with pytest.raises(ConfigError, match="delay"):
        crawlspace.Crawl(tmp_path / "crawl", config=file)


def test_questions_have_names_and_are_warned_of(crawled: Path) -> None:
    told: list[Event] = []
    crawl = crawlspace.Crawl(crawled, watch=told.append)
    assert crawl.sql(named="broken-links", memory="200MB") == []
    assert [type(each) for each in told] == [Warned]
    with pytest.raises(UsageError, match="no question"):
        crawl.sql(named="none")


def test_a_parser_with_a_name_is_spread_over_processes(crawled: Path, tmp_path: Path) -> None:
    shutil.copytree(crawled, tmp_path / "mine")
    crawl = crawlspace.Crawl(tmp_path / "mine")
    assert crawl.reparse("links", processes=2).parsed == 1
    assert crawl.reparse("links", Chosen(again=True)).parsed == 1

    @crawlspace.parser("mine", version=1)
    def mine(document: crawlspace.Document) -> None:
        """Finds nothing."""

    with pytest.raises(UsageError, match="by its name"):
        crawl.reparse(mine, processes=2)
    with pytest.raises(UsageError, match="parses nothing"):
        crawl.reparse("links", engine="steam")
    with pytest.raises(UsageError, match="Ray cluster"):
        crawl.reparse("links", address="here")
