"""What others fetched for us, as an answer of our own: a head in HTTP/1.1's words, and the guard before the asking.

An answer that did not come over our own connections is written as HTTP/1.1 and read by the reader that reads all
others, so that every limit, coding and flag is the same. Fields of a connection which was not ours are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawlspace.clock import Clock
from crawlspace.exchange import FetchError, FetchRequest, FetchResult, Truncated
from crawlspace.fetch.dial import Reach
from crawlspace.fetch.guard import refusal
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.request import Destination, Unsendable, destination_of
from crawlspace.fetch.resolve import Endpoint, Resolver
from crawlspace.fetch.response import ResponseReader

_OF_CONNECTION = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "trailer", "upgrade", "proxy-connection")
)
"""Fields of the message that carried an answer, not of the answer."""
_OF_CODING = frozenset({"content-encoding"})

Fields = Sequence[tuple[str, str]]


class NotAsked(Exception):
    """The request was not made, or nothing came of it; `error` and the message say why."""

    def __init__(self, error: FetchError, detail: str) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail


class Target(NamedTuple):
    """Where a URL leads to, as the guard has passed it."""

    to: Destination
    endpoints: tuple[Endpoint, ...]
    """At least one."""


class Gate:
    """Asks the guard about URLs that somebody else connects to for us."""

    def __init__(self, resolver: Resolver, reach: Reach, limits: FetchSettings) -> None:
        self.resolver = resolver
        self._reach = reach
        self._seconds = limits.connect_timeout

    async def pass_through(self, url: str) -> Target:
        """The addresses of a URL's host that may be reached; raises `NotAsked` when there is none."""
        try:
            to = destination_of(url)
        except Unsendable as unsendable:
            raise NotAsked(FetchError.LOCAL, str(unsendable)) from None
        try:
            async with asyncio.timeout(self._seconds):
                found, problem = await self.resolver.resolve(to.origin.host, to.origin.port)
        except TimeoutError:
            found, problem = (), f"{to.origin.host}: no answer after {self._seconds:g} s"
        if not found:
            raise NotAsked(FetchError.DNS, problem)
        reasons = [refusal(endpoint.address, *self._reach) for endpoint in found]
        passed = tuple(endpoint for endpoint, reason in zip(found, reasons, strict=True) if reason is None)
        if not passed:
            raise NotAsked(FetchError.ADDRESS_REFUSED, reasons[0] or "")
        return Target(to, passed)


class Means(NamedTuple):
    """What routes by others are made with."""

    gate: Gate
    limits: FetchSettings
    clock: Clock
    environment: Mapping[str, str]


class Came(NamedTuple):
    """An answer that somebody else got."""

    status: int
    fields: Fields
    payload: bytes
    coded: bool = False
    """The payload still has its content coding."""
    cut: bool = False
    """The payload is cut at a limit of ours."""


class Begun(NamedTuple):
    """A request that somebody else makes for us, from its start."""

    request: FetchRequest
    started_at: int
    monotonic: float
    clock: Clock

    @classmethod
    def now(cls, request: FetchRequest, clock: Clock) -> Begun:
        return cls(request, clock.now(), clock.monotonic(), clock)

    def failed(self, error: FetchError, detail: str) -> FetchResult:
        """Nothing came of it."""
        return FetchResult(
            url=self.request.url,
            started_at=self.started_at,
            elapsed_ms=self._elapsed(),
            error=error,
            detail=detail[:500],
            request_body=self.request.body,
        )

    def answered(self, limits: FetchSettings, came: Came) -> FetchResult:
        """An answer, read by our own reader."""
        left_out = _OF_CONNECTION if came.coded else _OF_CONNECTION | _OF_CODING
        fields = [pair for pair in came.fields if pair[0].lower() not in left_out]
        head = head_of(came.status, fields, len(came.payload))
        bodiless = self.request.method == "HEAD"
        reader = ResponseReader(limits, bodiless)
        if not reader.feed(head) and not reader.feed(came.payload):
            reader.lost(clean=True)
        return FetchResult(
            url=self.request.url,
            started_at=self.started_at,
            elapsed_ms=self._elapsed(),
            error=reader.error,
            detail=reader.detail,
            status=reader.status,
            headers=reader.headers,
            request_head=asked_head(self.request),
            request_body=self.request.body,
            response_head=reader.head,
            payload=reader.payload,
            body=reader.body,
            truncated=Truncated.LENGTH if came.cut else reader.truncated,
        )

    def moved(self, limits: FetchSettings, target: str) -> FetchResult:
        """Who fetched for us followed a redirect: the page is the other URL's, and is asked for as such."""
        return self.answered(limits, Came(302, [("Location", target)], b""))

    def _elapsed(self) -> int:
        return round((self.clock.monotonic() - self.monotonic) * 1000)


def head_of(status: int, fields: Fields, length: int) -> bytes:
    """A status line with fields, in HTTP/1.1's words; what could end a line is taken out."""
    lines = [f"HTTP/1.1 {status} ", *(f"{_clean(name)}: {_clean(value)}" for name, value in fields if name)]
    lines.append(f"Content-Length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def asked_head(request: FetchRequest) -> bytes:
    """The request as it was meant; what went over the wire, only those know who sent it."""
    to = destination_of(request.url)
    return f"{request.method} {to.target} HTTP/1.1\r\nHost: {to.authority}\r\n\r\n".encode("latin-1")


def _clean(text: str) -> str:
    return "".join(char for char in text if char >= " " or char == "\t")
