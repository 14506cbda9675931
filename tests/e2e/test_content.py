"""Content decides: traps end by themselves, and what only looks like one is crawled whole.

Each kind of place is a host of its own; all of them are crawled at once, without a rule written by hand.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import crawlspace
from crawlspace.cli import cli
from crawlspace.testing.toyweb import ToyWeb
from crawlspace.testing.toyweb import web as toyweb
from crawlspace.testing.toyweb.answer import HTML, NOT_FOUND, Answer, Ask
from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.recipe import Recipe

LONG = (
    "The hall behind the mill is open to everybody, and so is the garden with its pond and its old wooden bench. " * 4
)
"""Enough words to be held against a page."""
SIZE = 60
"""Pages of what is finite: more than a trap gets."""
STOP = 40
SOFT = 12
"""Real pages of the host that answers everything: more than it takes until it is asked for an invented path."""
PLENTY = STOP + 8
"""What a trap may get: the run that stops it, its entrance, and what was under way."""

Place = Callable[[str], str | None]
"""A host: the HTML behind a target, None where there is nothing."""


def _page(words: str, *links: str, title: str = "A page") -> str:
    anchors = "".join(f'<a href="{link}">more</a> ' for link in links)
    return f"<title>{title}</title><p>{words}</p>{anchors}"


def _number(target: str) -> int:
    return int("".join(filter(str.isdigit, target.rpartition("/")[2])) or 0)


def _own(name: str) -> str:
    """Words that no other page has."""
    return " ".join(blake2b(f"{name}{place}".encode(), digest_size=6).hexdigest() for place in range(60))


def _calendar(target: str) -> str | None:
    """Next month, for ever, with its name and its year in the text."""
    if not target.startswith("/month/"):
        return _page("Welcome.", "/month/2026/11") if target == "/" else None
    year, month = int(target.split("/")[2]), int(target.split("/")[3])
    then = year * 12 + month  # the months before the next one
    return _page(f"{LONG} Month {month:02} of {year}.", f"/month/{then // 12}/{then % 12 + 1:02}")


def _sessions(target: str) -> str:
    """A fresh token in every link, by the name that forms give it: each page is the one before it."""
    fresh = blake2b(target.encode(), digest_size=8).hexdigest()
    return _page(LONG, f"/form?_wpnonce={fresh}")


def _visits(target: str) -> str:
    """A fresh visitor number in every path, by no name that anybody knows; two kinds of pages lead to each other."""
    fresh = blake2b(target.encode(), digest_size=16).hexdigest()
    return _page(LONG, f"/v/{fresh}/{'hall' if target.endswith('room') else 'room'}")


def _archive(target: str) -> str:
    """A day has a text of its own, and leads to the next, and to the first page."""
    day = _number(target)
    return _page(LONG + _own(target), "/", *([f"/day/{day + 1}"] if day < SIZE else []), title=f"Day {day}")


def _sparse(target: str) -> str:
    """Only every tenth day has something to say."""
    day = _number(target)
    words = LONG + (_own(target) if day % 10 == 0 else "Nothing happened.")
    return _page(words, *([f"/day/{day + 1}"] if day < 2 * SIZE else []))


def _gallery(target: str) -> str:
    """One picture after another, and hardly a word."""
    photo = _number(target)
    return _page("A photograph.", *([f"/photo/{photo + 1}"] if photo < SIZE else []))


def _shell(target: str) -> str | None:
    """A script draws the page: the words are always the same, the data behind them are not."""
    if target.startswith("/data/"):
        return _own(target)
    part = _number(target)
    return _page(LONG, f"/data/{part}", *([f"/part/{part + 1}"] if part < SIZE else []))


def _mirror(target: str) -> str:
    """The archive again, byte for byte, under another name."""
    return _archive(target)


def _soft(target: str) -> str:
    """Real pages in a row, the last of which leads to some that are gone, which is never said by a status."""
    if target.startswith("/real/") or target == "/":
        page = _number(target)
        onward = [f"/real/{page + 1}"] if page < SOFT else [f"/gone/{name}" for name in "abc"]
        return _page(_own(target) + _own(f"more of {target}"), *onward)
    return _page(f"Sorry, there is nothing here. {LONG}", "/", title="Nothing here")


PLACES: dict[str, Place] = {
    "calendar": _calendar,
    "sessions": _sessions,
    "visits": _visits,
    "archive": _archive,
    "sparse": _sparse,
    "gallery": _gallery,
    "shell": _shell,
    "mirror": _mirror,
    "soft": _soft,
}


def _reply(place: Place) -> Callable[[Ask], Answer]:
    def reply(ask: Ask) -> Answer:
        html = None if ask.target == "/robots.txt" else place(ask.target)
        return NOT_FOUND if html is None else Answer(200, HTML, html.encode())

    return reply


def _draw(recipe: Recipe) -> Atlas:
    atlas = Atlas(recipe)
    for name, place in PLACES.items():
        origin = atlas.host(f"{name}.test")
        atlas.wild(origin, _reply(place))
    return atlas


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The store of one crawl of all places."""
    with _crawl(tmp_path_factory.mktemp("content"), PLACES) as database:
        yield database


@contextmanager
def _crawl(directory: Path, names: Iterable[str], **settings: Any) -> Iterator[sqlite3.Connection]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toyweb, "draw", _draw)
        with ToyWeb(tls=False) as web:
            chosen = {
                "contact": "tests@crawlspace.test",
                "host.delay": 0.0,
                "budget.pages": 3_000,
                "scope.max_depth": 1000,
                "network.resolve": dict(web.resolve),
                "network.allow": ["127.0.0.1"],
                **settings,
            }
            seeds = [f"http://{name}.test/" for name in names]
            crawlspace.Crawl(directory / "crawl", seeds=seeds, settings=chosen).run()
    with closing(sqlite3.connect(directory / "crawl" / "frontier.db")) as database:
        yield database


