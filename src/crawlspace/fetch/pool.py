"""Connections that wait for their next request, and how many an address may have open.

Connections belong to an origin (scheme, host, port): two names at one address never share one. Places are counted by
address, since many names live at one. A waiting connection gives way to whoever needs its place, and one that has
become free goes with its place to whoever waits longest, if that is for the same origin.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from typing import NamedTuple

from crawlspace.fetch.connection import Connection
from crawlspace.fetch.guard import IPAddress
from crawlspace.fetch.limits import FetchSettings
from crawlspace.fetch.request import Origin
from crawlspace.fetch.resolve import Endpoint


class _Waiting(NamedTuple):
    """Somebody who waits for a place."""

    place: asyncio.Future[Connection | None]
    """Done with a connection that has the place, or with the place alone."""
    origin: Origin | None
    """What a connection would have to lead to; None when only a fresh one will do."""


class Pool:
    """Unused connections by origin, and the places of each address."""

    def __init__(self, places: int, unused: int) -> None:
        self._places = places
        self._max_unused = unused
        self._wider: dict[IPAddress, int] = {}
        self._open: dict[IPAddress, int] = {}
        self._waiting: dict[IPAddress, deque[_Waiting]] = {}
        self._unused: dict[Origin, list[Connection]] = {}
        self._order: OrderedDict[Connection, Origin] = OrderedDict()
        """Unused connections, the one longest unused first."""
        self._all: set[Connection] = set()
        """Those that were made here and are not gone, used or not."""
        self._emptied: asyncio.Event | None = None

    def make(self, endpoint: Endpoint, limits: FetchSettings) -> Connection:
        """A connection to be, with the place at its address that was taken for it."""
        connection = Connection(endpoint, limits, self.closed)
        self._all.add(connection)
        return connection

    def take(self, origin: Origin) -> Connection | None:
        """An unused connection to this origin, the one used last."""
        unused = self._unused.get(origin)
        if not unused:
            return None
        connection = unused.pop()
        del self._order[connection]
        if not unused:
            del self._unused[origin]
        return connection

    def put(self, origin: Origin, connection: Connection) -> None:
        """Keep a connection for later, unless there are too many, or somebody waits for its place.

        Whoever waits longest gets it, if it leads to where they want to; else it ends.
        """
        if connection.closed:
            return
        # An address is dear to hash, and as a rule nobody waits.
        longest = self._longest_waiting(connection.endpoint.address) if self._waiting else None
        if not self._max_unused or (longest and longest.origin != origin):
            connection.abort()
            return
        if longest:
            longest.place.set_result(connection)
            return
        connection.keep()
        unused = self._unused.get(origin)
        if unused is None:
            self._unused[origin] = [connection]
        else:
            unused.append(connection)
        self._order[connection] = origin
        if len(self._order) > self._max_unused:
            self._drop(next(iter(self._order)))

    def closed(self, connection: Connection) -> None:
        """A connection is gone: its place is free."""
        if connection in self._order:
            self._forget(connection)
        self._all.discard(connection)
        self.leave(connection.endpoint.address)

    def widen(self, address: IPAddress, places: int) -> None:
        """Give an address its own number of places: a proxy stands for many hosts."""
        self._wider[address] = places

    async def enter(self, address: IPAddress, origin: Origin | None = None) -> Connection | None:
        """Take a place at an address, waiting for one in order of arrival.

        With an `origin`, it may come with a used connection to it, which then has the place.
        """
        if self.try_enter(address):
            return None
        place: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        mine = _Waiting(place, origin)
        waiting = self._waiting.setdefault(address, deque())
        waiting.append(mine)
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._return(address, mine)
            raise
        finally:
            if mine in waiting:
                waiting.remove(mine)
            if not waiting:
                self._waiting.pop(address, None)

    def try_enter(self, address: IPAddress) -> bool:
        """Take a place at an address if one is free, or as soon as an unused connection has given way."""
        taken = self._open.get(address, 0)
        if taken < self._wider.get(address, self._places):
            self._open[address] = taken + 1
            return True
        self._give_way(address)
        return False

    def leave(self, address: IPAddress) -> None:
        """Give a place back: to whoever waits longest, else to all."""
        longest = self._longest_waiting(address)
        if longest:
            longest.place.set_result(None)
            return
        left = self._open[address] - 1
        if left:
            self._open[address] = left
        else:
            del self._open[address]
        if not self._open and self._emptied is not None:
            self._emptied.set()

    async def close(self) -> None:
        """End every connection, keep none from now on, and wait for the last one to be gone."""
        self._max_unused = 0
        for connection in [*self._order, *self._all]:
            connection.abort()
        self._emptied = asyncio.Event()
        if self._open:
            await self._emptied.wait()

    def _longest_waiting(self, address: IPAddress) -> _Waiting | None:
        return next((each for each in self._waiting.get(address, ()) if not each.place.done()), None)

    def _return(self, address: IPAddress, left: _Waiting) -> None:
        """What somebody was given who does not wait any more."""
        connection = left.place.result()
        if connection is None or left.origin is None:
            self.leave(address)
        else:
            self.put(left.origin, connection)

    def _give_way(self, address: IPAddress) -> None:
        for connection in self._order:
            if connection.endpoint.address == address:
                self._drop(connection)
                return

    def _drop(self, connection: Connection) -> None:
        self._forget(connection)
        connection.abort()

    def _forget(self, connection: Connection) -> None:
        origin = self._order.pop(connection)
        unused = self._unused[origin]
        unused.remove(connection)
        if not unused:
            del self._unused[origin]
