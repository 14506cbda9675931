"""What one request costs: our fetcher beside a bare httptools loop and aiohttp, on the same pages in one run.

    python -m bench.fetch

CPU time of this process, which only fetches; the server is another one. Rounds take turns, so that the machine's
moods hit all alike; the best round of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.util
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection as Pipe
from typing import Any

import httptools
import uvloop

from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchRequest
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.resolve import NetworkSettings

LANES = 8
HEADERS = (
    b"HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nServer: nginx\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n"
    b'Vary: Accept-Encoding\r\nCache-Control: max-age=60\r\nETag: "5f3c"\r\nX-Frame-Options: DENY\r\n'
    b"Connection: keep-alive\r\n"
)


def _pages() -> dict[bytes, bytes]:
    text = b"".join(
        b"<p>line %d of a page, with <a href=/%d>a link</a> and some more words</p>\n" % (n, n) for n in range(560)
    )
    small = text[:2000]
    packed = gzip.compress(text, 6)

    def answer(body: bytes, *fields: bytes) -> bytes:
        return HEADERS + b"".join(f + b"\r\n" for f in fields) + b"Content-Length: %d\r\n\r\n" % len(body) + body

    chunked = b"".join(
        b"%x\r\n" % len(text[i : i + 8192]) + text[i : i + 8192] + b"\r\n" for i in range(0, len(text), 8192)
    )
    return {
        b"/small": answer(small),
        b"/page": answer(text),
        b"/gzip": answer(packed, b"Content-Encoding: gzip"),
        b"/chunked": HEADERS + b"Transfer-Encoding: chunked\r\n\r\n" + chunked + b"0\r\n\r\n",
    }


def _serve(pipe: Pipe) -> None:
    pages = _pages()

    class Answer(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport: Any = transport

        def data_received(self, data: bytes) -> None:
            self.transport.write(pages[data.split(b" ", 2)[1]])

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(main())


class _Bare(asyncio.Protocol):
    """The least that a client can do: a parser, its callbacks, and a future."""

    def __init__(self) -> None:
        self.head: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []
        self.done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def get(self, path: bytes) -> asyncio.Future[bytes]:
        self.done = asyncio.get_running_loop().create_future()
        self.parser = httptools.HttpResponseParser(self)
        self.head, self.body = [], []
        self.transport.write(
            b"GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: bare\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n" % path
        )
        return self.done

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.head.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body.append(data)

    def on_message_complete(self) -> None:
        body = b"".join(self.body)
        if (b"Content-Encoding", b"gzip") in self.head:
            body = gzip.decompress(body)
        assert self.done is not None
        self.done.set_result(body)


async def _lanes(n: int, one: Callable[[int], Awaitable[Any]]) -> None:
    async def lane(number: int) -> None:
        for _ in range(n // LANES):
            await one(number)

    await asyncio.gather(*(lane(number) for number in range(LANES)))


async def bare(port: int, path: str, n: int) -> None:
    loop = asyncio.get_running_loop()
    made = [await loop.create_connection(_Bare, "127.0.0.1", port) for _ in range(LANES)]
    await _lanes(n, lambda number: made[number][1].get(path.encode()))
    for transport, _ in made:
        transport.close()


async def ours(port: int, path: str, n: int) -> None:
    network = NetworkSettings(allow=["127.0.0.1"])
    fetcher = HttpFetcher(FetchSettings(), network, SystemClock(), user_agent="bench (+x)")
    url = f"http://127.0.0.1:{port}{path}"

    async def one(_: int) -> None:
        result = await fetcher.fetch(FetchRequest(url))
        assert result.error is None, result
        assert result.body

    await _lanes(n, one)
    await fetcher.close()


async def theirs(port: int, path: str, n: int) -> None:
    async with importlib.import_module("aiohttp").ClientSession() as session:

        async def one(_: int) -> None:
            async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                assert await response.read()

        await _lanes(n, one)


def main() -> None:
    """Print microseconds of CPU a request, and what they are of the bare loop's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only")
    wanted = parser.parse_args()
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    contenders = {"bare": bare, "crawlspace": ours}
    if importlib.util.find_spec("aiohttp") is not None:  # one of the peers, which need not be there
        contenders["aiohttp"] = theirs
    if wanted.only:
        contenders = {wanted.only: contenders[wanted.only]}
    for path in ("/small", "/page", "/gzip", "/chunked"):
        best = dict.fromkeys(contenders, float("inf"))
        for _ in range(wanted.rounds):
            for name, run in contenders.items():
                begun = time.process_time()
                uvloop.run(run(port, path, wanted.requests))
                best[name] = min(best[name], (time.process_time() - begun) / wanted.requests * 1e6)
        first = best.get("bare", 1)
        print(path, *(f"{name} {cost:.0f} us ({cost / first:.2f})" for name, cost in best.items()), sep="  ")
    server.kill()


if __name__ == "__main__":
    main()
