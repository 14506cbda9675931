"""Questions in SQL, and those that have names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.sql import named, plain, question
from crawlspace.cli import cli
from crawlspace.errors import UsageError

Pack = Callable[..., CrawlDirectory]


def page(name: str, body: str) -> Any:
    return SimpleNamespace(url=f"http://a.test/{name}", body=body.encode(), type="text/html", at=1_760_000_000_000)


SITE = [
    page("", "<a href=/dead>x</a><a href=/one>1</a><link rel=canonical href=/one>"),
    page("one", "<link rel=canonical href=/two><link rel=alternate hreflang=de href=/de>"),
    page("two", "<link rel=canonical href=/missing><a href=/>home</a>"),
    page("de", "<link rel=alternate hreflang=en href=/two>\x1b[31mred"),
]


@pytest.fixture
def site(pack: Pack) -> CrawlDirectory:
    place = pack(SITE)
    ran = run("reparse", place.path, "--parser", "links", "--processes", 1)
    assert ran.exit_code == 0, ran.output
    with_dead(place)
    return place


def with_dead(place: CrawlDirectory) -> None:
    """A dead page, a chain of redirects, and a page of a sitemap, put into the store by hand."""
    import sqlite3

    rows = [
        ("http://a.test/dead", 6, "http_404", 404, None, None),
        ("http://a.test/r1", 4, None, 301, "http://a.test/r2", None),
        ("http://a.test/r2", 4, None, 302, "http://a.test/one", None),
        ("http://a.test/orphan", 3, None, 200, None, "sitemap"),
    ]
    with sqlite3.connect(place.database) as database:
        hid = database.execute("SELECT hid FROM host").fetchone()[0]
        for number, (url, state, reason, status, target, relation) in enumerate(rows, 1000):
            database.execute(
                "INSERT INTO outcome (id, hid, class, tail, url, depth, hops, attempts, relation, found_at,"
                " generation, state, at, reason, requested_at, status, target)"
                " VALUES (?, ?, 5, x'00', ?, 1, 0, 0, ?, 0, 0, ?, 1, ?, 1, ?, ?)",
                [number, hid, url, relation, state, reason, status, target],
            )
    database.close()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def rows(place: CrawlDirectory, *arguments: str) -> list[dict[str, Any]]:
    ran = run("sql", place.path, *arguments, "--json")
    assert ran.exit_code == 0, ran.exception
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_the_questions_of_site_owners_have_names(site: CrawlDirectory) -> None:
    [broken] = rows(site, "--query", "broken-links")
    assert (broken["target"], broken["source"], broken["status"]) == ("http://a.test/dead", "http://a.test/", 404)
    [chain] = rows(site, "--query", "redirect-chains")
    assert (chain["first"], chain["last"], chain["hops"], chain["status"]) == (
        "http://a.test/r1",
        "http://a.test/one",
        2,
        200,
    )
    conflicts = {row["page"]: row["conflict"] for row in rows(site, "--query", "canonical-conflicts")}
    assert conflicts == {
        "http://a.test/": "declares another",
        "http://a.test/one": "declares another",
        "http://a.test/two": "not known",
    }
    pairs = {(row["page"], row["version"]) for row in rows(site, "--query", "hreflang-conflicts")}
    assert pairs == {("http://a.test/one", "http://a.test/de"), ("http://a.test/de", "http://a.test/two")}
    assert [row["page"] for row in rows(site, "--query", "sitemap-orphans")] == ["http://a.test/orphan"]
    assert rows(site, "--query", "parser-failures") == []
    assert len(rows(site, "--query", "changes")) == 4
    assert rows(site, "--query", "changes", "-p", "since=2030-01-01") == []
    assert len(rows(site, "--query", "gone", "-p", "since=2030-01-01")) == 4


def test_every_named_question_is_told_and_an_empty_crawl_has_an_answer(pack: Pack) -> None:
    place = pack([])
    told = run("sql", "--list").stdout
    for name, what in named().items():
        assert name in told
        assert what in told
    for name in ("broken-links", "changes"):
        assert rows(place, "--query", name) == []


def test_tables_can_be_asked_and_joined(site: CrawlDirectory) -> None:
    query = "SELECT c.url, r.parser FROM captures c JOIN records r ON r.canonical = c.canonical WHERE c.status = 200"
    assert len(rows(site, query)) == 4
    assert rows(
        site,
        "SELECT state, count(*) AS n FROM outcomes WHERE host = $host GROUP BY ALL ORDER BY n",
        "-p",
        "host=a.test",
    )
    assert rows(site, "SELECT target_canonical AS t FROM links WHERE source_canonical = 'http://a.test/two'") == [
        {"t": "http://a.test/"}
    ]


def test_an_answer_is_shown_on_a_terminal_without_what_could_command_it(site: CrawlDirectory) -> None:
    ran = run(
        "sql", site.path, "SELECT 'a' || chr(27) || '[31m' AS x, [1, 2] AS y, NULL AS z, repeat('w', 99) AS long"
    )
    assert "\x1b" not in ran.stdout
    head, row = ran.stdout.splitlines()
    assert head.split() == ["x", "y", "z", "long"]
    assert row.split()[1] == "[1,2]"
    assert row.endswith("...")


def test_an_answer_can_be_written_to_a_file(site: CrawlDirectory, tmp_path: Path) -> None:
    table = tmp_path / "out.csv"
    query = "SELECT '=1+1' AS x, 1.5 AS f, DATE '2026-01-02' AS d, [1] AS l, 7 AS n"
    assert run("sql", site.path, query, "-o", table).exit_code == 0
    assert table.read_text() == '"x","f","d","l","n"\n"\'=1+1","1.5","2026-01-02","[1]",7\n'
    assert "there already" in str(run("sql", site.path, query, "-o", table).exception)
    lines = tmp_path / "out.jsonl"
    run("sql", site.path, query, "-o", lines)
    assert json.loads(lines.read_text()) == {"x": "=1+1", "f": 1.5, "d": "2026-01-02", "l": [1], "n": 7}


WRONG = [
    (["SELECT nothing FROM records"], "no answer"),
    (["SELECT 1; SELECT 2"], "one SELECT"),
    (["CREATE TABLE x (a INT)"], "one SELECT"),
    (["DROP VIEW records"], "one SELECT"),
    (["SELEC"], "no answer"),
    (["SELECT * FROM read_text('/etc/passwd')"], "no answer"),
    (["--query", "nothing"], "no question 'nothing'"),
    ([], "ask in SQL"),
    (["SELECT 1", "-p", "x"], "no value"),
    (["SELECT 1", "-p", "x=1"], "no parameter 'x'"),
    (["SELECT 1", "-o", "x.doc"], "tells no format"),
]


def test_what_is_wrong_with_a_question_is_told(pack: Pack) -> None:
    place = pack([])
    for arguments, why in WRONG:
        ran = run("sql", place.path, *arguments)
        assert isinstance(ran.exception, UsageError), arguments
        assert why in str(ran.exception), arguments
    assert isinstance(run("sql").exception, UsageError)


def test_parameters_that_are_not_given_are_null() -> None:
    assert question("SELECT $a, $b", None, {"a": "1"}).parameters == {"a": "1", "b": None}


def test_values_are_told_as_json_can_hold_them() -> None:
    from datetime import UTC, datetime
    from decimal import Decimal

    at = datetime(2026, 1, 2, tzinfo=UTC)
    assert plain({"a": (at, b"\x01", Decimal("1.5"))}) == {"a": ["2026-01-02T00:00:00.000Z", "01", 1.5]}


def test_a_question_about_links_says_when_none_were_read(pack: Pack) -> None:
    place = pack(SITE)
    ran = run("sql", place.path, "--query", "sitemap-orphans")
    assert ran.exit_code == 0
    assert "reparse DIR --parser links" in ran.stderr
    assert run("reparse", place.path, "--parser", "links", "--processes", 1).exit_code == 0
    assert run("sql", place.path, "--query", "sitemap-orphans").stderr == ""


def test_what_is_wrong_with_a_question_is_told_in_a_line(site: CrawlDirectory) -> None:
    ran = run("sql", site.path, "SELECT *\nFROM nothing")
    assert isinstance(ran.exception, UsageError)
    assert "\n" not in str(ran.exception)
