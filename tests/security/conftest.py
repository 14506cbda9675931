"""A hostile web on the loopback: raw answers by URL, under any host name, and crawls of it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.cli import main
from crawlspace.cli.options import reading
from crawlspace.events import Ending
from crawlspace.types import Story, Unusable


class Web:
    """Answers by URL, 404 for all others; `asked` holds the request heads, `urls` their URLs, in order of arrival."""

    def __init__(self, directory: Path) -> None:
        self.pages: dict[str, bytes | Callable[[bytes], bytes]] = {}
        self.asked: list[bytes] = []
        self.urls: list[str] = []
        self.directory = directory / "crawl"
        self.port = 0
        self._loop = asyncio.new_event_loop()

    # -- what it serves ---------------------------------------------------------------------------------------

    def put(self, url: str, body: bytes = b"", *fields: bytes, status: bytes = b"200 OK") -> None:
        """Answer this URL with a body and header lines; text/html unless they say otherwise."""
        lines = [*fields, b"Content-Length: %d" % len(body)]
        if not any(line.lower().startswith(b"content-type:") for line in fields):
            lines.append(b"Content-Type: text/html; charset=utf-8")
        self.pages[url] = b"HTTP/1.1 " + status + b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body

    def page(self, url: str, *links: str) -> None:
        self.put(url, "".join(f'<a href="{link}">x</a>' for link in links).encode())

    def redirect(self, url: str, location: bytes, status: bytes = b"302 Found") -> None:
        self.put(url, b"", b"Location: " + location, status=status)

    # -- crawls of it -----------------------------------------------------------------------------------------

    def settings(self, **more: Any) -> dict[str, Any]:
        """Quick ones; names with `__` for the dot. Every `*.test` leads here, the loopback itself is not allowed."""
        chosen = {name.replace("__", "."): value for name, value in more.items()}
        quick = {
            "contact": "tests@crawlspace.test",
            "host.delay": 0,
            "fetch.idle_timeout": 2,
            "retry.max": 1,
            "network.allow": ["127.0.0.99"],
            "network.resolve": {"*.test": f"127.0.0.99:{self.port}"},
        }
        return {**quick, **chosen}

    def crawl(self, *seeds: str, handler: Any = None, **settings: Any) -> crawlspace.Result:
        crawl = crawlspace.Crawl(self.directory, list(seeds), settings=self.settings(**settings))
        if handler is not None:
            crawl.handler(handler)
        result = crawl.run()
        assert result.ending is Ending.FINISHED
        assert result.counts.known == sum(result.counts.states.values())
        return result

    def story(self, url: str) -> Story:
        """What the crawl knows of a URL."""

        async def find() -> Story | None:
            async with reading(self.directory) as (frontier, identity):
                address = identity.identify(url)
                assert not isinstance(address, Unusable)
                (story,) = await frontier.find([address.key])
                return story

        story = asyncio.run(find())
        assert story is not None, url
        return story

    # -- the server -------------------------------------------------------------------------------------------

    def serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listener = self._loop.run_until_complete(asyncio.start_server(self._handle, "127.0.0.99", 0))
        self.port = listener.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        listener.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                host = head.partition(b"\r\nHost: ")[2].partition(b"\r\n")[0].decode()
                target = head.split(b" ")[1].decode()
                url = target if target.startswith("http") else f"http://{host}{target}"
                self.asked.append(head)
                self.urls.append(url)
                answer = self.pages.get(url, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                writer.write(answer if isinstance(answer, bytes) else answer(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    web = Web(tmp_path)
    ready = threading.Event()
    thread = threading.Thread(target=web.serve, args=(ready,), daemon=True)
    thread.start()
    ready.wait()
    yield web
    web.stop()
    thread.join(10)
    assert not thread.is_alive()


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Callable[..., tuple[int, bytes]]:
    """`command("stats", directory)`: the exit code, and all that the process wrote to either stream."""

    def call(*words: str | Path) -> tuple[int, bytes]:
        monkeypatch.setattr(sys, "argv", ["crawlspace", *map(str, words)])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        told = capfdbinary.readouterr()
        return int(left.value.code or 0), told.out + told.err

    return call
