"""A few hosts on 127.0.0.1 that let some requests through and keep others out, and crawls of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import crawlspace
from crawlspace.app.directory import CrawlDirectory
from crawlspace.cli.options import reading
from crawlspace.events import Ending
from crawlspace.settings import nested
from crawlspace.types import RouteFigures, Story, Unusable

WALL = (
    "<html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt={};</script>"
    "Checking that you are no robot</body></html>"
)


@dataclass
class Asked:
    """One request, as it arrived."""

    url: str
    method: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass
class Answer:
    """What it is answered."""

    body: str | bytes = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html"})


Door = Callable[[Asked], Answer]


class Doors:
    """Answers by URL; what has no door is 404. `asked` holds the requests in order of arrival."""

    def __init__(self, directory: Path) -> None:
        self.doors: dict[str, Door] = {}
        self.asked: list[Asked] = []
        self.directory = directory / "crawl"
        handler = type("Handler", (_Handler,), {"web": self})
        self.server = _Server(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        return int(self.server.server_port)

    def open(self, url: str, *links: str) -> None:
        """A page with these links, for everybody."""
        page = Answer("<html><body>" + "".join(f'<a href="{link}">x</a>' for link in links) + "</body></html>")
        self.doors[url] = lambda _: page

    def block(self, url: str, lets_in: Callable[[Asked], bool], *, status: int = 403, wall: str = WALL) -> None:
        """A page for those that are let in, and a wall for everybody else."""
        self.doors[url] = lambda asked: (
            Answer("<html><body>in</body></html>") if lets_in(asked) else Answer(wall, status)
        )

    def came(self, url: str) -> list[Asked]:
        return [each for each in self.asked if each.url == url]

    def quick(self) -> dict[str, Any]:
        """Settings that lead here and wait for nothing."""
        return {
            "contact": "tests@crawlspace.test",
            "host.delay": 0,
            "retry.wait": 0.05,
            "network.allow": ["127.0.0.1"],
            "network.resolve": {f"{name}.test:80": f"127.0.0.1:{self.port}" for name in "abc"},
        }

    def crawl(self, *seeds: str, **settings: Any) -> crawlspace.Result:
        """Crawl, or go on with the crawl; settings with `__` for the dot."""
        chosen = {name.replace("__", "."): value for name, value in settings.items()}
        result = crawlspace.Crawl(self.directory, list(seeds), settings={**self.quick(), **chosen}).run()
        assert result.ending is Ending.FINISHED
        return result

    def write_config(self, **settings: Any) -> None:
        """The same as the crawl directory's own file."""
        chosen = {name.replace("__", "."): value for name, value in settings.items()}
        (self.directory / "crawl.toml").write_text(tomli_w.dumps(nested({**self.quick(), **chosen})))

    def story(self, url: str) -> Story:
        """What the crawl knows of a URL that it knows."""

        async def main() -> Story | None:
            async with reading(self.directory) as (frontier, identity):
                address = identity.identify(url)
                assert not isinstance(address, Unusable)
                return (await frontier.find([address.key]))[0]

        found = asyncio.run(main())
        assert found is not None
        return found

    def figures(self) -> dict[str, RouteFigures]:
        """Routes in numbers."""

        async def main() -> list[RouteFigures]:
            async with reading(self.directory) as (frontier, _):
                return await frontier.route_figures()

        return {each.name: each for each in asyncio.run(main())}

    def database(self) -> Path:
        return CrawlDirectory(self.directory).database


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_arguments: object) -> None:
        """Clients may leave when they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    web: Doors

    def do_GET(self) -> None:
        url = self.path if self.path.startswith("http") else f"http://{self.headers['Host']}{self.path}"
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        asked = Asked(url, self.command, headers, body)
        self.web.asked.append(asked)
        door = self.web.doors.get(url)
        answer = Answer(status=404) if door is None else door(asked)
        data = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Doors]:
    web = Doors(tmp_path)
    thread = threading.Thread(target=web.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield web
    web.server.shutdown()
    web.server.server_close()
    thread.join()


def ways(*order: str, **options: Any) -> dict[str, Any]:
    """Settings with an HTTP route for each name, in this order; `options` are those of single routes."""
    routes = {name: {"kind": "http", "user_agent": name, **options.get(name, {})} for name in order}
    return {"routes": routes, "routing__order": list(order)}


def agent(*names: str) -> Callable[[Asked], bool]:
    """Lets in who says to be one of these."""
    return lambda asked: asked.headers["user-agent"] in names
