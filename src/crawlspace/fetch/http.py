"""The fetcher: one request, one answer, over HTTP/1.1 connections of our own.

No redirect is followed here, no cookie kept, no robots file asked: those are decisions, and this is the part that
carries them out. Whatever a server does comes back as a value (see `exchange.FetchResult`).
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

from msgspec import Struct

from crawlspace.clock import Clock
from crawlspace.exchange import FetchError, FetchRequest, FetchResult
from crawlspace.fetch.connection import Connection
from crawlspace.fetch.credentials import Credentials
from crawlspace.fetch.dial import Dialler, Reach, Unreachable
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.pool import Pool
from crawlspace.fetch.proxy import Proxies, Proxy
from crawlspace.fetch.request import Composer, Destination, Origin, Unsendable, destination_of
from crawlspace.fetch.resolve import NetworkSettings, Resolver
from crawlspace.fetch.response import ResponseReader
from crawlspace.fetch.tls import UNVERIFIED
from crawlspace.fetch.tunnel import Tunnels, hands_over
from crawlspace.fetch.types import Types

REPEATABLE = frozenset({"GET", "HEAD"})
"""Methods that may be sent on a kept connection: should the server have closed it, they are sent once more."""
CLOSING = 2.0
"""Seconds that connections get to end when the fetcher is closed."""


class _Asked(Struct, frozen=True):
    """What is sent, where, and until when there is time for it."""

    request: FetchRequest
    to: Destination
    proxy: Proxy | None
    head: bytes
    deadline: float
    """Loop time."""


class HttpFetcher:
    """Fetches over HTTP/1.1 and TLS; `ports.Fetcher`.

    Without `public` (no contact is configured) only addresses listed in `network.allow` are connected to. Raises
    `ConfigError` for settings that cannot be used.
    """

    def __init__(
        self, settings: FetchSettings, network: NetworkSettings, clock: Clock, *, user_agent: str, public: bool = True
    ) -> None:
        self.resolver = Resolver(network, clock)
        self._limits = settings
        self._types = Types(settings.types) if settings.types else None
        self._clock = clock
        self._composer = Composer(user_agent)
        self._credentials = Credentials(settings, os.environ, clock)
        self._pool = Pool(settings.connections_per_address, settings.idle_connections)
        self._dialler = Dialler(settings, Reach.of(network, public), self.resolver, self._pool)
        self._proxies = Proxies(network.proxy, network.proxy_auth, os.environ)
        self._tunnels = Tunnels(settings, network, self._proxies, self._dialler, self._pool)

    async def fetch(self, request: FetchRequest) -> FetchResult:
        """Make one request. Raises on cancellation only."""
        sent_at, begun = self._clock.now(), self._clock.monotonic()
        try:
            asked = self._asked(request)
            wanted = asked.to.origin if request.method in REPEATABLE else None
            connection = self._pool.take(wanted) if wanted is not None else None
            while True:
                if connection is None:
                    connection = await self._open(asked, wanted)
                    sent_at, begun = self._clock.now(), self._clock.monotonic()
                types = self._types if request.by_type else None
                reader = ResponseReader(self._limits, request.method == "HEAD", types)
                try:
                    await connection.send(asked.head + request.body, reader, asked.deadline)
                except BaseException:
                    connection.abort()
                    raise
                if reader.reusable:
                    self._pool.put(asked.to.origin, connection)
                    break
                if not self._was_stale(asked, connection, reader):
                    break
                connection = wanted = None
        except Unsendable as unsendable:
            return self._failure(request, sent_at, begun, Unreachable(FetchError.LOCAL, str(unsendable)))
        except Unreachable as unreachable:
            return self._failure(request, sent_at, begun, unreachable)
        return self._result(asked, connection, reader, (sent_at, begun))

    async def address_of(self, url: str) -> str | None:
        """The lowest address that a URL's host resolves to; None when it has none, or a proxy stands in between."""
        try:
            origin = destination_of(url).origin
        except Unsendable:
            return None
        if self._proxies.of(origin) is not None:
            return None
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                found, _ = await self.resolver.resolve(origin.host, origin.port)
        except TimeoutError:
            return None
        lowest = min((endpoint.address for endpoint in found), key=lambda it: (it.version, int(it)), default=None)
        return None if lowest is None else str(lowest)

    async def close(self) -> None:
        """End all connections and lookups. Requests under way end with an error."""
        await self.resolver.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await self._pool.close()

    def _asked(self, request: FetchRequest) -> _Asked:
        """Where a request goes and what is sent there; raises `Unsendable`."""
        to = destination_of(request.url)
        proxy = self._proxies.of(to.origin)
        deadline = asyncio.get_running_loop().time() + self._limits.timeout
        return _Asked(request, to, proxy, self._head(request, to, proxy), deadline)

    def _head(self, request: FetchRequest, to: Destination, proxy: Proxy | None) -> bytes:
        secrets = self._credentials.fields(request, to)
        if proxy is None or not hands_over(proxy, to.origin):
            return self._composer.compose(request, to, secrets)
        secrets = {**secrets, **self._tunnels.login_field(proxy)}
        return self._composer.compose(request, to, secrets, target=f"http://{to.authority}{to.target}")

    async def _open(self, asked: _Asked, wanted: Origin | None) -> Connection:
        origin, proxy, deadline = asked.to.origin, asked.proxy, asked.deadline
        if proxy is None:
            return await self._dialler.open(origin, deadline, wanted)
        return await self._tunnels.open(origin, proxy, deadline, wanted)

    def _was_stale(self, asked: _Asked, connection: Connection, reader: ResponseReader) -> bool:
        """Whether the server had closed a connection that was kept, or wants HTTP/1.1: once more, on a fresh one."""
        if reader.received or reader.error is not FetchError.RESET:
            return False
        if connection.declined:
            self._dialler.tls.decline_http2(asked.to.origin)
            return True
        return connection.requests > 1

    def _result(
        self, asked: _Asked, connection: Connection, reader: ResponseReader, times: tuple[int, float]
    ) -> FetchResult:
        sent_at, begun = times
        origin = asked.to.origin
        detail = reader.detail
        if not detail and origin.scheme == "https" and not self._dialler.tls.verifies(origin):
            detail = UNVERIFIED
        self._credentials.learn(asked.to, reader.headers)
        return FetchResult(
            url=asked.request.url,
            started_at=sent_at,
            elapsed_ms=self._elapsed(begun),
            error=reader.error,
            detail=detail,
            status=reader.status,
            headers=reader.headers,
            request_head=asked.head,
            request_body=asked.request.body,
            response_head=reader.head,
            payload=reader.payload,
            body=reader.body,
            truncated=reader.truncated,
            address=connection.address,
            protocol=connection.protocol,
        )

    def _failure(self, request: FetchRequest, started_at: int, begun: float, why: Unreachable) -> FetchResult:
        return FetchResult(
            url=request.url,
            started_at=started_at,
            elapsed_ms=self._elapsed(begun),
            error=why.error,
            detail=why.detail,
            request_body=request.body,
        )

    def _elapsed(self, begun: float) -> int:
        return round((self._clock.monotonic() - begun) * 1000)
