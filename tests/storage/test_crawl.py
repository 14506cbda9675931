"""A whole crawl into object storage: killed while it uploads, resumed, checked, joined, and nothing is missing."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
import tomli_w

from crawlspace.app.check import Checker
from crawlspace.app.compact import Compacter
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.index import index_archive, index_table
from crawlspace.clock import SystemClock
from crawlspace.errors import ArchiveAway
from crawlspace.settings import Settings, load, nested
from crawlspace.states import UrlState

PAGES = 30
SIZE = 300_000
"""Bytes of such a file, where archive files are to change often."""
SECONDS = 60


class _Site(BaseHTTPRequestHandler):
    """A tree of pages, each with three links down."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        name = self.path.removeprefix("/")
        known = name.isdecimal() and int(name) < PAGES
        links = "".join(f"<a href=/{n}>{n}</a>" for n in range(int(name) * 3 + 1, int(name) * 3 + 4)) if known else ""
        self.server.asked += 1  # type: ignore[attr-defined]
        body = f"<!doctype html><title>{name}</title>{links}<p>{'the same words ' * 40}".encode() * known
        leaf = known and int(name) * 3 + 1 >= PAGES and self.server.size  # type: ignore[attr-defined]
        if leaf:
            body = random.Random(name).randbytes(self.server.size)  # type: ignore[attr-defined]
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/octet-stream" if leaf else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    asked = 0
    size = 0
    """Bytes of files at the leaves of the tree; with 0 they are pages too."""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def server_of_pages() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def site(server_of_pages: _Server) -> str:
    return server_of_pages.address


@pytest.fixture
def environment(gated: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in gated.environment.items():
        monkeypatch.setenv(name, value)
    return dict(os.environ)


def command(folder: Path, site: str, address: str, **more: object) -> list[str]:
    folder.mkdir(exist_ok=True)
    values = {
        **more,
        "host.delay": 0.01,
        "network.allow": ["127.0.0.1"],
        "archive.store": address,
        "archive.table": True,
    }
    config = folder / "crawl.toml"
    config.write_text(tomli_w.dumps(nested(values)))
    options = ["--dir", str(folder / "crawl"), "--config", str(config)]
    return [sys.executable, "-m", "crawlspace", "crawl", f"{site}/0", *options]


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=100)


def pages(directory: Path) -> list[str]:
    with closing(sqlite3.connect(directory / "frontier.db")) as database:
        rows = database.execute("SELECT url FROM outcome WHERE state = ? AND status = 200", [UrlState.DONE])
        return sorted(url for (url,) in rows)


def wait_for(what: Callable[[], bool]) -> None:
    """The other process gets there, or the test fails."""
    ends = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def used(place: CrawlDirectory) -> Settings:
    return load(place.effective, {})


def checked(place: CrawlDirectory) -> list[str]:
    report = Checker(place, used(place), SystemClock(), deep=True).run()
    assert report.captures >= PAGES
    return report.faults


def rows(place: CrawlDirectory) -> list[str]:
    table = pyarrow.dataset.dataset(place.captures, partitioning="hive").to_table()
    return sorted(table["url"].to_pylist())


def test_a_crawl_that_is_killed_while_it_uploads_goes_on_and_nothing_is_missing(
    environment: dict[str, str], gated: Any, address: str, site: str, tmp_path: Path
) -> None:
    place = CrawlDirectory(tmp_path / "crawl")
    crawl = command(tmp_path, site, address)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(crawl, env=environment, **pipes) as running:
        wait_for(lambda: len(gated.writes) >= 2)
        gated.hold.clear()
        wait_for(lambda: gated.waiting > 0)
        running.kill()
    gated.hold.set()
    ran = run(crawl, environment)
    assert ran.returncode == 0, ran.stderr
    assert not gated.lists, "nothing is listed to go on"
    assert pages(place.path) == sorted(f"{site}/{n}" for n in range(PAGES))
    assert not list(place.archive.rglob("*.warc.gz")), "the local disk is a buffer only"
    written = [path.read_bytes() for path in place.path.rglob("*") if path.is_file()]
    assert not any(b"TOP-SECRET-KEY" in data for data in written)
    assert "lacks rows" in ran.stderr
    assert checked(place) == []
    _joined(place, gated)


def _joined(place: CrawlDirectory, gated: Any) -> None:
    settings = used(place)
    before = index_archive(place, settings, place.path / "before.cdxj")
    assert before.files > 2
    index_table(place, settings)
    assert set(pages(place.path)) <= set(rows(place))
    done = asyncio.run(Compacter(place, settings, SystemClock()).run())
    assert (done.before, done.after) == (before.files, 1)
    assert checked(place) == []
    after = index_archive(place, settings, place.path / "after.cdxj")
    assert (after.files, after.captures) == (1, before.captures)
    gated.broken = True
    with pytest.raises(ArchiveAway):
        Checker(place, settings, SystemClock()).run()


def test_a_storage_that_is_away_pauses_the_crawl_which_then_goes_on(
    environment: dict[str, str], gated: Any, address: str, site: str, tmp_path: Path
) -> None:
    """It waits and says so; when the storage answers again, every page is there."""
    gated.spared, gated.refused = 1, 12
    ran = run(command(tmp_path, site, address), environment)
    assert ran.returncode == 0, ran.stderr
    assert "s3://" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert pages(tmp_path / "crawl") == sorted(f"{site}/{n}" for n in range(PAGES))


@pytest.mark.long
def test_a_crawl_that_is_killed_while_its_files_change_has_the_rows_of_one_that_was_not(
    server_of_pages: _Server, tmp_path: Path
) -> None:
    """On the local disk, a new file after every third page."""
    server_of_pages.size = SIZE
    settings = {"archive.max_file": 1 << 20, "archive.compression": "zstd"}
    environment = dict(os.environ)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(command(whole, server_of_pages.address, "", **settings), environment).returncode == 0
    crawl = command(killed, server_of_pages.address, "", **settings)
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    asked = server_of_pages.asked
    with subprocess.Popen(crawl, env=environment, **pipes) as running:
        wait_for(lambda: server_of_pages.asked >= asked + PAGES // 2)
        running.kill()
    assert run(crawl, environment).returncode == 0
    places = [CrawlDirectory(folder / "crawl") for folder in (whole, killed)]
    for place in places:
        assert len(list(place.archive.glob("*.warc.*"))) > 4
        assert checked(place) == []
        index_table(place, used(place))
    assert _done(places[0]) == _done(places[1])


def _done(place: CrawlDirectory) -> set[tuple[str, ...]]:
    """What the table says of the pages; a page that was under way at a kill may be in it twice."""
    table = pyarrow.dataset.dataset(place.captures, partitioning="hive").to_table().to_pylist()
    names = ("url", "canonical", "body_digest", "payload_digest", "detected", "links", "relation")
    return {tuple(str(row[name]) for name in names) for row in table if row["outcome"] == "done"}
