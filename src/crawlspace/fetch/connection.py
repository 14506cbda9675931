"""One connection to a server, carrying one request at a time, and the clock that watches it.

A connection has a single timer for all its limits, which is moved only when it would ring too late: a request on a
busy connection costs no timer at all. Whatever ends a request, its reader knows it; nothing is raised here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from crawlspace.exchange import FetchError
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.resolve import Endpoint
from crawlspace.fetch.response import ResponseReader

if TYPE_CHECKING:
    from crawlspace.fetch.http2 import Talk

_NEVER = float("inf")


class Connection(asyncio.Protocol):
    """An open connection. `on_closed` is called exactly once, when it is gone."""

    def __init__(self, endpoint: Endpoint, limits: FetchSettings, on_closed: Callable[[Connection], None]) -> None:
        self.endpoint = endpoint
        """The address really connected to."""
        self.requests = 0
        """Requests that were sent."""
        self.closed = False
        self.address = str(endpoint)
        """Where the answers come from, as text with its port; "" where a proxy alone knows."""
        self._talk: Talk | None = None
        """What is said over HTTP/2, where the server chose that."""
        self._limits = limits
        self._patience = min(limits.idle_timeout, limits.min_rate_after)
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader: ResponseReader | None = None
        self._answered: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = _NEVER
        self._deadline = _NEVER
        self._heard_at = 0.0
        self._rate_from = 0.0
        self._rate_bytes = 0

    def send(self, request: bytes, reader: ResponseReader, deadline: float) -> asyncio.Future[None]:
        """Send a request; the future is done once `reader` is, at the latest at `deadline` (loop time)."""
        answered = self._answered = self._loop.create_future()
        self._reader = reader
        self.requests += 1
        self._deadline = deadline
        now = self._heard_at = self._rate_from = self._loop.time()
        self._rate_bytes = 0
        if self._transport is None or self._transport.is_closing():
            self._reader_lost(clean=False)
            return answered
        if now >= deadline:
            # This process stood still until its time was over: the host may be somebody else's by now.
            self._check(reader, now)
            return answered
        if self._talk is None:
            self._transport.write(request)
        else:
            self._talk.ask(request, reader)
            self._go_on(self._talk)
        if self._rings_at > deadline or self._rings_at > now + self._patience:
            self._watch_until(self._due())
        return answered

    @property
    def protocol(self) -> str:
        """What is spoken, as ALPN names it; "" for HTTP/1.1."""
        return "" if self._talk is None else "h2"

    @property
    def declined(self) -> bool:
        """The server has taken HTTP/2 and now wants HTTP/1.1."""
        return self._talk is not None and self._talk.declined

    def keep(self) -> None:
        """Wait for another request; the connection closes by itself after the time set for that."""
        self._deadline = self._loop.time() + self._limits.keep_alive
        if self._timer is None:
            self._watch_until(self._deadline)

    def abort(self) -> None:
        """Close at once, whatever is under way."""
        if self._transport is not None:
            self._transport.abort()

    def abandon(self) -> None:
        """It never came to carry a request: the handshake failed, or nobody waits for it any more.

        uvloop does not tell the end of a connection whose making was cancelled, so it is told here.
        """
        self.abort()
        if not self.closed:
            self.closed = True
            self._on_closed(self)

    # -- what the event loop tells ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.closed:
            self._transport.abort()
        elif self._limits.http2 and _chosen(transport) == "h2":
            from crawlspace.fetch.http2 import Talk  # an extra

            self._talk = Talk(self._limits)
            self._transport.write(self._talk.to_send())

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if self._talk is not None:
            self._heard_at = self._loop.time()
            self._talk.feed(data)
            self._go_on(self._talk)
            return
        if reader is None:  # nobody asked: what it answers to cannot be told
            self.abort()
            return
        self._heard_at = self._loop.time()
        if reader.feed(data):
            self._end(reader)

    def _go_on(self, talk: Talk) -> None:
        """Send what is due over HTTP/2, and see whether the answer is complete."""
        due = talk.to_send()
        if due and self._transport is not None and not self._transport.is_closing():
            self._transport.write(due)
        if self._reader is None:
            if not talk.usable:
                self.abort()
        elif self._reader.done:
            self._end(self._reader)

    def eof_received(self) -> bool:
        self._reader_lost(clean=True)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._reader_lost(clean=exc is None)
        self._on_closed(self)

    # -- time -------------------------------------------------------------------------------------------------

    def _due(self) -> float:
        """When the next limit could be over."""
        limits = self._limits
        return min(self._deadline, self._heard_at + limits.idle_timeout, self._rate_from + limits.min_rate_after)

    def _watch_until(self, when: float) -> None:
        """Have the timer ring at `when` or before."""
        if self._rings_at <= when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = when
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        self._timer = None
        self._rings_at = _NEVER
        if self._reader is not None:
            self._check(self._reader, now)
        elif now >= self._deadline:
            self.abort()
            return
        if not self.closed:
            self._watch_until(self._deadline if self._reader is None else self._due())

    def _check(self, reader: ResponseReader, now: float) -> None:
        limits = self._limits
        rate = 0.0
        if now >= self._deadline:
            reader.overdue(FetchError.TOTAL_TIMEOUT, f"not complete after {limits.timeout:g} s")
        elif now >= self._heard_at + limits.idle_timeout:
            reader.overdue(FetchError.IDLE_TIMEOUT, f"silent for {limits.idle_timeout:g} s")
        elif now >= self._rate_from + limits.min_rate_after:
            rate = (reader.received - self._rate_bytes) / (now - self._rate_from)
            self._rate_from, self._rate_bytes = now, reader.received
            if rate < limits.min_rate:
                reader.overdue(FetchError.TOO_SLOW, f"{rate:.0f} bytes/s over {limits.min_rate_after:g} s")
        if reader.done:
            self._end(reader)

    # -- end --------------------------------------------------------------------------------------------------

    def _reader_lost(self, clean: bool) -> None:
        if self._reader is not None:
            self._reader.lost(clean and self._talk is None)  # over HTTP/2 a stream has an end of its own
            self._end(self._reader)

    def _end(self, reader: ResponseReader) -> None:
        self._reader = None
        if self._talk is not None:
            reader.reusable = self._talk.end()
            self._go_on(self._talk)
        if not reader.reusable:
            self.abort()
        answered, self._answered = self._answered, None
        if answered is not None and not answered.done():
            answered.set_result(None)


def _chosen(transport: asyncio.BaseTransport) -> str | None:
    """The protocol that the server chose in the handshake, where there was one."""
    secure = transport.get_extra_info("ssl_object")
    return None if secure is None else secure.selected_alpn_protocol()
