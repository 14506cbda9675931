"""A small site crawled again and again, with a clock that jumps from one crawl to the next."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.archive.warc import ArchiveSettings, WarcArchive
from crawlspace.clock import SystemClock
from crawlspace.engine.intake import Request
from crawlspace.events import Ending
from crawlspace.frontier.sqlite.audit import open_audit
from crawlspace.settings import load
from crawlspace.states import UrlState
from crawlspace.types import GenerationFigures, Round, Story, Unusable

DAY = 86_400_000
WEEK = 7 * DAY
ETAG = '"tag-of-same"'
DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
LINKS = "".join(f"<a href=/{name}>x</a>" for name in ("same", "dated", "moving", "leaving", "old"))


class JumpingClock(SystemClock):
    """The system's clock, moved by a test between crawls."""

    shift = 0

    def now(self) -> int:
        return super().now() + self.shift


@dataclass
class Site:
    """What the server answers, and what it was asked."""

    visit: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    leaving: int = 200
    sitemap: str = ""
    base: str = ""

    def answer(self, path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append((path, headers))
        if path == "/":
            return 200, {"Content-Type": "text/html"}, f"<title>home</title>{LINKS}".encode()
        if path == "/same":
            return self._unless(headers.get("If-None-Match") == ETAG, {"ETag": ETAG})
        if path == "/dated":
            return self._unless(headers.get("If-Modified-Since") == DATE, {"Last-Modified": DATE})
        if path == "/moving":
            return 200, {"Content-Type": "text/html"}, f"<p>visit number {'i' * (self.visit + 1)}".encode()
        if path == "/leaving":
            return self.leaving, {}, b"here" if self.leaving == 200 else b"gone"
        if path == "/old":
            return 301, {"Location": "/same"}, b""
        if path == "/robots.txt" and self.sitemap:
            return 200, {}, f"Sitemap: {self.base}/sitemap.xml".encode()
        if path == "/sitemap.xml":
            return 200, {"Content-Type": "application/xml"}, self.sitemap.encode()
        return 404, {}, b""

    def _unless(self, same: bool, validator: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        return (304, validator, b"") if same else (200, {"Content-Type": "text/html", **validator}, b"<p>the same")

    def paths(self) -> list[str]:
        """What pages were asked for since the last call, sorted."""
        asked, self.asked = self.asked, []
        return sorted(path for path, _ in asked if path not in ("/robots.txt", "/sitemap.xml"))


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = site.answer(self.path, dict(self.headers.items()))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if status != 304:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if status == 304 else body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        site.base = f"http://127.0.0.1:{server.server_port}"
        yield site
        server.shutdown()
        thread.join()


@dataclass
class Crawled:
    """One crawl directory, and what its store says of pages."""

    site: Site
    place: CrawlDirectory
    clock: JumpingClock
    values: dict[str, Any]

    def run(self, **more: Any) -> Ending:
        async def main() -> Ending:
            plan = Plan(load(None, {}, values={**self.values, **more}), clock=self.clock)
            async with open_crawl(self.place, plan) as crawl:
                await crawl.inject([Request(f"{self.site.base}/")])
                async with crawl.engine() as engine:
                    ending = await asyncio.wait_for(engine.run(), 60)
            return ending

        ending = asyncio.run(main())
        self.site.visit += 1
        with open_audit(self.place.database, load(None, {}, values=self.values).frontier(), owned=False) as audit:
            assert audit.faults(deep=False) == []
        return ending

    def later(self, ms: int) -> None:
        self.clock.shift += ms

    def look(self, path: str) -> tuple[Story, list[Round], list[GenerationFigures]]:
        async def main() -> tuple[Story, list[Round], list[GenerationFigures]]:
            async with open_crawl(self.place, Plan(load(None, {}, values=self.values), clock=self.clock)) as crawl:
                address = crawl.identity.identify(f"{self.site.base}{path}")
                assert not isinstance(address, Unusable)
                [story] = await crawl.frontier.find([address.key])
                [rounds] = await crawl.frontier.rounds([address.key])
                assert story is not None
                return story, rounds, await crawl.frontier.generations()

        return asyncio.run(main())


@pytest.fixture
def crawled(site: Site, tmp_path: Path) -> Callable[..., Crawled]:
    def make(**more: Any) -> Crawled:
        values = {
            "contact": "tests@crawlspace.test",
            "network.allow": ["127.0.0.1"],
            "host.delay": 0.0,
            "retry.max": 1,
            "recrawl.on": True,
            **more,
        }
        return Crawled(site, CrawlDirectory(tmp_path / "crawl"), JumpingClock(), values)

    return make


def test_what_is_due_is_visited_again_and_unchanged_pages_cost_no_body(
    site: Site, crawled: Callable[..., Crawled]
) -> None:
    crawl = crawled()
    assert crawl.run() is Ending.FINISHED
    assert site.paths() == ["/", "/dated", "/leaving", "/moving", "/old", "/same"]
    assert crawl.run() is Ending.FINISHED
    assert site.paths() == []
    crawl.later(WEEK + DAY)
    assert crawl.run() is Ending.FINISHED
    sent = dict(site.asked)
    assert sent["/same"]["If-None-Match"] == ETAG
    assert sent["/dated"]["If-Modified-Since"] == DATE
    assert not {"If-None-Match", "If-Modified-Since"} & sent["/moving"].keys()
    story, rounds, generations = crawl.look("/same")
    assert (story.state, story.generation, story.changed) == (UrlState.DONE, 1, False)
    assert story.evidence is not None
    assert (story.evidence.status, story.evidence.pointer) == (200, rounds[0].pointer)
    assert [(each.begun, each.waiting) for each in generations] == [(6, 0), (6, 0)]
    assert (generations[1].changed, generations[1].unchanged) == (1, 5)
    assert crawl.look("/moving")[0].changed is True
    assert crawl.look("/old")[0].state is UrlState.REDIRECTED


def test_an_unchanged_page_is_archived_as_a_revisit(crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run()
    crawl.later(WEEK + DAY)
    crawl.run()
    archive = WarcArchive(crawl.place.archive, ArchiveSettings(), crawl.clock, crawl="x", software="x")
    told = [capture for _, capture in archive.scan() if capture.status == 304]
    assert sorted(capture.url.rsplit("/", 1)[1] for capture in told) == ["dated", "same"]
    files = crawl.place.archive.glob("*.warc.gz")
    text = b"".join(gzip.decompress(file.read_bytes()) for file in files)
    assert text.count(b"WARC-Profile: http://netpreserve.org/warc/1.1/revisit/server-not-modified") == 2
    assert f"WARC-Refers-To-Target-URI: {crawl.site.base}/same".encode() in text


def test_intervals_follow_what_was_seen(crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run()
    crawl.later(WEEK + DAY)
    crawl.run()
    assert crawl.look("/same")[0].interval_ms == WEEK * 3 // 2
    assert crawl.look("/moving")[0].interval_ms == WEEK // 2
    crawl.site.paths()
    crawl.later(4 * DAY)
    crawl.run()
    assert crawl.site.paths() == ["/moving"]
    assert crawl.look("/moving")[0].interval_ms == WEEK // 4


def test_fixed_intervals_stay_what_they_are(crawled: Callable[..., Crawled]) -> None:
    crawl = crawled(**{"recrawl.adaptive": False, "recrawl.interval": 3600.0})
    crawl.run()
    crawl.later(2 * 3_600_000)
    crawl.run()
    assert {crawl.look(path)[0].interval_ms for path in ("/same", "/moving", "/old")} == {3_600_000}


def test_a_page_is_gone_when_it_was_missing_twice(site: Site, crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run()
    site.leaving = 404
    crawl.later(WEEK + DAY)
    crawl.run()
    story, _, _ = crawl.look("/leaving")
    assert (story.state, story.reason) == (UrlState.DEAD, "http_404")
    site.leaving = 410
    crawl.later(DAY + 1000)
    site.paths()
    crawl.run()
    assert site.paths() == ["/leaving"]
    story, rounds, _ = crawl.look("/leaving")
    assert (story.state, story.reason, story.next_visit) == (UrlState.DEAD, "gone", None)
    assert [(each.state, each.reason) for each in rounds] == [(UrlState.DONE, None), (UrlState.DEAD, "http_404")]
    crawl.later(52 * WEEK)
    site.paths()
    crawl.run()
    assert "/leaving" not in site.paths()


def test_a_page_that_comes_back_is_a_page_as_before(site: Site, crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run()
    site.leaving = 503
    crawl.later(WEEK + DAY)
    crawl.run()
    site.leaving = 200
    crawl.later(DAY + 1000)
    crawl.run()
    story, rounds, _ = crawl.look("/leaving")
    assert (story.state, story.changed, story.generation) == (UrlState.DONE, False, 2)
    assert [each.state for each in rounds] == [UrlState.DONE, UrlState.DEAD]


def test_a_crawl_made_without_a_plan_can_be_crawled_again(site: Site, crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run(**{"recrawl.on": False})
    crawl.later(WEEK + DAY)
    crawl.run(**{"recrawl.on": False})
    site.paths()
    crawl.run()
    assert site.paths() == ["/", "/dated", "/leaving", "/moving", "/old", "/same"]


def test_a_changed_interval_holds_for_what_is_done_already(site: Site, crawled: Callable[..., Crawled]) -> None:
    crawl = crawled()
    crawl.run()
    site.paths()
    crawl.later(2 * DAY)
    crawl.run(**{"recrawl.longest": 86_400.0})
    assert len(site.paths()) == 6


def test_a_sitemap_that_tells_of_a_change_brings_the_visit_forward(
    site: Site, crawled: Callable[..., Crawled]
) -> None:
    crawl = crawled()
    site.sitemap = _sitemap(site, same="2001-01-01")
    crawl.run()
    crawl.later(WEEK + DAY)
    site.sitemap = _sitemap(site, same="2002-01-01")
    crawl.run()
    assert crawl.look("/sitemap.xml")[0].interval_ms == WEEK // 2
    site.paths()
    crawl.later(4 * DAY)
    site.sitemap = _sitemap(site, same="2999-01-01")
    crawl.run()
    assert site.paths() == ["/moving", "/same"], "the home page, which it does not name, is not due"


def _sitemap(site: Site, same: str) -> str:
    return (
        f"<urlset><url><loc>{site.base}/same</loc><lastmod>{same}</lastmod></url>"
        f"<url><loc>{site.base}/dated</loc><lastmod>2001-01-01</lastmod></url></urlset>"
    )
