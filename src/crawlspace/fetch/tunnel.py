"""Through a proxy to an origin: plain requests handed over, tunnels by CONNECT (RFC 9110, section 9.3.6) or SOCKS5.

The proxy's address passes the guard like any other, against a list of its own: what is opened for a proxy is not
opened for pages. The target is judged as far as can be known here: an address always; a name by a lookup of ours,
unless the proxy is the one to look it up (`socks5h`) or our name servers do not know it. Only with `socks5` is the
address that was judged the one the proxy connects to. A proxy's own failures are ours, never the target's.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple, cast

from crawlspace.errors import ConfigError
from crawlspace.exchange import FetchError
from crawlspace.fetch.connection import Connection
from crawlspace.fetch.dial import Dialler, Reach, Unreachable, problem_of, server_name
from crawlspace.fetch.guard import NO_CONTACT, networks, refusal
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.proxy import Proxies, Proxy
from crawlspace.fetch.request import NO_FIELDS, Origin
from crawlspace.fetch.resolve import Endpoint, NetworkSettings, literal
from crawlspace.fetch.response import ResponseReader

PROXY = "proxy "
"""How the words for a proxy's failure begin; its address follows, and a colon."""


class Stream(NamedTuple):
    """Bytes to an origin and back."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str
    """Address and port of the origin where we chose it, else ""."""


class _Way(NamedTuple):
    """From us to an origin."""

    proxy: Proxy
    origin: Origin
    host: str
    """What the proxy is asked to connect to: a name, or an address without brackets."""
    port: int
    pinned: str
    """Address and port of the target where we chose it, else ""."""


class Tunnels:
    """Opens connections through proxies; raises `ConfigError` for proxies that cannot be used."""

    def __init__(
        self, limits: FetchSettings, network: NetworkSettings, proxies: Proxies, dialler: Dialler, pool: Pool
    ) -> None:
        self._limits = limits
        self._places = network.proxy_connections
        self._proxies = proxies
        self._dialler = dialler
        self._pool = pool
        self._reach = Reach(networks([*network.proxy_allow, *network.allow]), public=True)
        for proxy in proxies:
            self._check(proxy)

    async def open(self, origin: Origin, proxy: Proxy, deadline: float, wanted: Origin | None = None) -> Connection:
        """A connection to an origin, as `Dialler.open` gives one without a proxy; raises `Unreachable`."""
        way = await self._way(origin, proxy)
        try:
            endpoints = await self._dialler.endpoints(proxy.origin, self._reach)
            for endpoint in endpoints:
                self._pool.widen(endpoint.address, self._places)
            return await self._dialler.connect(endpoints, self._reach, deadline, partial(self._finish, way), wanted)
        except _ThroughProxy as failure:
            raise Unreachable(failure.error, failure.detail) from failure
        except Unreachable as failure:
            raise Unreachable(FetchError.LOCAL, f"{PROXY}{proxy}: {failure.detail}") from failure

    async def stream(self, origin: Origin, proxy: Proxy) -> Stream:
        """A bare stream to an origin, for who speaks to it himself; raises `Unreachable`."""
        way = await self._way(origin, proxy)
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                sock = await self._dialler.first(
                    await self._dialler.endpoints(proxy.origin, self._reach), self._reach
                )
                return Stream(*await self._ends(way, sock), way.pinned)
        except TimeoutError:
            late = f"{PROXY}{proxy}: not done after {self._limits.connect_timeout:g} s"
            raise Unreachable(FetchError.LOCAL, late) from None
        except _ThroughProxy as failure:
            raise Unreachable(failure.error, failure.detail) from failure
        except Unreachable as failure:
            raise Unreachable(FetchError.LOCAL, f"{PROXY}{proxy}: {failure.detail}") from failure

    def login_field(self, proxy: Proxy) -> Mapping[str, str]:
        """The field that proves to a proxy who we are."""
        login = self._proxies.login(proxy)
        return {"Proxy-Authorization": login.basic()} if login else NO_FIELDS

    # -- the guard --------------------------------------------------------------------------------------------

    def _check(self, proxy: Proxy) -> None:
        if proxy.is_socks and find_spec("python_socks") is None:
            raise ConfigError(
                f"network.proxy: {proxy} needs the package python-socks", hint="pip install 'crawlspace[proxy]'"
            )
        address = literal(proxy.host)
        reason = refusal(address, *self._reach) if address is not None else None
        if reason is not None:
            raise ConfigError(
                f"network.proxy: {proxy}: {address} is not a public address", hint="network.proxy_allow can list it"
            )

    async def _way(self, origin: Origin, proxy: Proxy) -> _Way:
        """What to ask the proxy for; raises `Unreachable` for a target that may not be reached."""
        host = server_name(origin)
        if proxy.scheme == "socks5":
            chosen = (await self._dialler.endpoints(origin, self._dialler.reach))[0]
            return _Way(proxy, origin, str(chosen.address), chosen.port, str(chosen))
        if proxy.scheme == "socks5h" and literal(origin.host) is None:
            if not self._dialler.reach.public:
                raise Unreachable(FetchError.ADDRESS_REFUSED, NO_CONTACT)
        else:
            await self._judge(origin)
        return _Way(proxy, origin, host, origin.port, "")

    async def _judge(self, origin: Origin) -> None:
        """Refuse a target that may lead to a refused address; the proxy could choose any of them."""
        reach = self._dialler.reach
        try:
            found = await self._dialler.lookup(origin)
        except Unreachable:
            if not reach.public:
                raise Unreachable(FetchError.ADDRESS_REFUSED, NO_CONTACT) from None
            return
        for endpoint in found:
            reason = refusal(endpoint.address, *reach)
            if reason is not None:
                raise Unreachable(FetchError.ADDRESS_REFUSED, reason)

    # -- the connection ---------------------------------------------------------------------------------------

    async def _finish(self, way: _Way, endpoint: Endpoint, sock: socket.socket) -> Connection:
        if way.proxy.is_socks:
            connection = await self._through_socks(way, endpoint, sock)
        elif hands_over(way.proxy, way.origin):
            connection = await self._dialler.establish(way.proxy.origin, endpoint, sock)
        else:
            connection = await self._through_connect(way, endpoint, sock)
        connection.address = way.pinned
        return connection

    async def _ends(self, way: _Way, sock: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Both ends of a tunnel that was asked for on this socket."""
        door = _Door(self._limits)
        try:
            if way.proxy.is_socks:
                await self._ask_socks(way, sock)
                return await asyncio.open_connection(sock=sock)
            await self._knock(door, way, sock)
            return door.ends()
        except BaseException:
            door.abort()
            sock.close()
            raise

    async def _ask_socks(self, way: _Way, sock: socket.socket) -> None:
        from crawlspace.fetch import socks

        try:
            await socks.connect(sock, way.host, way.port, self._proxies.login(way.proxy))
        except (OSError, socks.Refused) as error:
            if isinstance(error, socks.Refused) and error.blames_target:
                raise _ThroughProxy(FetchError.CONNECT, f"proxy {way.proxy}: {error}") from error
            raise Unreachable(FetchError.LOCAL, str(error)) from error

    async def _through_socks(self, way: _Way, endpoint: Endpoint, sock: socket.socket) -> Connection:
        try:
            await self._ask_socks(way, sock)
        except BaseException:
            sock.close()
            self._pool.leave(endpoint.address)
            raise
        try:
            return await self._dialler.establish(way.origin, endpoint, sock)
        except Unreachable as failure:
            raise _ThroughProxy(failure.error, failure.detail) from failure

    async def _through_connect(self, way: _Way, endpoint: Endpoint, sock: socket.socket) -> Connection:
        connection = self._pool.make(endpoint, self._limits)
        door = _Door(self._limits)
        try:
            await self._knock(door, way, sock)
            await door.open(connection, self._dialler.tls.of(way.origin), server_name(way.origin))
        except BaseException as error:
            door.abort()
            connection.abandon()
            sock.close()
            if isinstance(error, OSError):
                raise _ThroughProxy(FetchError.TLS, problem_of(error)) from error
            raise
        return connection

    async def _knock(self, door: _Door, way: _Way, sock: socket.socket) -> None:
        """Ask for a tunnel and wait until it is there."""
        proxy = way.proxy
        secure = proxy.scheme == "https"
        host = f"[{way.host}]" if ":" in way.host else way.host
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: door,
                sock=sock,
                ssl=self._dialler.tls.of(proxy.origin) if secure else None,
                server_hostname=server_name(proxy.origin) if secure else None,
            )
        except OSError as error:
            raise Unreachable(FetchError.LOCAL, problem_of(error)) from error
        await door.knock(f"{host}:{way.port}", self.login_field(proxy))
        status = door.reader.status
        if door.reader.error is not None or door.has_more:
            raise Unreachable(FetchError.LOCAL, door.reader.detail or "it sent more than was asked for")
        if status >= 500:
            raise _ThroughProxy(FetchError.CONNECT, f"proxy {proxy} answered {status}")
        if not 200 <= status < 300:
            raise Unreachable(FetchError.LOCAL, f"it answered {status}" + " and wants a login" * (status == 407))


