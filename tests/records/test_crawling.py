"""Parsers that run while crawling: what a kill loses and doubles, which is nothing."""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from crawlspace import events
from crawlspace.api import Crawl
from crawlspace.app.reparsing.pools import Here
from crawlspace.cli import cli
from crawlspace.clock import SystemClock
from crawlspace.errors import CrawlspaceError
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.parsers import Document, Match
from crawlspace.records.journal import numbers, path_of

PAGES = 14
TAG = '"1"'
UNCHANGING = ("/3", "/4")


class Site(http.server.BaseHTTPRequestHandler):
    """A page with links to all others; each has an item."""

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("X-Mark")))  # type: ignore[attr-defined]
        if self.headers.get("If-None-Match") == TAG:
            self.send_response(304)
            self.end_headers()
            return
        body = f"<title>{self.path}</title>" + "".join(f"<a href=/{n}>x</a>" for n in range(PAGES))
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        if self.path in UNCHANGING:
            self.send_header("ETag", TAG)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Any]:
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    running.seen = []  # type: ignore[attr-defined]
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield running
    running.shutdown()
    running.server_close()


def settings(*parsers: str, **more: object) -> dict[str, object]:
    return {"host.delay": 0, "network.allow": ["127.0.0.0/8"], "parsers.run": parsers, **more}


def test_records_are_durable_with_their_pages_and_a_kill_neither_loses_nor_doubles_one(
    server: Any, tmp_path: Path
) -> None:
    place = tmp_path / "crawl"
    seed = f"http://127.0.0.1:{server.server_port}/"
    options = ["-s", "host.delay=0", "-s", 'network.allow=["127.0.0.0/8"]', "-s", 'parsers.run=["links"]']
    command = [sys.executable, "-m", "crawlspace", "crawl", seed, "--dir", str(place), *options]
    for least in (4_000,):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            if written(place / "records") >= least:
                os.kill(process.pid, signal.SIGKILL)
            time.sleep(0.002)
        assert process.returncode in (0, -signal.SIGKILL)
    crawl = Crawl(place, settings=settings("links"))
    crawl.run()
    pages = crawl.sql("SELECT id FROM outcomes WHERE state = 'done' ORDER BY id")
    assert len(pages) == PAGES + 1
    assert crawl.sql("SELECT id FROM observations ORDER BY id") == pages
    dangling = (
        "SELECT * FROM observations o LEFT JOIN outcomes p USING (id) WHERE o.offset <> p.offset OR o.file <> p.file"
    )
    assert crawl.sql(dangling) == []


def test_links_that_are_refused_where_they_are_found_are_told(server: Any, tmp_path: Path) -> None:
    """Each with its reason, though its turn never comes."""
    seed = f"http://127.0.0.1:{server.server_port}/"
    crawl = Crawl(
        tmp_path / "crawl", [seed], settings=settings(**{"scope.exclude": ["/1[0-3]$"], "scope.max_depth": 1})
    )
    skipped: list[tuple[str, str | None]] = []
    parents: set[int | None] = set()

    @crawl.on_skip
    def skip(event: events.PageSettled) -> None:
        skipped.append((event.url.removeprefix(seed), event.error))

    @crawl.on(events.LinkRefused)
    def refused(event: events.LinkRefused) -> None:
        parents.add(event.parent)

    crawl.run()
    told = crawl.sql("SELECT url, reason FROM outcomes WHERE state = 'skipped'")
    assert set(skipped) == {(row["url"].removeprefix(seed), row["reason"]) for row in told}
    assert {url for url, _ in skipped} == {str(number) for number in range(10, PAGES)}
    assert parents
    assert None not in parents


