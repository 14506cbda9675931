"""A few hosts on 127.0.0.1 that answer what a test says, and crawls of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import crawlspace
from crawlspace.cli.options import reading
from crawlspace.events import Ending
from crawlspace.settings import nested
from crawlspace.states import UrlState
from crawlspace.types import Story, Unusable

Answer = tuple[int, dict[str, str], bytes]


class SmallWeb:
    """Answers by URL; whatever is not in `pages` is 404. `asked` holds the URLs in order of arrival."""

    def __init__(self, directory: Path) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.directory = directory / "crawl"
        handler = type("Handler", (_Handler,), {"web": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def put(
        self, url: str, body: str | bytes = "", kind: str = "text/html", status: int = 200, **fields: str
    ) -> None:
        """Answer this URL so; header names with `_` for the hyphen."""
        headers = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in fields.items()}}
        self.pages[url] = status, headers, body.encode() if isinstance(body, str) else body

    def page(self, url: str, *links: str, head: str = "") -> None:
        """A page with these links."""
        anchors = "".join(f'<a href="{link}">x</a>' for link in links)
        self.put(url, f"<html><head>{head}</head><body>{anchors}</body></html>")

    def robots(self, origin: str, *lines: str) -> None:
        self.put(f"{origin}/robots.txt", "\n".join(lines), "text/plain")

    def urlset(self, url: str, *urls: str) -> None:
        entries = "".join(f"<url><loc>{each}</loc></url>" for each in urls)
        self.put(url, f"<urlset>{entries}</urlset>", "application/xml")

    def index(self, url: str, *urls: str) -> None:
        entries = "".join(f"<sitemap><loc>{each}</loc></sitemap>" for each in urls)
        self.put(url, f"<sitemapindex>{entries}</sitemapindex>", "application/xml")

    def crawl(self, *seeds: str, **settings: Any) -> crawlspace.Result:
        """Crawl, or go on with the crawl; settings with `__` for the dot."""
        chosen = {name.replace("__", "."): value for name, value in settings.items()}
        result = crawlspace.Crawl(self.directory, list(seeds), settings={**self.quick(), **chosen}).run()
        assert result.ending is Ending.FINISHED
        return result

    def quick(self) -> dict[str, Any]:
        """Settings that lead here and wait for nothing."""
        return {
            "contact": "tests@crawlspace.test",
            "host.delay": 0,
            "retry.wait": 0.05,
            "network.allow": ["127.0.0.1"],
            "network.resolve": {f"{name}.test:80": f"127.0.0.1:{self.server.server_port}" for name in "abc"},
        }

    def write_config(self) -> None:
        """The same as the crawl directory's own file."""
        (self.directory / "crawl.toml").write_text(tomli_w.dumps(nested(self.quick())))

    def story(self, url: str) -> Story | None:
        """What the crawl knows of a URL."""

        async def main() -> Story | None:
            async with reading(self.directory) as (frontier, identity):
                address = identity.identify(url)
                assert not isinstance(address, Unusable)
                (story,) = await frontier.find([address.key])
                return story

        return asyncio.run(main())

    def state(self, url: str) -> UrlState | None:
        story = self.story(url)
        return None if story is None else story.state


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: SmallWeb

    def do_GET(self) -> None:
        url = f"http://{self.headers['Host']}{self.path}"
        self.web.asked.append(url)
        status, headers, body = self.web.pages.get(url, (404, {}, b""))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[SmallWeb]:
    web = SmallWeb(tmp_path)
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield web
    web.server.shutdown()
    web.server.server_close()
    thread.join()
