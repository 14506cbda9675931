"""The one way out for a page in a browser: a SOCKS5 server on the loopback, one for each page (RFC 1928).

The browser looks up no names and connects to nothing but this; whatever a page asks for, by whatever protocol, is a
host and a port here. The host is resolved by us, every address passes the guard, and the connection goes to an
address that was judged, as a number: redirects, sockets, frames and rebinding take the same way. Where a host has a
proxy, a tunnel through that takes the place of the connection. What is over a page's limits is cut. Whoever else
finds the port can reach through it what the crawl may, and no more.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final

from crawlspace.exchange import FetchError
from crawlspace.fetch.dial import Dialler, Unreachable
from crawlspace.fetch.proxy import Proxies
from crawlspace.fetch.request import Origin
from crawlspace.fetch.resolve import Endpoint
from crawlspace.fetch.tunnel import Stream, Tunnels

CONNECTIONS: Final = 500
"""Connections that one page may open."""
AT_ONCE: Final = 64
"""Of them, open at the same time."""
HELLO_SECONDS: Final = 10.0

MAKERS: Final = frozenset(
    (
        *("connectivitycheck.gstatic.com", "optimizationguide-pa.googleapis.com", "safebrowsing.googleapis.com"),
        *("clientservices.googleapis.com", "update.googleapis.com", "sb-ssl.google.com", "redirector.gvt1.com"),
        *(f"clients{number}.google.com" for number in ("", *range(1, 7))),
    )
)
"""Hosts that a Chromium asks by itself, as where a certificate is wrong; no page needs them."""

_VERSION: Final = 5
_CONNECT: Final = 1
_PIECE: Final = 64 << 10
_FOUR, _NAME, _SIX = 1, 3, 4
_DONE, _FAILED, _FORBIDDEN, _UNREACHABLE, _NO_SUCH_COMMAND = 0, 1, 2, 4, 7


class Outside:
    """Opens connections for pages, past the guard. One for a browser."""

    def __init__(self, dialler: Dialler, proxies: Proxies, tunnels: Tunnels) -> None:
        self._dialler = dialler
        self._proxies = proxies
        self._tunnels = tunnels

    async def connect(self, host: str, port: int) -> Stream:
        """A stream to an address of the host that may be reached, or through its proxy; raises `Unreachable`."""
        origin = Origin("https" if port == 443 else "http", host, port)
        if host in MAKERS:
            raise Unreachable(FetchError.ADDRESS_REFUSED, f"{host} is asked by browsers themselves")
        proxy = self._proxies.of(origin)
        if proxy is not None:
            return await self._tunnels.stream(origin, proxy)
        reach = self._dialler.reach
        sock = await self._dialler.first(await self._dialler.endpoints(origin, reach), reach)
        try:
            return Stream(*await asyncio.open_connection(sock=sock), _spelled(sock))
        except BaseException:
            sock.close()
            raise


class Gate:
    """The way out of one page."""

    def __init__(self, outside: Outside, max_bytes: int) -> None:
        self.size = 0
        """Bytes that went through, both ways."""
        self.refusals: list[str] = []
        """Why connections were refused, the first few."""
        self.problems: dict[str, Unreachable] = {}
        """Why hosts could not be connected to, as far as the page may ask for some; by their names in URLs."""
        self.address = ""
        """Where the first connection went, with its port."""
        self._outside = outside
        self._left = max_bytes
        self._opened = 0
        self._server: asyncio.Server | None = None
        self._busy: set[asyncio.Task[None]] = set()

    @property
    def is_spent(self) -> bool:
        """Whether the page has used up its bytes."""
        return self._left <= 0

    async def open(self) -> int:
        """Begin to listen; the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        tasks: Sequence[asyncio.Task[None]] = list(self._busy)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._busy.add(task)
        self._opened += 1
        try:
            if self._opened <= CONNECTIONS and len(self._busy) <= AT_ONCE and not self.is_spent:
                await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, UnicodeDecodeError, asyncio.CancelledError):
            pass  # the page's matter; cancelled only by `close`, which waits for this to end
        finally:
            self._busy.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HELLO_SECONDS):
            asked = await _asked(reader, writer)
        if asked is None:
            return
        try:
            there, back, address = await self._outside.connect(*asked)
        except Unreachable as unreachable:
            self._refused(asked[0], unreachable)
            forbidden = unreachable.error is FetchError.ADDRESS_REFUSED
            writer.write(_reply(_FORBIDDEN if forbidden else _UNREACHABLE))
            await writer.drain()
            return
        self.address = self.address or address
        try:
            writer.write(_reply(_DONE))
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pass_on(reader, back))
                both.create_task(self._pass_on(there, writer))
        except* (OSError, _Spent):
            pass
        finally:
            back.transport.abort()

    def _refused(self, host: str, unreachable: Unreachable) -> None:
        self.problems[host] = unreachable
        if len(self.refusals) < 10 and unreachable.error is FetchError.ADDRESS_REFUSED:
            self.refusals.append(unreachable.detail)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(_PIECE):
            self.size += len(data)
            self._left -= len(data)
            if self.is_spent:
                raise _Spent
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()


class _Spent(Exception):
    """The page has used up its bytes."""


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int] | None:
    """The host, as it stands in a URL, and the port that a client wants; None when it is no such client."""
    version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    if version != _VERSION:
        return None
    writer.write(bytes((_VERSION, 0)))
    _, command, _, kind = await reader.readexactly(4)
    if kind == _NAME:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("ascii").lower()
    elif kind in (_FOUR, _SIX):
        packed = await reader.readexactly(4 if kind == _FOUR else 16)
        host = str(ip_address(packed)) if kind == _FOUR else f"[{ip_address(packed)}]"
    else:
        host = ""
    (port,) = struct.unpack(">H", await reader.readexactly(2))
    if command != _CONNECT or not host or not port:
        writer.write(_reply(_NO_SUCH_COMMAND if command != _CONNECT else _FAILED))
        await writer.drain()
        return None
    return (f"[{host}]" if ":" in host and not host.startswith("[") else host), port


def _reply(code: int) -> bytes:
    """An answer; the address that we connect from is nobody's business."""
    return bytes((_VERSION, code, 0, _FOUR, 0, 0, 0, 0, 0, 0))


def _spelled(sock: socket.socket) -> str:
    host, port = sock.getpeername()[:2]
    return str(Endpoint(ip_address(host), port))
