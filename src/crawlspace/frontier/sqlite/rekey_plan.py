"""The plan of a re-keying: every URL of a store under its new key, and in each group of one key who stays.

Made by looking at each row once, in batches, from where the last one ended. The plan may lie in the store itself,
when it is to be carried out, or in a file of its own, when somebody only asks what would happen.

Who stays, best first: done, stored, redirected, delayed, queued, dead, skipped; of two alike the one that came first.
A delayed URL goes before a queued one, since its tries and its wait are those of the page; both go before dead and
skipped ones, since a page that may still answer is not given up for a spelling that did not. URLs that were merged
before come behind all others: one of them comes back only when nobody else has its key. Last of all is a redirect
that leads to its own group: where it leads to is the page, and a URL that had given way to it is called back.
"""

from __future__ import annotations

import sqlite3
from enum import IntEnum, unique
from typing import NamedTuple, Protocol

import msgspec

from crawlspace.frontier.sql import statements
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, RequestSpec

_SQL = statements(__package__, "rekey.sql")

_decode_request = msgspec.msgpack.Decoder(RequestSpec).decode

Cursor = tuple[int | str, ...]
"""Where a walk stands, in the order of what it walks over; bytes as hexadecimal digits."""


@unique
class Place(IntEnum):
    """Where a URL's row lies."""

    OUTCOME = 0
    DELAYED = 1
    QUEUE = 2
    MERGED = 3


class Named(NamedTuple):
    """Who a URL is under the new rules."""

    key: bytes
    host: str
    seed: bool
    """The host is a seed's own."""


class Naming(Protocol):
    """The new rules, as a store needs them."""

    def name(self, url: str, request: RequestSpec | None) -> Named | None:
        """Who a stored URL is; None when it is no URL any more, which keeps its key then."""
        ...

    def heir(self, host: str) -> Named:
        """The host that has this host's name under the new rules; of the key only the host bits mean something."""
        ...


class Planned(NamedTuple):
    """A row of the plan."""

    key: bytes
    rank: int
    id: int
    place: int
    hid: int
    """Its host of before."""
    tail: bytes

    @property
    def old_key(self) -> bytes:
        return self.hid.to_bytes(HOST_BYTES, "big") + self.tail

    @property
    def is_live(self) -> bool:
        return self.place != Place.MERGED

    @property
    def stays(self) -> bool:
        """Whether nothing needs to be done where it is first in its group."""
        return self.is_live and self.key == self.old_key


_RANKS = {UrlState.DONE: 0, UrlState.STORED: 1, UrlState.REDIRECTED: 2, UrlState.DEAD: 5, UrlState.SKIPPED: 6}
_DELAYED = 3
_QUEUED = 4
_LEADS_HOME = 27
_BEHIND = 10
"""Added to the rank of what was merged before. The units tell the state, whatever is added."""

WALKS: dict[Place, tuple[str, Cursor]] = {
    Place.OUTCOME: ("read_outcome", (0,)),
    Place.QUEUE: ("read_queue", (-1, -1, -1)),
    Place.DELAYED: ("read_delayed", (-1, -1)),
    Place.MERGED: ("read_merged", (0,)),
}
"""The statement that reads a table in its order, and where it begins."""


class _Row(NamedTuple):
    """What a walk reads of a URL, before the columns of its cursor."""

    id: int
    hid: int
    tail: bytes
    url: str
    request: bytes | None
    state: int
    target: str | None


_READ = len(_Row._fields)


class Planning:
    """Walks over the URLs of `source` and writes the plan into `plan`; both may be one."""

    def __init__(self, source: sqlite3.Connection, plan: sqlite3.Connection, naming: Naming) -> None:
        self._source = source
        self._plan = plan
        self._naming = naming

    def step(self, place: Place, after: Cursor, limit: int) -> tuple[Cursor | None, int, int]:
        """Plan the next rows of a table: where that ended (None at its end), how many, and how many keys change."""
        rows = self._source.execute(_SQL[WALKS[place][0]], (*after, limit)).fetchall()
        planned = [self._planned(place, _Row._make(row[:_READ])) for row in rows]
        self._plan.executemany(_SQL["plan"], sorted(planned))
        changed = sum(each.is_live and each.key != each.old_key for each in planned)
        return (tuple(rows[-1][_READ:]) if rows else None), len(rows), changed

    def _planned(self, place: Place, row: _Row) -> Planned:
        named = self._naming.name(row.url, request_of(row.request))
        key = row.hid.to_bytes(HOST_BYTES, "big") + row.tail if named is None else named.key
        return Planned(key, self._rank(place, row, key), row.id, int(place), row.hid, row.tail)

    def _rank(self, place: Place, row: _Row, key: bytes) -> int:
        """Who stays of one group: the lowest."""
        if place is Place.DELAYED:
            return _DELAYED
        if place is Place.QUEUE:
            return _QUEUED
        state = UrlState(row.state)
        own = _RANKS.get(state, _QUEUED)
        if state is UrlState.REDIRECTED and row.target is not None:
            target = self._naming.name(row.target, None)
            own = _LEADS_HOME if target is not None and target.key == key else own
        return own if place is Place.OUTCOME else own + _BEHIND


def request_of(column: object) -> RequestSpec | None:
    """How a stored URL is asked for; None for a plain GET."""
    return _decode_request(column) if isinstance(column, bytes) else None


def planned_after(connection: sqlite3.Connection, after: tuple[bytes, int, int], limit: int) -> list[Planned]:
    """The next rows of the plan, group after group."""
    return list(map(Planned._make, connection.execute(_SQL["planned"], (*after, limit))))
