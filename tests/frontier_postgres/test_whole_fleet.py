"""What a fleet has crawled is exported, asked, grouped and parsed again from each of its directories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli import cli
from crawlspace.engine.intake import Request
from crawlspace.errors import LeftOut, UsageError
from crawlspace.events import Ending
from crawlspace.frontier.postgres import Place
from crawlspace.settings import load
from crawlspace.testing.toyweb import ToyWeb
from crawlspace.testing.toyweb.recipe import Feature

FEATURES = frozenset({Feature.ALIASES, Feature.MIRROR, Feature.SPELLINGS})
SHARE = 60
"""Pages of the first worker; the second fetches the rest."""
LEFT_OUT = LeftOut.exit_code


@dataclass(frozen=True)
class Fleet:
    """One web, crawled by two workers over a shared frontier, and by one alone."""

    first: Path
    second: Path
    alone: Path
    address: str


@pytest.fixture(scope="module")
def fleet(server: str, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return crawled(tmp_path_factory.mktemp("fleet"), f"{server}&schema=crawl_whole_fleet&shards=4")


def crawled(folder: Path, address: str) -> Fleet:
    with ToyWeb(seed=11, features=FEATURES, tls=False) as web:
        values = {
            "contact": "tests@crawlspace.test",
            "host.delay": 0.0,
            "network.resolve": dict(web.resolve),
            "network.allow": ["127.0.0.1"],
        }
        made = Fleet(folder / "first", folder / "second", folder / "alone", address)
        assert crawl(made.first, {**values, "budget.pages": SHARE}, web.seeds, address) is Ending.BUDGET
        assert crawl(made.second, values, (), address) is Ending.FINISHED
        assert crawl(made.alone, values, web.seeds, None) is Ending.FINISHED
    return made


def crawl(directory: Path, values: dict[str, Any], seeds: Any, address: str | None) -> Ending:
    async def run() -> Ending:
        plan = Plan(load(None, {}, values=values), frontier=address, joins=not seeds)
        async with open_crawl(CrawlDirectory(directory), plan) as opened:
            await opened.inject([Request(seed) for seed in seeds])
            async with opened.engine() as engine:
                return await engine.run()

    return asyncio.run(run())


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def exported(directory: Path, *arguments: object, code: int = 0) -> list[dict[str, Any]]:
    """The lines of an export."""
    target = directory / "out.jsonl"
    ran = run("export", directory, "-o", target, "--force", *arguments)
    assert type(ran.exception) in (type(None), SystemExit), ran.exception
    assert ran.exit_code == code, ran.output
    return [json.loads(line) for line in target.read_text().splitlines()]


def asked(directory: Path, *arguments: object) -> list[dict[str, Any]]:
    ran = run("sql", directory, *arguments, "--json")
    assert ran.exit_code == 0, (ran.output, ran.exception)
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_each_directory_exports_all_urls_as_one_store_does(fleet: Fleet) -> None:
    def facts(directory: Path) -> list[tuple[Any, ...]]:
        names = ("url", "state", "reason", "status", "host", "mime")
        return sorted(tuple(str(row[name]) for name in names) for row in exported(directory))

    alone = facts(fleet.alone)
    assert len(alone) > 2 * SHARE
    assert facts(fleet.first) == facts(fleet.second) == alone
    host = exported(fleet.alone)[0]["host"]
    assert len(exported(fleet.first, "--host", host)) == len(exported(fleet.alone, "--host", host)) > 1
    ran = run("export", fleet.first, "--host", "nowhere.test", "-o", fleet.first / "none.jsonl")
    assert isinstance(ran.exception, UsageError)


def test_what_lies_in_the_archive_of_another_is_counted_and_can_be_named(fleet: Fleet) -> None:
    every = {row["url"]: row["text"] for row in exported(fleet.alone, "--what", "pages")}
    here = {row["url"]: row["text"] for row in exported(fleet.first, "--what", "pages", code=LEFT_OUT)}
    there = {row["url"]: row["text"] for row in exported(fleet.second, "--what", "pages", code=LEFT_OUT)}
    assert here
    assert there
    assert {**here, **there} == every
    assert not here.keys() & there.keys()
    together = exported(fleet.first, "--what", "pages", "--also", fleet.second)
    assert {row["url"]: row["text"] for row in together} == every
    ran = run("export", fleet.first, "--what", "pages", "-o", fleet.first / "part.jsonl", "--force")
    place = str(fleet.second.resolve())
    assert "captures lie in the archives of other workers and are left out: " in ran.output
    assert f"of worker 2 at {gethostname()}:{place}" in ran.output
    assert "--also DIR" in ran.output
    ran = run("export", fleet.first, "-o", fleet.first / "x.warc.gz", "--force", "--json")
    told = json.loads(ran.stdout)
    assert (told["damaged"], sum(told["elsewhere"].values()) + told["rows"]) == (0, len(captures(fleet.alone)))
    ran = run("export", fleet.first, "-o", fleet.first / "y.jsonl", "--also", fleet.alone)
    assert isinstance(ran.exception, UsageError), "it is another crawl"


def captures(directory: Path, *arguments: object) -> list[dict[str, Any]]:
    return asked(directory, "SELECT url, body_digest FROM captures ORDER BY url", *arguments)


def test_questions_are_answered_of_the_whole_crawl(fleet: Fleet) -> None:
    query = "SELECT url, state, reason, status FROM outcomes ORDER BY url"
    assert asked(fleet.first, query) == asked(fleet.second, query) == asked(fleet.alone, query)
    # The table of captures that is here has what the first worker fetched; the store tells of the others.
    query = "SELECT url, status, outcome FROM captures ORDER BY url"
    assert asked(fleet.first, query) == asked(fleet.first, query, "--also", fleet.second) == asked(fleet.alone, query)


def test_groups_and_who_stands_for_them(fleet: Fleet) -> None:
    def groups(directory: Path, *arguments: object, code: int = 0) -> list[list[str]]:
        ran = run("duplicates", directory, "--json", *arguments)
        assert ran.exit_code == code, (ran.output, ran.exception)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        return sorted(sorted(member["url"] for member in line["members"]) for line in lines)

    alone = groups(fleet.alone)
    assert len(alone) > 1
    assert groups(fleet.first) == groups(fleet.second) == alone
    assert groups(fleet.first, "--exact") == groups(fleet.alone, "--exact")
    similar = groups(fleet.alone, "--similar", "--links")
    assert groups(fleet.first, "--similar", "--links", "--also", fleet.second) == similar
    groups(fleet.first, "--similar", code=LEFT_OUT)
    kept = [len(exported(each, "--unique")) for each in (fleet.first, fleet.second, fleet.alone)]
    assert kept == kept[-1:] * 3


def reparsed(directory: Path, *arguments: object, code: int = 0) -> dict[str, Any]:
    ran = run("reparse", directory, "--processes", "1", "--json", *arguments)
    assert ran.exit_code == code, (ran.output, ran.exception)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


PARSER = """
import crawlspace


