"""A small web on the loopback that runs beside the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import crawlspace
from crawlspace.cli.options import reading
from crawlspace.events import Ending
from crawlspace.types import Story, Unusable

HOST = "127.0.0.97"
Answer = bytes | Callable[[bytes], bytes]


class ScriptWeb:
    """Answers by path, whatever the host; 404 for all others. `asked` holds paths, `heads` whole request heads."""

    def __init__(self, directory: Path) -> None:
        self.pages: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.heads: list[bytes] = []
        self.directory = directory / "crawl"
        self.port = 0
        self._loop = asyncio.new_event_loop()

    def put(self, path: str, body: str, kind: str = "text/html", status: str = "200 OK", **fields: str) -> None:
        self.pages[path] = answer(body, kind, status, **fields)

    def network(self) -> dict[str, Any]:
        return {"allow": [HOST], "resolve": {"*.test": f"{HOST}:{self.port}"}}

    def crawl(self, *seeds: str, **settings: Any) -> crawlspace.Result:
        quick = {"contact": "tests@crawlspace.test", "host.delay": 0, "retry.wait": 0.01, "browser.wait": 20}
        network = {f"network.{name}": value for name, value in self.network().items()}
        chosen = {name.replace("__", "."): value for name, value in settings.items()}
        result = crawlspace.Crawl(self.directory, list(seeds), settings={**quick, **network, **chosen}).run()
        assert result.ending is Ending.FINISHED
        return result

    def story(self, url: str) -> Story:
        async def find() -> Story | None:
            async with reading(self.directory) as (frontier, identity):
                address = identity.identify(url)
                assert not isinstance(address, Unusable)
                (story,) = await frontier.find([address.key])
                return story

        story = asyncio.run(find())
        assert story is not None, url
        return story

    def serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        listener = self._loop.run_until_complete(asyncio.start_server(self._handle, HOST, 0))
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
                path = head.split(b" ")[1].decode()
                self.asked.append(path)
                self.heads.append(head)
                found = self.pages.get(path, b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                writer.write(found if isinstance(found, bytes) else found(head))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def answer(body: str, kind: str = "text/html", status: str = "200 OK", **fields: str) -> bytes:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    data = body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {len(data)}\r\n{more}\r\n"
    return head.encode() + data


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ScriptWeb]:
    web = ScriptWeb(tmp_path)
    ready = threading.Event()
    thread = threading.Thread(target=web.serve, args=(ready,), daemon=True)
    thread.start()
    ready.wait()
    yield web
    web.stop()
    thread.join(10)
    assert not thread.is_alive()
