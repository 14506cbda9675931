"""Two real sites, as Debian ships them: every reachable page is fetched exactly once and kept whole."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

import crawlspace
from crawlspace.app.directory import CrawlDirectory
from crawlspace.app.replay import replay
from crawlspace.cli.options import reading, settings_used
from crawlspace.events import Ending
from crawlspace.states import UrlState
from crawlspace.types import Unusable

SITES = {
    "python": Path("/usr/share/doc/python3.11/html"),
    "postgresql": Path("/usr/share/doc/postgresql-doc-15/html"),
}


class Server(ThreadingHTTPServer):
    """Python's own static server, with a log."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing; a failure would be told here a second time."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        assert isinstance(self.server, Server)
        self.server.asked.append(self.path)


UNREAD = re.compile(r"<!--.*?-->|<script\b.*?</script>|<style\b.*?</style>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<(a|area|frame|iframe|base)\s([^>]*)>", re.IGNORECASE)
ADDRESS = re.compile(r"""(?:^|\s)(href|src)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def links(text: str) -> tuple[list[str], str]:
    """Links and base by two patterns, which is enough for well-formed pages: another reader than the crawl's."""
    found: list[str] = []
    base = ""
    for tag in TAG.finditer(UNREAD.sub("", text)):
        name = tag[1].lower()
        wanted = "src" if name in ("frame", "iframe") else "href"
        values = [
            unescape("".join(filter(None, each.groups()[1:])))
            for each in ADDRESS.finditer(tag[2])
            if each[1].lower() == wanted
        ]
        if name == "base":
            base = base or "".join(values[:1])
        else:
            found += values[:1]
    return found, base


def walk(folder: Path) -> set[str]:
    """Paths of all that can be reached from /index.html in the files themselves."""
    reached: set[str] = set()
    waiting = ["/index.html"]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        file = folder / unquote(path).lstrip("/")
        if file.is_dir():
            file /= "index.html"
        if file.suffix not in (".html", ".htm") or not file.is_file():
            continue
        found, told = links(file.read_text(encoding="utf-8", errors="replace"))
        base = urljoin(f"http://site{path}", told)
        for link in {link.partition("#")[0].strip() for link in found}:
            target = urlsplit(urljoin(base, link))
            if target.scheme == "http" and target.netloc == "site":
                waiting.append(target.path or "/")
    return reached


@pytest.fixture(params=list(SITES))
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Path]]:
    folder = SITES[request.param]
    if not (folder / "index.html").exists():
        pytest.skip(f"needs Debian's documentation package for {request.param}")  # .ci/run installs it
    with Server(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server, folder
        server.shutdown()
        thread.join()


@pytest.mark.realsite
@pytest.mark.timeout(300)
def test_every_page_is_fetched_once_and_kept(site: tuple[Server, Path], tmp_path: Path) -> None:
    server, folder = site
    settings = {
        "host.delay": 0,
        "host.concurrency": 16,
        "network.allow": ["127.0.0.1"],
        "scope.max_url_length": 8000,
        "fetch.max_body": 50_000_000,
        "retry.wait": 0.05,
        # Otherwise the host is asked for a path that nobody links to.
        "content.probe_after": 0,
    }
    result = crawlspace.Crawl(tmp_path / "crawl", [f"{server.root}/index.html"], settings=settings).run()
    assert result.ending is Ending.FINISHED
    expected = walk(folder)
    asked = Counter(path for path in server.asked if path != "/robots.txt")
    assert not [path for path, times in asked.items() if times > 1]
    assert {unquote(path) for path in asked} == {unquote(path) for path in expected}
    assert result.counts.known == sum(result.counts.states.values())
    asyncio.run(_check_captures(tmp_path / "crawl", server.root, folder, sorted(asked)))


async def _check_captures(directory: Path, root: str, folder: Path, paths: list[str]) -> None:
    place = CrawlDirectory(directory)
    settings = settings_used(place)
    async with reading(directory, settings) as (frontier, identity):
        addresses = [identity.identify(root + path) for path in paths]
        stories = await frontier.find([each.key for each in addresses if not isinstance(each, Unusable)])
    for path, story in zip(paths, stories, strict=True):
        assert story is not None
        assert story.evidence is not None
        assert story.evidence.pointer is not None
        if story.state is UrlState.DONE and (folder / unquote(path).lstrip("/")).is_file():
            body = replay(place, story.evidence.pointer, settings).body
            assert body == (folder / unquote(path).lstrip("/")).read_bytes()
            assert story.evidence.digest == hashlib.sha256(body).digest()


@pytest.mark.long
@pytest.mark.realsite
@pytest.mark.timeout(600)
def test_memory_stays_under_150_megabytes(site: tuple[Server, Path], tmp_path: Path) -> None:
    server, _ = site
    command = [
        sys.executable,
        "-m",
        "crawlspace",
        "crawl",
        f"{server.root}/index.html",
        "--dir",
        str(tmp_path / "crawl"),
        "-q",
    ]
    for setting in (
        "host.delay=0",
        "host.concurrency=16",
        'network.allow=["127.0.0.1"]',
        "scope.max_url_length=8000",
    ):
        command += ["-s", setting]
    process = os.posix_spawn(sys.executable, command, os.environ)
    _, status, usage = os.wait4(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 150_000