@crawlspace.parser("size", version=VERSION)
def size(page):
    yield {"bytes": len(page.body), "by": VERSION}
"""


def test_each_directory_parses_its_own_captures_and_together_they_are_all(fleet: Fleet) -> None:
    whole = reparsed(fleet.alone, "--parser", "links")
    first, second = (reparsed(each, "--parser", "links", code=LEFT_OUT) for each in (fleet.first, fleet.second))
    assert first["parsed"] + second["parsed"] == whole["parsed"]
    assert sum(first["elsewhere"].values()) == second["parsed"]
    assert first["damaged"] == second["damaged"] == 0
    assert reparsed(fleet.first, "--parser", "links", code=LEFT_OUT)["parsed"] == 0
    query = "SELECT source, target FROM links ORDER BY ALL"
    assert asked(fleet.first, query, "--also", fleet.second) == asked(fleet.alone, query)
    assert 0 < len(asked(fleet.first, query)) < len(asked(fleet.alone, query))
    ran = run("sql", fleet.first, query)
    assert (
        f"records of other workers are not read: worker 2 at {gethostname()}:{fleet.second.resolve()}; " in ran.stderr
    )
    ran = run("export", fleet.first, "--what", "records", "-o", fleet.first / "records.jsonl")
    assert "records of other workers are not read: worker 2" in ran.stderr
    assert "not read" not in run("sql", fleet.first, query, "--also", fleet.second).stderr
    named = "--query", "broken-links"
    assert asked(fleet.second, *named, "--also", fleet.first) == asked(fleet.alone, *named)
    records = [
        exported(fleet.first, "--what", "records", "--also", fleet.second),
        exported(fleet.alone, "--what", "records"),
    ]
    assert len(records[0]) == len(records[1])


def test_of_two_directories_with_one_capture_the_newer_parser_counts(server: str, tmp_path: Path) -> None:
    """As it is where the archive is one for all, in object storage: here by a copy of the other's files."""
    fleet = crawled(tmp_path / "fleet", f"{server}&schema=crawl_one_archive&shards=4")
    for version, directory, files in ((1, fleet.first, fleet.second), (2, fleet.second, fleet.first)):
        for file in (files / "archive").iterdir():
            (directory / "archive" / file.name).write_bytes(file.read_bytes())
        file = tmp_path / f"parser{version}.py"
        file.write_text(PARSER.replace("VERSION", str(version)))
        (directory / "size.py").write_text(file.read_text())
        done = reparsed(directory, "--parser", "size.py")
        assert done["parsed"] == len(exported(fleet.alone, "--state", "done"))
    query = "SELECT version, count(*) AS n, count(DISTINCT id) AS pages FROM parses WHERE parser = 'size' GROUP BY 1"
    for one, other in ((fleet.first, fleet.second), (fleet.second, fleet.first)):
        [row] = asked(one, query, "--also", other)
        assert (row["version"], row["n"]) == ("2", row["pages"])


def test_a_server_that_is_away_is_told(fleet: Fleet, tmp_path: Path, places: Callable[..., Place]) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    (nowhere / "effective.toml").write_text((fleet.first / "effective.toml").read_text())
    kept = (fleet.first / "frontier.toml").read_text()
    (nowhere / "frontier.toml").write_text(kept.replace("crawl_whole_fleet", places().schema))
    for verb in (
        ["export", nowhere, "-o", tmp_path / "x.csv"],
        ["duplicates", nowhere],
        ["sql", nowhere, "SELECT 1"],
    ):
        ran = run(*verb)
        assert isinstance(ran.exception, UsageError), ran.exception
        assert "holds no crawl" in str(ran.exception)
