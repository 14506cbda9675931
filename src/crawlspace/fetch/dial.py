"""From endpoints to an open connection: the guard, the race of addresses, the TLS handshake.

A name is resolved once and every address it has is judged; only those that pass are connected to, as numbers, so no
second lookup can lead elsewhere (DNS rebinding). The address of the peer is judged again once it is connected.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from itertools import zip_longest
from typing import NamedTuple

from crawlspace.exchange import FetchError
from crawlspace.fetch.connection import Connection
from crawlspace.fetch.guard import Network, networks, refusal
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.request import Origin
from crawlspace.fetch.resolve import Endpoint, NetworkSettings, Resolver
from crawlspace.fetch.tls import Contexts

STAGGER = 0.25
"""Seconds an address has for itself before the next one joins the race (RFC 8305, section 5)."""
MAX_ATTEMPTS = 4
"""Addresses of one name that are tried."""

_LOCAL = {
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOBUFS,
    errno.ENOMEM,
    errno.ENETUNREACH,
    errno.ENETDOWN,
    errno.EADDRNOTAVAIL,
    errno.EPERM,
    errno.EACCES,
    errno.EAFNOSUPPORT,
}
"""Failures to connect that say something of this machine, not of the server."""

Finish = Callable[[Endpoint, socket.socket], Awaitable[Connection]]
"""Makes a connection of a connected socket; it owns the socket, and the place at its address, from then on."""


class Unreachable(Exception):
    """There is no connection; `error` and the message say why."""

    def __init__(self, error: FetchError, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


class Reach(NamedTuple):
    """Which addresses may be reached."""

    allow: tuple[Network, ...]
    public: bool

    @classmethod
    def of(cls, network: NetworkSettings, public: bool) -> Reach:
        """Raises `ConfigError` for an entry of `network.allow` that is no network."""
        return cls(networks(network.allow), public)


class Dialler:
    """Opens connections."""

    def __init__(self, limits: FetchSettings, reach: Reach, resolver: Resolver, pool: Pool) -> None:
        self.reach = reach
        self.tls = Contexts(limits)
        self._limits = limits
        self._resolver = resolver
        self._pool = pool

    async def open(self, origin: Origin, deadline: float, wanted: Origin | None = None) -> Connection:
        """A connection, at `deadline` (loop time) at the latest; raises `Unreachable`.

        It is fresh, or else one to the `wanted` origin that became free while all places were taken.
        """
        endpoints = await self.endpoints(origin, self.reach)
        if origin.scheme == "http" and len(endpoints) == 1:
            return await self._straight(endpoints[0], deadline, wanted)
        return await self.connect(endpoints, self.reach, deadline, partial(self.establish, origin), wanted)

    async def endpoints(self, origin: Origin, reach: Reach) -> Sequence[Endpoint]:
        """Where a host may be reached, at least one; the guard has passed them all. Raises `Unreachable`."""
        found = await self.lookup(origin)
        refusals = [refusal(endpoint.address, *reach) for endpoint in found]
        passed = [endpoint for endpoint, reason in zip(found, refusals, strict=True) if reason is None]
        if not passed:
            raise Unreachable(FetchError.ADDRESS_REFUSED, refusals[0] or "")
        return passed if len(passed) == 1 else list(_alternating(passed))[:MAX_ATTEMPTS]

    async def lookup(self, origin: Origin) -> Sequence[Endpoint]:
        """All endpoints of a host, at least one, not judged yet; raises `Unreachable`."""
        known = self._resolver.known(origin.host, origin.port)
        if known is None:
            try:
                async with asyncio.timeout(self._limits.connect_timeout):
                    known = await self._resolver.resolve(origin.host, origin.port)
            except TimeoutError:
                known = (), f"{origin.host}: no answer after {self._limits.connect_timeout:g} s"
        found, problem = known
        if not found:
            raise Unreachable(FetchError.DNS, problem)
        return found

    async def connect(
        self,
        endpoints: Sequence[Endpoint],
        reach: Reach,
        deadline: float,
        finish: Finish,
        wanted: Origin | None = None,
    ) -> Connection:
        """Connect to one of these and let `finish` make a connection of the socket; raises `Unreachable`.

        Waiting for a place at the address is not the server's fault and does not count as connecting. What comes of
        waiting may be a connection to the `wanted` origin.
        """
        first = endpoints[0]
        used = await self._enter(first, deadline, wanted)
        if used is not None:
            return used
        connected = False
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                endpoint, sock = await (
                    self._race(endpoints, reach) if len(endpoints) > 1 else self._alone(first, reach)
                )
                connected = True
                return await finish(endpoint, sock)
        except TimeoutError:
            raise self._too_late("TLS handshake" if connected else "connecting") from None

    async def establish(self, origin: Origin, endpoint: Endpoint, sock: socket.socket) -> Connection:
        """Make a connection of a socket, over TLS where the origin says https; raises `Unreachable`."""
        connection = self._pool.make(endpoint, self._limits)
        secure = origin.scheme == "https"
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=sock,
                ssl=self.tls.of(origin) if secure else None,
                server_hostname=server_name(origin) if secure else None,
            )
        except BaseException as error:
            connection.abandon()
            sock.close()
            if isinstance(error, OSError):
                kind = FetchError.TLS if secure else FetchError.CONNECT
                raise Unreachable(kind, problem_of(error)) from error
            raise
        return connection

    async def _straight(self, endpoint: Endpoint, deadline: float, wanted: Origin | None) -> Connection:
        """As `connect`, where there is one address and nothing but HTTP: the loop does it all at half the cost."""
        used = await self._enter(endpoint, deadline, wanted)
        if used is not None:
            return used
        connection = self._pool.make(endpoint, self._limits)
        host = str(endpoint.address)
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                transport, _ = await asyncio.get_running_loop().create_connection(
                    lambda: connection, host, endpoint.port
                )
            peer = transport.get_extra_info("peername")
            if peer is not None and peer[0] != host:
                _judge(peer[0], self.reach)
        except BaseException as error:
            connection.abandon()
            if isinstance(error, TimeoutError) and error.errno is None:
                raise self._too_late("connecting") from None
            if isinstance(error, OSError):
                raise _refused(endpoint, error) from error
            raise
        return connection

    async def _enter(self, endpoint: Endpoint, deadline: float, wanted: Origin | None) -> Connection | None:
        """Take a place at an address, or what became free there; raises `Unreachable` when neither comes in time."""
        if self._pool.try_enter(endpoint.address):
            return None
        try:
            async with asyncio.timeout_at(deadline):
                return await self._pool.enter(endpoint.address, wanted)
        except TimeoutError:
            raise Unreachable(FetchError.LOCAL, f"no place at {endpoint.address} in time") from None

    def _too_late(self, stage: str) -> Unreachable:
        return Unreachable(FetchError.CONNECT_TIMEOUT, f"{stage}: not done after {self._limits.connect_timeout:g} s")

    # -- sockets ----------------------------------------------------------------------------------------------

    async def _race(self, endpoints: Sequence[Endpoint], reach: Reach) -> tuple[Endpoint, socket.socket]:
        """The first socket that connects. The first endpoint's place is taken already; others must get theirs."""
        left = deque(endpoints)
        attempts: dict[asyncio.Task[socket.socket], Endpoint] = {}
        failures: list[BaseException] = []

        def start() -> None:
            endpoint = left.popleft()
            attempts[asyncio.create_task(self._attempt(endpoint, reach))] = endpoint

        try:
            start()
            while attempts:
                done, _ = await asyncio.wait(
                    attempts, timeout=STAGGER if left else None, return_when=asyncio.FIRST_COMPLETED
                )
                won = [attempt for attempt in done if attempt.exception() is None]
                if won:
                    return attempts.pop(won[0]), won[0].result()
                failures += [failure for attempt in done if (failure := attempt.exception())]
                for attempt in done:
                    self._pool.leave(attempts.pop(attempt).address)
                if left and not attempts:
                    await self._pool.enter(left[0].address)
                    start()
                elif left and self._pool.try_enter(left[0].address):
                    start()
        finally:  # without waiting, since a cancellation while waiting would lose the socket that won
            for attempt, endpoint in attempts.items():
                attempt.add_done_callback(partial(self._give_up, endpoint))
                attempt.cancel()
        raise failures[0]

    def _give_up(self, endpoint: Endpoint, attempt: asyncio.Task[socket.socket]) -> None:
        """An attempt that nobody waits for has ended: its place is free. One that was never begun has a place too."""
        self._pool.leave(endpoint.address)
        if not attempt.cancelled() and attempt.exception() is None:
            attempt.result().close()

    async def _alone(self, endpoint: Endpoint, reach: Reach) -> tuple[Endpoint, socket.socket]:
        try:
            return endpoint, await self._attempt(endpoint, reach)
        except BaseException:
            self._pool.leave(endpoint.address)
            raise

    async def first(self, endpoints: Sequence[Endpoint], reach: Reach) -> socket.socket:
        """A socket that is connected to the first of these that can be had; raises `Unreachable`."""
        for endpoint in endpoints:
            try:
                async with asyncio.timeout(self._limits.connect_timeout):
                    return await self._attempt(endpoint, reach)
            except Unreachable as problem:
                failure = problem
            except TimeoutError:
                failure = self._too_late("connecting")
        raise failure

    async def _attempt(self, endpoint: Endpoint, reach: Reach) -> socket.socket:
        """Connect. The place at the address is the caller's matter."""
        sock: socket.socket | None = None
        try:
            family = socket.AF_INET6 if endpoint.address.version == 6 else socket.AF_INET
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, (str(endpoint.address), endpoint.port))
            _judge(sock.getpeername()[0], reach)
        except BaseException as error:
            if sock is not None:
                sock.close()
            if isinstance(error, OSError):
                raise _refused(endpoint, error) from error
            raise
        return sock