def _done(database: sqlite3.Connection, name: str) -> int:
    like = f"http://{name}.test/%"
    return int(database.execute("SELECT count(*) FROM outcome WHERE state = 3 AND url LIKE ?", [like]).fetchone()[0])


def _skipped(database: sqlite3.Connection, name: str) -> set[str]:
    like = f"http://{name}.test/%"
    return {
        reason for (reason,) in database.execute("SELECT reason FROM outcome WHERE state = 5 AND url LIKE ?", [like])
    }


@pytest.mark.parametrize("name", ["calendar", "visits"])
def test_a_trap_is_stopped(crawled: sqlite3.Connection, name: str) -> None:
    shapes = {"calendar": 1, "visits": 2}[name]
    assert STOP <= _done(crawled, name) <= shapes * PLENTY
    assert _skipped(crawled, name) == {"trap"}


def test_hosts_and_stats_tell_of_traps_and_of_links_that_were_known(crawled: sqlite3.Connection) -> None:
    """Each trap with the rule that leaves it out; what was followed is counted where it was found."""
    (_, _, file) = crawled.execute("PRAGMA database_list").fetchone()
    hosts = {
        facts["host"]: facts for line in _told("hosts", file, "--json").splitlines() for facts in [json.loads(line)]
    }
    [suspect] = hosts["calendar.test"]["suspects"]
    assert re.search(suspect["rule"], "http://calendar.test/month/2031/05")
    assert suspect["done_about_it"] == "refused"
    assert {name for name, facts in hosts.items() if facts["suspects"]} == {"calendar.test", "visits.test"}
    assert f"add to scope.exclude: {suspect['rule']}" in _told("hosts", file)
    archive = hosts["archive.test"]
    assert (archive["links"], archive["known_links"]) == (2 * SIZE + 1, SIZE + 1)
    assert archive["known_link_rate"] == round((SIZE + 1) / (2 * SIZE + 1), 4)
    stats = json.loads(_told("stats", file, "--hours", "--json"))
    assert stats["links"] == sum(facts["links"] for facts in hosts.values())
    assert 0 < stats["known_links"] == sum(hour["known_links"] for hour in stats["hours"])
    assert stats["rates"]["known_links"] == round(stats["known_links"] / stats["links"], 4)
    assert "of them known already" in _told("stats", file)


def _told(verb: str, file: str, *options: str) -> str:
    ran = CliRunner().invoke(cli, [verb, str(Path(file).parent), *options], catch_exceptions=False)
    assert ran.exit_code == 0
    return ran.output


def test_what_a_trap_lost_is_queued_again_when_more_of_it_is_wanted(tmp_path: Path) -> None:
    """And refused again where the crawl comes to the new limit; the same settings leave it alone."""
    found = []
    for stop in (5, 15, 15):
        with _crawl(tmp_path, ("calendar",), **{"traps.stop_after": stop}) as database:
            found.append((_done(database, "calendar"), _skipped(database, "calendar")))
    assert 5 <= found[0][0] <= 5 + PLENTY - STOP
    assert 15 <= found[1][0] <= 15 + PLENTY - STOP
    assert found[1] == found[2]
    assert {reasons == {"trap"} for _, reasons in found} == {True}


def test_a_trap_that_gives_itself_away_by_its_links_gets_two_pages(crawled: sqlite3.Connection) -> None:
    """The second has the text and the links of the first, tokens apart."""
    assert _done(crawled, "sessions") == 2
    first, second = crawled.execute(
        "SELECT p.id, p.stopped_by FROM page p JOIN outcome o USING (id) "
        "WHERE o.url LIKE 'http://sessions%' ORDER BY p.id"
    ).fetchall()
    assert (first[1], second[1]) == (None, first[0])


@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("archive", 1 + SIZE),
        ("sparse", 1 + 2 * SIZE),
        ("gallery", 1 + SIZE),
        ("shell", 2 * (1 + SIZE)),
        ("mirror", 1 + SIZE),
    ],
)
def test_what_only_looks_like_a_trap_is_crawled_whole(crawled: sqlite3.Connection, name: str, pages: int) -> None:
    assert (_done(crawled, name), _skipped(crawled, name)) == (pages, set())


def test_pages_of_the_mirror_are_copies_and_no_day_of_the_archive_is(crawled: sqlite3.Connection) -> None:
    """Of the archive and its mirror, one is the first with each text; no two days are one."""
    rows = crawled.execute(
        "SELECT c.url, o.url FROM page p JOIN outcome c ON c.id = p.id JOIN outcome o ON o.id = p.copy_of "
        "WHERE c.url LIKE 'http://archive%' OR c.url LIKE 'http://mirror%'"
    ).fetchall()
    assert len(rows) == 1 + SIZE
    assert all(copy.partition(".test")[2] == first.partition(".test")[2] for copy, first in rows)


def test_pages_that_look_like_the_answer_to_an_invented_path_are_dead_letters(crawled: sqlite3.Connection) -> None:
    rows = crawled.execute(
        "SELECT url, state, reason FROM outcome WHERE url LIKE 'http://soft%' ORDER BY id"
    ).fetchall()
    assert [url.rpartition("/")[2] for url, state, reason in rows if (state, reason) == (6, "soft_404")] == [
        "a",
        "b",
        "c",
    ]
    assert sum(state == 3 for _, state, _ in rows) == 1 + SOFT
    dead = crawled.execute("SELECT count(*) FROM outcome WHERE state = 6").fetchone()
    assert dead == (3,)
