"""Known URLs looked at again: read shelf by shelf, and moved as rulings say.

A ruling is applied to what the URL is when it comes, not to what it was when it was read: one that was leased or
settled meanwhile is left alone. Everything runs inside a transaction of the caller, who also writes the book.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crawlspace.frontier.counters import HOSTS
from crawlspace.frontier.rows import Ending, relation
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.crowds import Crowds
from crawlspace.frontier.sqlite.urls import Place, Urls
from crawlspace.policy.review import Browsed, Cursor, Known, Ruling, Shelf
from crawlspace.states import Event, UrlState
from crawlspace.types import HOST_BYTES, Reason

_SQL = statements(__package__, "review.sql")

_BEGINNINGS: dict[Shelf, Cursor] = {
    Shelf.QUEUED: (0, -1, 0),
    Shelf.DELAYED: (0,),
    Shelf.REFUSED: (0, "", 0),
    Shelf.DEAD: (0,),
}


def browse(connection: sqlite3.Connection, shelf: Shelf, after: Cursor, limit: int) -> Browsed:
    """The next URLs of a shelf; an empty cursor begins it."""
    rows = connection.execute(_SQL[shelf.value], (*(after or _BEGINNINGS[shelf]), limit)).fetchall()
    if not rows:
        return Browsed((), None)
    known = tuple(_known(shelf, row) for row in rows)
    return Browsed(known, _place_of(known[-1]))


def _known(shelf: Shelf, row: tuple[Any, ...]) -> Known:
    hid, front_class, number, tail, url, depth, hops, found, reason, status, at, host = row
    key = hid.to_bytes(HOST_BYTES, "big") + tail
    return Known(
        shelf, number, key, url, host, front_class, depth, hops, relation(found), reason=reason, status=status, at=at
    )


def _place_of(last: Known) -> Cursor:
    match last.shelf:
        case Shelf.QUEUED:
            return (last.hid, last.front_class, last.id)
        case Shelf.REFUSED:
            return (last.hid, last.reason or "", last.id)
        case _:
            return (last.id,)


@dataclass(slots=True)
class _Host:
    """What a batch knows of one host."""

    seed: bool
    waiting: int
    token: int | None
    closed: bool
    """A person wants nothing of it, or too many hosts have its address."""
    met: bool
    held: dict[int, int]


class Reviewing:
    """One batch of rulings."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._now = now
        self._urls = Urls(connection)
        self._hosts: dict[int, _Host] = {}
        self._crowds = Crowds(connection, settings)

    def run(self, rulings: Sequence[Ruling]) -> list[bool]:
        """Apply them in order; whether each changed something."""
        done = [self._one(ruling) for ruling in rulings]
        self._crowds.write()
        for hid in self._hosts:
            self._book.write_host(hid)
            self._connection.execute(_SQL["reclass"], (hid,))
        return done

    def _one(self, ruling: Ruling) -> bool:
        known = ruling.known
        host = self._host(known.hid)
        if known.shelf in (Shelf.QUEUED, Shelf.DELAYED):
            place = self._urls.waiting(known.hid, known.id)
            if place is None or self._is_leased(place, host):
                return False
            return self._refuse(place, ruling.refusal) if ruling.refusal else self._reclass(place, ruling.front_class)
        if ruling.refusal is not None:
            return known.shelf is Shelf.DEAD and self._drop(known, ruling.refusal)
        return self._queue(known, host, ruling.front_class)

    # -- what waits -----------------------------------------------------------------------------------------

    def _refuse(self, place: Place, reason: Reason) -> bool:
        self._urls.remove(place)
        self._gone(place)
        state = self._book.move(UrlState.QUEUED, Event.REFUSE)
        self._urls.end(place.row, Ending(int(state), self._now, reason=reason.value))
        self._urls.forget_ways([place.row])
        self._refused(place.row.hid, reason.value, 1)
        return True

    def _reclass(self, place: Place, front_class: int) -> bool:
        if place.row.front_class == front_class:
            return False
        self._urls.replace(place, place.row._replace(front_class=front_class))
        self._urls.forget_ways([place.row])
        return True

    def _gone(self, place: Place) -> None:
        self._hosts[place.row.hid].waiting -= 1
        delta = self._book.host(place.row.hid)
        if place.due_at is None:
            delta.queued -= 1
        else:
            delta.delayed -= 1

    def _is_leased(self, place: Place, host: _Host) -> bool:
        row = place.row
        return place.due_at is None and row.id in host.held and row.settled != host.token

    # -- what has ended -------------------------------------------------------------------------------------

    def _queue(self, known: Known, host: _Host, front_class: int) -> bool:
        dead = known.shelf is Shelf.DEAD
        if host.closed or (not dead and (self._full(host) or not self._has_room(known, host))):
            return False
        before = self._urls.ended(known.id)
        row = self._urls.reopen(known.id, UrlState.DEAD if dead else UrlState.SKIPPED)
        if row is None or before is None:
            return False
        self._urls.enqueue(row._replace(front_class=front_class))
        self._urls.forget_ways([row])
        host.waiting += 1
        delta = self._book.host(known.hid)
        delta.join(front_class)
        if dead:
            delta.dead -= 1
            self._book.move(UrlState.DEAD, Event.REVIVE)
            return True
        self._meet(known, host)
        self._book.move(UrlState.SKIPPED, Event.READMIT)
        self._refused(known.hid, before.reason or "", -1)
        return True

    def _meet(self, known: Known, host: _Host) -> None:
        delta = self._book.host(known.hid)
        delta.discovered += 1
        if not host.met:
            host.met = True
            delta.met = 1
            self._book.add(HOSTS, 1)
            self._crowds.join(known.host)

    def _has_room(self, known: Known, host: _Host) -> bool:
        return host.met or host.seed or self._crowds.has_room(known.host)

    def _drop(self, known: Known, reason: Reason) -> bool:
        if self._connection.execute(_SQL["drop"], (reason.value, self._now, known.id)).rowcount == 0:
            return False
        self._book.host(known.hid).dead -= 1
        self._book.move(UrlState.DEAD, Event.DROP)
        self._refused(known.hid, reason.value, 1)
        return True

    def _refused(self, hid: int, reason: str, n: int) -> None:
        self._connection.execute(_SQL["refused_more"], {"hid": hid, "reason": reason, "n": n})

    # -- hosts ----------------------------------------------------------------------------------------------

    def _host(self, hid: int) -> _Host:
        host = self._hosts.get(hid)
        if host is None:
            seed, waiting, token, closed, met = self._connection.execute(_SQL["host"], (hid,)).fetchone()
            leased = {} if token is None else self._urls.held(token)
            host = self._hosts[hid] = _Host(bool(seed), waiting, token, bool(closed), bool(met), leased)
        return host

    def _full(self, host: _Host) -> bool:
        limit = self._settings.queue_per_host
        return limit is not None and not host.seed and host.waiting >= limit
