"""Hosts that were given up: their waiting URLs become dead letters, some at each call.

A condemned host is parked until it is empty, so that nobody leases what is about to be buried. Links found to it
later are tried again.
"""

from __future__ import annotations

import sqlite3

from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.states import Event, UrlState

_SQL = statements(__package__, "condemned.sql")

BURIED_AT_ONCE = 5_000
"""Rows moved in one transaction: about a tenth of a second. The calls of lease that follow take the rest."""

_DETAIL = "its host was given up"


def condemn(connection: sqlite3.Connection, book: Book, hid: int, reason: str, now: int) -> None:
    """Give up a free host and bury the first of its URLs."""
    book.write_host(hid)
    connection.execute(_SQL["condemn"], (reason, hid))
    _bury(connection, book, hid, {"reason": reason, "now": now, "limit": BURIED_AT_ONCE})


def bury_some(connection: sqlite3.Connection, book: Book, now: int) -> None:
    """Go on with hosts that were given up before."""
    limit = BURIED_AT_ONCE
    while limit > 0 and (found := connection.execute(_SQL["next"]).fetchone()) is not None:
        hid, reason = found
        limit -= _bury(connection, book, hid, {"reason": reason, "now": now, "limit": limit})


def _bury(connection: sqlite3.Connection, book: Book, hid: int, bounds: dict[str, str | int]) -> int:
    limit = int(bounds["limit"])
    buried = 0
    for place in ("queued", "delayed"):
        parameters = bounds | {"hid": hid, "detail": _DETAIL, "limit": limit - buried}
        n = connection.execute(_SQL[f"bury_{place}"], parameters).rowcount
        connection.execute(_SQL[f"forget_{place}"], parameters)
        delta = book.host(hid)
        delta.dead += n
        if place == "queued":
            delta.queued -= n
        else:
            delta.delayed -= n
        book.move(UrlState.QUEUED, Event.DIE, n)
        book.write_host(hid)
        buried += n
    if connection.execute(_SQL["left"], (hid,)).fetchone()[0] == 0:
        connection.execute(_SQL["pardon"], (hid,))
    return buried
