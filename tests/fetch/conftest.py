"""Raw servers on the loopback that send prepared bytes, and a clock that is set by hand."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvloop

from crawlspace.clock import SystemClock
from crawlspace.exchange import FetchRequest, FetchResult
from crawlspace.fetch import FetchSettings, HttpFetcher, NetworkSettings

DATA = Path(__file__).resolve().parents[1] / "data" / "encoding-http"
LOOPBACK = ["127.0.0.0/8", "::1"]


@dataclass
class Server:
    """What reached a server, and how it answers."""

    answer: Callable[[asyncio.StreamWriter, int], Awaitable[None]]
    """Called for each request with its number, from 1; may close the writer."""
    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most_open: int = 0
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def asked(self, number: int = 1) -> None:
        """Wait until this many requests have come."""
        while len(self.requests) < number:
            self._came.clear()
            await self._came.wait()

    async def left(self) -> None:
        """Wait until every client has left."""
        while self.open:
            self._gone.clear()
            await self._gone.wait()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while not writer.is_closing():
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                self._came.set()
                await self.answer(writer, len(self.requests))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            self._gone.set()
            writer.close()

    def url(self, path: str = "/", scheme: str = "http", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{host}:{self.port}{path}"


Answer = bytes | Callable[[asyncio.StreamWriter, int], Awaitable[None]]
Serving = Callable[..., AbstractAsyncContextManager[Server]]


def _answering(answer: Answer, close: bool) -> Callable[[asyncio.StreamWriter, int], Awaitable[None]]:
    if not isinstance(answer, bytes):
        return answer

    async def send(writer: asyncio.StreamWriter, number: int) -> None:
        writer.write(answer)
        await writer.drain()
        if close:
            writer.close()

    return send


@asynccontextmanager
async def _serving(
    answer: Answer, close: bool = False, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Server]:
    served = Server(_answering(answer, close))
    listener = await asyncio.start_server(served.handle, host, 0, ssl=tls)
    served.port = listener.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        listener.close()
        await listener.wait_closed()
        await served.left()


@pytest.fixture
def serving() -> Serving:
    """`async with serving(bytes or function) as server`."""
    return _serving


Fetching = Callable[..., AbstractAsyncContextManager[HttpFetcher]]


@asynccontextmanager
async def _fetching(
    network: NetworkSettings | None = None, public: bool = True, **limits: object
) -> AsyncIterator[HttpFetcher]:
    settings = FetchSettings(**limits)  # type: ignore[arg-type]
    network = network or NetworkSettings(allow=LOOPBACK)
    fetcher = HttpFetcher(settings, network, SystemClock(), user_agent="crawlspace-test/1", public=public)
    try:
        yield fetcher
    finally:
        await fetcher.close()


@pytest.fixture
def fetching() -> Fetching:
    """`async with fetching(max_body=10) as fetcher`; the loopback is allowed."""
    return _fetching


@pytest.fixture
def fetch_once(serving: Serving, fetching: Fetching) -> Callable[..., FetchResult]:
    """One request to a server that sends these bytes and closes."""

    def once(raw: bytes, method: str = "GET", **limits: object) -> FetchResult:
        async def run() -> FetchResult:
            async with serving(raw, close=True) as server, fetching(**limits) as fetcher:
                return await fetcher.fetch(FetchRequest(server.url(), method=method))

        return asyncio.run(run())

    return once


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Both event loops must do."""
    return asyncio.run if request.param == "asyncio" else uvloop.run


class HandClock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> int:
        return round(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def data() -> Path:
    """The folder of public test data."""
    return DATA
