"""What one request costs: our fetcher beside the least that a client can do, and beside aiohttp, in one run.

    python -m bench.fetch                     # on plain connections that are kept
    python -m bench.fetch --over tls          # kept, over TLS; `new` and `new-tls`: a connection for each request

CPU time of this process, which only fetches; the server is another one. 64 requests are under way at a time. The
bare loop is a protocol with httptools' parser that keeps head and body, one task a connection, and for each request
a future that is awaited under a timeout: what nobody can do without. Rounds take turns, so that the machine's moods
hit all alike, and the best round of each counts. Memory that is freed stays with the process, for all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gzip
import importlib.util
import json
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httptools
import uvloop

from bench.fetch_server import SIZES, Served, serving
from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchRequest
from crawlspace.fetch.http import HttpFetcher
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.resolve import NetworkSettings

LANES = 64
OVER = {"plain": ("http", ""), "tls": ("https", ""), "new": ("http", ".close"), "new-tls": ("https", ".close")}
"""From a kind of connection to its scheme and what its paths end in."""
TIMEOUT = 30.0
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of mallopt(3)."""


class Task(NamedTuple):
    """What each contender does in a round."""

    served: Served
    scheme: str
    path: str
    each: int
    """Requests in each lane."""

    @property
    def port(self) -> int:
        return self.served.secure if self.scheme == "https" else self.served.plain

    @property
    def kept(self) -> bool:
        return not self.path.endswith(".close")

    @property
    def url(self) -> str:
        return f"{self.scheme}://localhost:{self.port}{self.path}"

    def trust(self) -> ssl.SSLContext | None:
        """How the server is judged."""
        return ssl.create_default_context(cafile=self.served.authority) if self.scheme == "https" else None


class _Bare(asyncio.Protocol):
    def __init__(self) -> None:
        self.head: list[tuple[bytes, bytes]] = []
        self.body: list[bytes] = []
        self.done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    async def get(self, path: bytes) -> bytes:
        self.done = asyncio.get_running_loop().create_future()
        self.parser = httptools.HttpResponseParser(self)
        self.head, self.body = [], []
        self.transport.write(
            b"GET %s HTTP/1.1\r\nHost: x\r\nUser-Agent: bare\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n" % path
        )
        async with asyncio.timeout(TIMEOUT):
            return await self.done

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


One = Callable[[int], Awaitable[Any]]
"""Makes one request in the lane of this number."""
Contender = Callable[[Task], AbstractAsyncContextManager[One]]


@asynccontextmanager
async def bare(task: Task) -> AsyncIterator[One]:
    loop = asyncio.get_running_loop()
    trust = task.trust()
    name = "localhost" if trust else None
    path = task.path.encode()
    made: dict[int, _Bare] = {}

    async def one(number: int) -> None:
        connection = made.get(number)
        if connection is None:
            _, connection = await loop.create_connection(
                _Bare, "127.0.0.1", task.port, ssl=trust, server_hostname=name
            )
            if task.kept:
                made[number] = connection
        assert await connection.get(path)
        if not task.kept:
            connection.transport.close()

    yield one
    for each in made.values():
        each.transport.close()


@asynccontextmanager
async def ours(task: Task) -> AsyncIterator[One]:
    authority = task.served.authority if task.scheme == "https" else ""
    limits = FetchSettings(connections_per_address=LANES, ca_file=authority)
    network = NetworkSettings(allow=["127.0.0.1"], resolve={"localhost": f"127.0.0.1:{task.port}"})
    fetcher = HttpFetcher(limits, network, SystemClock(), user_agent="bench (+x)")
    url = task.url

    async def one(_: int) -> None:
        result = await fetcher.fetch(FetchRequest(url))
        assert result.error is None, result
        assert result.body

    yield one
    await fetcher.close()


@asynccontextmanager
async def theirs(task: Task) -> AsyncIterator[One]:
    aiohttp = importlib.import_module("aiohttp")
    connector = aiohttp.TCPConnector(ssl=task.trust() or True, limit=LANES)
    url = task.url.replace("localhost", "127.0.0.1")
    name = "localhost" if task.scheme == "https" else None

    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(_: int) -> None:
            async with session.get(url, server_hostname=name) as response:
                assert await response.read()

        yield one


CONTENDERS = {"bare": bare, "crawlspace": ours, "aiohttp": theirs}


async def _cost(contender: Contender, task: Task) -> float:
    async with contender(task) as one:

        async def lane(number: int, times: int) -> None:
            for _ in range(times):
                await one(number)

        await asyncio.gather(*(lane(number, 1) for number in range(LANES)))  # connects, where connections are kept
        begun = time.process_time()
        await asyncio.gather(*(lane(number, task.each) for number in range(LANES)))
        return (time.process_time() - begun) / (LANES * task.each) * 1e6


def costs(contenders: dict[str, Contender], task: Task, rounds: int) -> dict[str, float]:
    """Microseconds of CPU a request, the best round of each."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, contender in contenders.items():
            best[name] = min(best[name], uvloop.run(_cost(contender, task)))
    return best


def keep_memory() -> None:
    """Keep what is freed: giving it back and taking it again costs more than some contenders' whole page does."""
    with suppress(OSError, AttributeError):  # not glibc
        libc = ctypes.CDLL(None)
        for option, value in ((_TRIM_THRESHOLD, 64 << 20), (_MMAP_THRESHOLD, 16 << 20)):
            libc.mallopt(option, value)


def line(name: str, best: dict[str, float]) -> str:
    """A row of the table, with ours as so many times the bare loop and aiohttp as so many times ours."""

    def ratio(of: str, to: str) -> str:
        return f"{best[of] / best[to]:.2f}" if of in best and to in best else "-"

    cells = [f"{best[each]:.0f}" if each in best else "-" for each in CONTENDERS]
    return f"| {' | '.join([name, *cells, ratio('crawlspace', 'bare'), ratio('aiohttp', 'crawlspace')])} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=16, help="requests in each of the 64 lanes and each round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", action="append", choices=CONTENDERS)
    parser.add_argument("--page", action="append", choices=[name + kind for name in SIZES for kind in KINDS])
    parser.add_argument("--over", choices=OVER, default="plain", help="the kind of connection")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each page")
    wanted = parser.parse_args()
    keep_memory()
    chosen = {name: run for name, run in CONTENDERS.items() if name in (wanted.only or CONTENDERS)}
    if importlib.util.find_spec("aiohttp") is None:  # one of the peers, which need not be there
        chosen.pop("aiohttp", None)
    scheme, ending = OVER[wanted.over]
    if not wanted.json:
        print("| page | bare us | crawlspace us | aiohttp us | crawlspace of bare | aiohttp of crawlspace |")
        print("| :--- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as served:
        for page in wanted.page or [name + kind for name in SIZES for kind in KINDS]:
            task = Task(served, scheme, f"/{page}{ending}", wanted.each)
            best = costs(chosen, task, wanted.rounds)
            print(json.dumps({"page": page, "over": wanted.over, **best}) if wanted.json else line(page, best))


KINDS = ("", ".gzip", ".chunked")

if __name__ == "__main__":
    main()