class _ThroughProxy(Unreachable):
    """The proxy did its part: what failed lies behind it."""


class _Door(asyncio.Protocol):
    """The first words with a proxy on a connection that becomes a tunnel."""

    def __init__(self, limits: FetchSettings) -> None:
        self.reader = ResponseReader(limits, bodiless=True)
        self._transport: asyncio.Transport | None = None
        self._answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def has_more(self) -> bool:
        """It sent something behind its answer: whatever that is, it does not come from the target."""
        return self.reader.received > len(self.reader.head)

    async def knock(self, authority: str, fields: Mapping[str, str]) -> None:
        """Ask for a tunnel and wait for the answer; `reader` then holds it."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        request = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{lines}\r\n"
        cast(asyncio.Transport, self._transport).write(request.encode("ascii"))
        await self._answered

    async def open(self, connection: Connection, tls: ssl.SSLContext, name: str) -> None:
        """Go through: from here on the tunnel is the connection's; raises OSError when the handshake fails."""
        outer = cast(asyncio.Transport, self._transport)
        try:
            inner = await asyncio.get_running_loop().start_tls(outer, connection, tls, server_hostname=name)
        except TypeError as error:  # Python 3.11 stumbles over a handshake that fails within TLS
            raise _cause(error) from error
        if inner is None:
            raise ConnectionAbortedError("it ended in the handshake")
        connection.connection_made(inner)

    def ends(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Go through without a word more: the tunnel is the stream's from here on."""
        loop, transport = asyncio.get_running_loop(), cast(asyncio.Transport, self._transport)
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.reader.feed(data):
            self._answer()

    def connection_lost(self, exc: Exception | None) -> None:
        self.reader.lost(clean=exc is None)
        self._answer()

    def _answer(self) -> None:
        if not self._answered.done():
            self._answered.set_result(None)


def hands_over(proxy: Proxy, origin: Origin) -> bool:
    """Whether the proxy gets the request itself, and not a tunnel to the origin."""
    return not proxy.is_socks and origin.scheme == "http"


def _cause(error: TypeError) -> OSError:
    return error.__context__ if isinstance(error.__context__, OSError) else ConnectionAbortedError(str(error))