def server_name(origin: Origin) -> str:
    """The name that a server's certificate must prove, an address without its brackets (RFC 6066, section 3)."""
    return origin.host.strip("[]").rstrip(".")


def problem_of(error: OSError) -> str:
    """Why a handshake failed, in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return f"the connection ended at once: {error}"


def _refused(endpoint: Endpoint, error: OSError) -> Unreachable:
    kind = FetchError.LOCAL if error.errno in _LOCAL else FetchError.CONNECT
    return Unreachable(kind, f"{endpoint}: {os.strerror(error.errno) if error.errno else error}")


def _judge(peer: str, reach: Reach) -> None:
    """The guard's word on the address that was really connected to; raises `Unreachable`."""
    reason = refusal(ip_address(peer), *reach)
    if reason is not None:
        raise Unreachable(FetchError.ADDRESS_REFUSED, reason)


def _alternating(endpoints: Sequence[Endpoint]) -> Iterator[Endpoint]:
    """Families in turn, beginning with that of the best address (RFC 8305, section 4)."""
    first = endpoints[0].address.version
    same = [endpoint for endpoint in endpoints if endpoint.address.version == first]
    other = [endpoint for endpoint in endpoints if endpoint.address.version != first]
    for pair in zip_longest(same, other):
        yield from (endpoint for endpoint in pair if endpoint is not None)