def test_a_page_that_is_as_it_was_has_its_records_seen_again(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the word of its site, 304: nothing is captured, parsed or changed by that visit."""
    place = tmp_path / "crawl"
    seed = f"http://127.0.0.1:{server.server_port}/"
    Crawl(place, [seed], settings=settings("links")).run()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + 30 * 86_400_000)
    crawl = Crawl(place, [seed], settings=settings("links", **{"recrawl.on": True}))
    crawl.run()
    told = crawl.sql(
        "SELECT o.url, o.generation, r.last_seen = o.requested_at AS seen, r.last_seen > r.first_seen AS later, "
        "r.changed_at = r.first_seen AS same, (SELECT count(*) FROM observations b WHERE b.id = o.id) AS n "
        "FROM records r JOIN outcomes o USING (url)"
    )
    assert len(told) == PAGES + 1
    for row in told:
        times = 1 if row["url"].endswith(UNCHANGING) else 2
        assert row == {"url": row["url"], "generation": 1, "seen": True, "later": True, "same": True, "n": times}


SEEN = (
    "SELECT o.url, o.generation AS visit, r.last_seen = o.requested_at AS seen, r.first_seen < r.last_seen AS later, "
    "r.changed_at = r.first_seen AS same, (SELECT count(*) FROM observations b WHERE b.id = o.id) AS n "
    "FROM records r JOIN outcomes o USING (url) ORDER BY o.url"
)


def reparsed(place: Path, *, falls: bool = False) -> dict[str, object]:
    """What the verb tells; with `falls` its process is gone before anything is parsed."""
    ran = CliRunner().invoke(cli, ["reparse", str(place), "--parser", "links", "--processes", "1", "--json"])
    if falls:
        assert ran.exit_code != 0
        return {}
    told: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize(("first", "parsed"), [((), PAGES + 1), (("links",), PAGES + 1 - len(UNCHANGING))])
def test_visits_without_parsers_that_found_a_page_as_it_was_count_when_it_is_parsed_again(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: tuple[str, ...], parsed: int
) -> None:
    """No parser runs while 304 is answered; parsed later, the records have been seen then, and first long before."""
    place = tmp_path / "crawl"
    seed = f"http://127.0.0.1:{server.server_port}/"
    Crawl(place, [seed], settings=settings(*first)).run()
    now = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda clock: now(clock) + 30 * 86_400_000)
    Crawl(place, [seed], settings=settings(**{"recrawl.on": True})).run()
    with monkeypatch.context() as patch:
        patch.setattr(Here, "run", lambda *_: (_ for _ in ()).throw(CrawlspaceError("gone")))
        reparsed(place, falls=True)
    assert reparsed(place)["parsed"] == parsed
    crawl = Crawl(place)
    told = crawl.sql(SEEN)
    assert len(told) == PAGES + 1
    for row in told:
        stays = row["url"].endswith(UNCHANGING)
        n = 1 if stays or not first else 2
        later = stays or bool(first)
        assert row == {"url": row["url"], "visit": 1, "seen": True, "later": later, "same": True, "n": n}
    written_then = written(place / "records")
    assert reparsed(place)["parsed"] == 0
    assert crawl.sql(SEEN) == told
    assert written(place / "records") <= written_then


def written(directory: Path) -> int:
    return sum(path_of(directory, number).stat().st_size for number in numbers(directory))


def test_parsers_routes_and_hooks_of_a_program(server: Any, tmp_path: Path) -> None:  # noqa: C901 -- small functions
    seed = f"http://127.0.0.1:{server.server_port}/"
    crawl = Crawl(tmp_path / "crawl", [seed], settings=settings(**{"scope.max_depth": 1, "budget.pages": 12}))
    handled: list[str] = []
    told: list[str] = []

    @crawl.handler(match="/[0-9]$")
    def small(page: Document) -> None:
        handled.append(page.url)

    @crawl.handler
    def other(page: Document) -> None:
        if page.url.endswith("/10"):
            raise RuntimeError("boom")

    @crawl.parser("titles", 1, key="title", match=Match.of(type="html"))
    def titles(page: Document) -> dict[str, str]:
        return {"title": page.title}

    @crawl.before_request
    def mark(request: FetchRequest) -> FetchRequest:
        return msgspec.structs.replace(request, headers=(*request.headers, ("X-Mark", "1")))

    @crawl.before_request
    def elsewhere(request: FetchRequest) -> FetchRequest:
        return msgspec.structs.replace(request, url="http://other.test/")

    @crawl.after_response
    def look(result: FetchResult) -> None:
        raise KeyError(result.status)

    @crawl.on(events.Warned)
    def warned(event: events.Warned) -> None:
        told.append(event.message.split(";")[0])

    @crawl.on_error
    def failed(event: events.PageSettled) -> None:
        told.append(f"{event.kind} {event.url[len(seed) :]}")
        raise ValueError("again")

    crawl.run()
    assert {mark for _, mark in server.seen} == {"1"}
    assert handled
    assert all(url.rpartition("/")[2].isdigit() for url in handled)
    records = crawl.sql("SELECT data FROM records")
    assert len(records) == len(crawl.sql("SELECT id FROM outcomes WHERE state = 'done' AND status = 200"))
    assert [line for line in told if line.startswith("elsewhere raised ValueError")]
    assert len([line for line in told if line.startswith("look raised")]) == 1
    if "stored 10" in told:
        assert [line for line in told if line.startswith("failed raised ValueError: again")]


def test_a_crawl_sends_records_through_its_pipeline_and_tells_what_was_dropped(server: Any, tmp_path: Path) -> None:
    place = tmp_path / "crawl"
    place.mkdir()
    code = "def few(item):\n    return Drop('\\x1b[2J') if item['url'].endswith('0') else item\n"
    (place / "stages.py").write_text(f"from crawlspace import Drop\n\n\n{code}")
    seed = f"http://127.0.0.1:{server.server_port}/0"
    more = {"scope.max_depth": 1, "budget.pages": 6, "parsers.pipelines": ["stages.py:few"]}
    crawl = Crawl(place, [seed], settings=settings("links", **more))
    told: list[str] = []
    crawl.on(events.Warned)(lambda event: told.append(event.message))
    crawl.run()
    kept = crawl.sql("SELECT url FROM records")
    done = crawl.sql("SELECT url FROM outcomes WHERE state = 'done' AND status = 200")
    assert len(kept) == len([row for row in done if not str(row["url"]).endswith("0")]) > 0
    dropped = len(done) - len(kept)
    assert [line for line in told if "dropped" in line] == [
        f"{dropped} records were dropped by the pipeline: \x1b[2J"
    ]


def test_skips_at_the_door_are_told(tmp_path: Path) -> None:
    bus = events.Bus()
    heard: list[object] = []
    bus.on(None, heard.append)
    crawl = Crawl(tmp_path / "crawl")

    @crawl.on_skip
    def skipped(event: events.PageSettled) -> None:
        heard.append(event.kind)

    for kind in ("done", "skipped"):
        crawl._bus(events.PageSettled("u", kind, None, "robots", 0, 0, 0))
    bus(events.Resumed())
    assert heard == ["skipped", events.Resumed()]
