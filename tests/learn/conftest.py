"""Small webs of one function, on 127.0.0.1, and whole crawls of them that learn."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.cli import main
from crawlspace.cli.options import reading
from crawlspace.events import Ending
from crawlspace.policy.evidence import KnownRule
from crawlspace.states import UrlState
from crawlspace.types import Address
from crawlspace.urls import Identity

HOST = "site.test"
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "glade", "heath", "inlet", "jetty", "knoll", "ledge")
Answer = tuple[int, str]
"""Status, and body or location."""
Site = Callable[[str], Answer]


def page(says: str, *links: str, head: str = "") -> Answer:
    """A page that says this in words of its own, long enough for its text to mean something."""
    words = " ".join(random.Random(says).choices(WORDS, k=80))
    anchors = "".join(f'<a href="{link}"></a>' for link in links)
    return 200, f"<html><head>{head}<title>{says}</title></head><body><p>{words}</p>{anchors}</body></html>"


@dataclass
class Web:
    """A running web, and what was asked of it."""

    port: int
    asked: list[str] = field(default_factory=list)

    def settings(self, **learning: Any) -> dict[str, Any]:
        """Settings under which it is crawled quickly."""
        names = (HOST, f"www.{HOST}")
        return {
            "contact": "tests@crawlspace.test",
            "host.delay": 0.0,
            "retry.wait": 0.05,
            "scope.max_depth": 1000,
            "network.resolve": {f"{name}:80": f"127.0.0.1:{self.port}" for name in names},
            "network.allow": ["127.0.0.1"],
            **{f"learning.{name}": value for name, value in learning.items()},
        }


@contextmanager
def serving(site: Site) -> Iterator[Web]:
    """`site` is asked for path and query of each request."""
    ready = threading.Event()
    web = Web(0)
    stop: list[Callable[[], None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                target = head.split(b" ")[1].decode()
                web.asked.append(target)
                status, text = (404, "none") if target == "/robots.txt" else site(target)
                location = f"Location: {text}\r\n" if 300 <= status < 400 else ""
                body = text.encode()
                writer.write(
                    f"HTTP/1.1 {status} x\r\nContent-Type: text/html; charset=utf-8\r\n{location}"
                    f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    async def run() -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        web.port = server.sockets[0].getsockname()[1]
        stop.append(lambda: loop.call_soon_threadsafe(stopped.set))
        ready.set()
        await stopped.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield web
    finally:
        stop[0]()
        thread.join(10)


@dataclass
class Crawled:
    """A crawl of such a web."""

    directory: Path
    ending: Ending
    told: list[str]

    def rules(self) -> dict[str, KnownRule]:
        """Learned rules by their words."""

        async def main() -> list[KnownRule]:
            async with reading(self.directory) as (store, _):
                return await store.learned()

        return {str(known.rule): known for known in asyncio.run(main())}

    def done(self, targets: Sequence[str]) -> set[bytes]:
        """Keys of these pages, all of which are done."""

        async def main() -> set[bytes]:
            async with reading(self.directory) as (store, identity):
                addresses = [identity.identify(f"http://{HOST}{target}") for target in targets]
                keys = [each.key for each in addresses if isinstance(each, Address)]
                assert all(story and story.state is UrlState.DONE for story in await store.find(keys))
                return set(keys)

        return asyncio.run(main())

    def identity(self) -> Identity:
        """Who URLs are in the crawl as it is now."""

        async def main() -> Identity:
            async with reading(self.directory) as (_, identity):
                return identity

        return asyncio.run(main())


def crawl(web: Web, directory: Path, *seeds: str, **learning: Any) -> Crawled:
    """Crawl the web from its first page, or go on."""
    told: list[str] = []

    def watch(event: crawlspace.events.Event) -> None:
        if isinstance(event, crawlspace.events.Warned):
            told.append(event.message)

    made = crawlspace.Crawl(directory, seeds or (f"http://{HOST}/",), settings=web.settings(**learning), watch=watch)
    return Crawled(directory, made.run().ending, told)


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """What it printed as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run `crawlspace ARGUMENTS`."""

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, told.out, told.err)

    return run
