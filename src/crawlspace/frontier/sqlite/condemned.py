"""Hosts that are emptied, some rows at each call: those given up into the dead letters, those blocked into refusals.

Such a host is parked until it is empty, so that nobody leases what is about to end. Links found later to a host that
was given up are tried again; those to a blocked one are refused as they come.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from crawlspace.frontier.bounds import BURIED_AT_ONCE
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.states import Event, UrlState
from crawlspace.types import Reason

_SQL = statements(__package__, "condemned.sql")

_FORGET = {"queued": ("forget_more", "forget_queued"), "delayed": ("forget_delayed",)}
"""Where URLs wait, and the statements by which buried ones leave."""

_GIVEN_UP = "its host was given up"


class _End(Struct, frozen=True):
    """How the waiting URLs of a host end."""

    event: Event
    state: UrlState
    reason: str
    detail: str | None
    now: int


def condemn(connection: sqlite3.Connection, book: Book, hid: int, reason: str, now: int) -> None:
    """Give up a free host and bury the first of its URLs."""
    book.write_host(hid)
    connection.execute(_SQL["condemn"], (reason, hid))
    _give_up(connection, book, (hid, reason), now, BURIED_AT_ONCE)


def bury_some(connection: sqlite3.Connection, book: Book, now: int) -> None:
    """Go on with hosts that were given up or blocked before."""
    limit = BURIED_AT_ONCE
    while limit > 0 and (found := connection.execute(_SQL["next"]).fetchone()) is not None:
        limit -= _give_up(connection, book, found, now, limit)
    while limit > 0 and (found := connection.execute(_SQL["next_blocked"]).fetchone()) is not None:
        limit -= _refuse(connection, book, found[0], now, limit)


def _give_up(connection: sqlite3.Connection, book: Book, host: tuple[int, str], now: int, limit: int) -> int:
    hid, reason = host
    end = _End(Event.DIE, UrlState.DEAD, reason, _GIVEN_UP, now)
    buried = _empty(connection, book, hid, end, limit)
    if connection.execute(_SQL["left"], (hid,)).fetchone()[0] == 0:
        connection.execute(_SQL["pardon"], (hid,))
    return buried


def _refuse(connection: sqlite3.Connection, book: Book, hid: int, now: int, limit: int) -> int:
    reason = Reason.BLOCKED_HOST.value
    refused = _empty(connection, book, hid, _End(Event.REFUSE, UrlState.SKIPPED, reason, None, now), limit)
    connection.execute(_SQL["refused"], {"hid": hid, "reason": reason, "n": refused})
    return refused


def _empty(connection: sqlite3.Connection, book: Book, hid: int, end: _End, limit: int) -> int:
    """End waiting URLs of a host, no more than `limit`; how many."""
    ended = 0
    for place in _FORGET:
        parameters = {
            "hid": hid,
            "state": int(end.state),
            "reason": end.reason,
            "detail": end.detail,
            "now": end.now,
            "limit": limit - ended,
        }
        n = connection.execute(_SQL[f"bury_{place}"], parameters).rowcount
        for forget in _FORGET[place]:
            connection.execute(_SQL[forget], parameters)
        delta = book.host(hid)
        if end.state is UrlState.DEAD:
            delta.dead += n
        if place == "queued":
            delta.queued -= n
        else:
            delta.delayed -= n
        book.move(UrlState.QUEUED, end.event, n)
        book.write_host(hid)
        ended += n
    return ended
