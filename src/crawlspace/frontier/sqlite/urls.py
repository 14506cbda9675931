"""One URL's rows: where it is, and the moves between queue, delayed and outcome.

Everything here runs inside a transaction that its caller began; counters are its caller's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from crawlspace.frontier.bounds import NO_TOKEN
from crawlspace.frontier.rows import Ending, LinkRow, Waiting, has_more, is_page, key_of, outcome, page_outcome
from crawlspace.frontier.sql import listed, parts, statements
from crawlspace.states import UrlState
from crawlspace.types import QueuedUrl

_SQL = statements(__package__, "urls.sql")

URLS = "url"
TOKENS = "token"
_decode_held = msgspec.json.Decoder(list[tuple[int, int]]).decode
_encode_held = msgspec.json.Encoder().encode


class Place(NamedTuple):
    """Where a waiting URL lies; `due_at` is None in the queue."""

    row: Waiting
    due_at: int | None


class Ended(NamedTuple):
    """The end of a URL, in short."""

    state: UrlState
    reason: str | None
    token: int | None


class Urls:
    """The rows of single URLs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def waiting(self, hid: int, number: int) -> Place | None:
        """The URL's row in the queue or among the delayed."""
        row = self._connection.execute(_SQL["queued"], (hid, number)).fetchone()
        if row is not None:
            return Place(Waiting._make(row), None)
        row = self._connection.execute(_SQL["delayed"], (number,)).fetchone()
        return None if row is None else Place(Waiting._make(row[:-1]), row[-1])

    def ended(self, number: int) -> Ended | None:
        """The URL's end; None while it waits."""
        row = self._connection.execute(_SQL["ended"], (number,)).fetchone()
        return None if row is None else Ended(UrlState(row[0]), row[1], row[2])

    def enqueue(self, row: Waiting) -> None:
        self._connection.execute(_SQL["enqueue"], row)

    def enqueue_links(self, rows: list[LinkRow]) -> None:
        """Queue links that were just claimed, in the order of the queue."""
        for length, values in parts(rows):
            self._connection.execute(listed(_SQL["enqueue_link"], length), values)

    def enqueue_all(self, rows: list[Waiting]) -> None:
        self._connection.executemany(_SQL["enqueue"], map(tuple, rows))

    def delay(self, row: Waiting, due_at: int) -> None:
        self._connection.execute(_SQL["delay"], (*row, due_at))

    def delay_all(self, rows: list[tuple[Waiting, int]]) -> None:
        self._connection.executemany(_SQL["delay"], [(*row, due_at) for row, due_at in rows])

    def take(self, hid: int, front_class: int, number: int, token: int = NO_TOKEN) -> Waiting | None:
        """Take a URL out of the queue; None when it is not there, or lease `token` itself sent it back."""
        found = self._connection.execute(_SQL["take"], (hid, front_class, number, token)).fetchone()
        if found is None:
            return None
        row = Waiting._make(found)
        self.leave_all([row])
        return row

    def leave_all(self, rows: list[Waiting]) -> None:
        """Take rows out of the queue."""
        self._connection.executemany(_SQL["leave"], [row[:3] for row in rows])
        if more := [(row.id,) for row in rows if has_more(row)]:
            self._connection.executemany(_SQL["leave_more"], more)

    def replace(self, place: Place, row: Waiting) -> None:
        """Write a waiting URL anew where it lies."""
        self.remove(place)
        if place.due_at is None:
            self.enqueue(row)
        else:
            self.delay(row, place.due_at)

    def remove(self, place: Place) -> None:
        """Take a URL away from where it waits."""
        if place.due_at is None:
            self.take(place.row.hid, place.row.front_class, place.row.id)
        else:
            self._connection.execute(_SQL["undelay"], (place.due_at, place.row.id))

    def end(self, row: Waiting, ending: Ending) -> None:
        self._connection.execute(_SQL["end"], outcome(row, ending))

    def end_all(self, ended: list[tuple[Waiting, Ending]]) -> None:
        pages = [page_outcome(row, ending) for row, ending in ended if is_page(row, ending)]
        for length, values in parts(pages):
            self._connection.execute(listed(_SQL["end_page"], length), values)
        if len(pages) < len(ended):
            others = [outcome(row, ending) for row, ending in ended if not is_page(row, ending)]
            self._connection.executemany(_SQL["end"], others)

    def forget_ways(self, rows: Iterable[Waiting]) -> None:
        """These URLs are refused or wait in another class: in which ways they were claimed says nothing any more."""
        self._connection.executemany(_SQL["forget_way"], [(key_of(row),) for row in rows])

    def reopen(self, number: int, state: UrlState) -> Waiting | None:
        """Undo an outcome in this state: the row to queue again, with no tries used; None when there is none."""
        rows = self._connection.execute(_SQL["reopen"], (number, int(state))).fetchall()
        return Waiting._make(rows[0]) if rows else None

    def held(self, token: int) -> dict[int, int]:
        """The URLs a live lease was given: class by number. Those it settled are still among them."""
        row = self._connection.execute(_SQL["held"], (token,)).fetchone()
        return {} if row is None else held_urls(row[0])

    def last(self, serial: str) -> int:
        """The last number given out; nobody else gives one out before this transaction ends."""
        last: int = self._connection.execute(_SQL["last"], (serial,)).fetchone()[0]
        return last

    def give(self, serial: str, last: int) -> None:
        self._connection.execute(_SQL["give"], (last, serial))


def held_urls(column: str) -> dict[int, int]:
    """What a lease was given, from its column: class by number."""
    return {number: front_class for front_class, number in _decode_held(column)}


def held_column(rows: Iterable[Waiting | QueuedUrl]) -> str:
    """What a lease holds, as it is stored."""
    return _encode_held([(row.front_class, row.id) for row in rows]).decode()
