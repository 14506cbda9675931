"""A start takes the same time whatever the crawl knows: it reads no whole table."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import tomli_w

from crawlspace.app.compose import Plan, open_crawl
from crawlspace.app.directory import CrawlDirectory
from crawlspace.settings import load, nested
from crawlspace.types import Claim, Unusable

URLS_PER_HOST = 500
BATCH = 5000
START_SECONDS = 2.0


class FirstRequest(ThreadingHTTPServer):
    """A server that notes when it is first asked."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked_at = 0.0
        super().__init__(("127.0.0.1", 0), _Answer)


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, FirstRequest)
        self.server.asked_at = self.server.asked_at or time.monotonic()
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[FirstRequest]:
    with FirstRequest() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def _fill(place: CrawlDirectory, values: dict[str, object], urls: int) -> None:
    async with open_crawl(place, Plan(load(None, {}, values=values))) as crawl:
        for start in range(0, urls, BATCH):
            texts = [f"http://h{n // URLS_PER_HOST}.big.test/page/{n}" for n in range(start, start + BATCH)]
            addresses = [crawl.identity.identify(text) for text in texts]
            usable = [address for address in addresses if not isinstance(address, Unusable)]
            await crawl.frontier.claim([Claim(address, depth=1) for address in usable])


def start_time(folder: Path, server: FirstRequest, urls: int) -> float:
    """Seconds from starting the command to its first request."""
    values: dict[str, object] = {
        "contact": "tests@crawlspace.test",
        "network.resolve": {"*.big.test": f"127.0.0.1:{server.server_port}"},
        "network.allow": ["127.0.0.1"],
        "scope.strategy": "any",
        "budget.pages": 1,
    }
    place = CrawlDirectory(folder / "crawl")
    asyncio.run(_fill(place, values, urls))
    config = folder / "crawl.toml"
    config.write_text(tomli_w.dumps(nested(values)))
    command = [sys.executable, "-m", "crawlspace", "crawl", "--dir", str(place.path), "--config", str(config), "-q"]
    began = time.monotonic()
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 4, ran.stderr
    return server.asked_at - began


def test_a_crawl_of_fifty_thousand_urls_starts_at_once(tmp_path: Path, server: FirstRequest) -> None:
    assert 0 < start_time(tmp_path, server, 50_000) < 2 * START_SECONDS  # other tests run beside this one


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_crawl_of_a_million_urls_starts_within_two_seconds(tmp_path: Path, server: FirstRequest) -> None:
    assert 0 < start_time(tmp_path, server, 1_000_000) < START_SECONDS
