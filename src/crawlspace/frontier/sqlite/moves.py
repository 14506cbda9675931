"""Where the URLs of a batch of settlements go: read together before it, and written together after it.

What is read ahead stays true, since nobody else writes before the transaction ends; what is not written yet is
written (`write`) before anybody looks at the rows otherwise. Rows leave the queue before others join it: a URL that
was moved returns to its own place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from crawlspace.frontier.rows import Ending, Waiting
from crawlspace.frontier.sql import blob, chunks, listed, statements
from crawlspace.frontier.sqlite.urls import Urls
from crawlspace.states import UrlState

_SQL = statements(__package__, "moves.sql")

Where = tuple[int, int, int]
"""Host, class and number of a URL in the queue."""


class Moves:
    """The URLs of one batch."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._urls = Urls(connection)
        self._leased: dict[int, Waiting] = {}
        self._gone: list[Waiting] = []
        self._ends: list[tuple[Waiting, Ending]] = []
        self._queued: list[Waiting] = []
        self._delayed: list[tuple[Waiting, int]] = []
        self._had: dict[bytes, int | None] = {}
        self._first: dict[bytes, int] = {}

    def look_up(self, places: Iterable[Where], digests: Iterable[bytes]) -> None:
        """Read the rows of leased URLs, and who had these bytes first."""
        asked = [number for where in sorted(set(places)) for number in where]
        for chunk in chunks(asked, 3):
            rows = self._connection.execute(listed(_SQL["leased"], len(chunk) // 3), chunk)
            self._leased.update((row[2], Waiting._make(row)) for row in rows)
        wanted = sorted(set(digests))
        self._had.update(dict.fromkeys(wanted))
        for keys in chunks(wanted):
            self._had.update(self._connection.execute(listed(_SQL["had"], len(keys)), [*map(blob, keys)]))

    def take(self, hid: int, front_class: int, number: int, token: int) -> Waiting | None:
        """Take a URL out of the queue; None when it is not there, or lease `token` itself sent it back."""
        row = self._leased.pop(number, None)
        if row is None:
            self.write()
            return self._urls.take(hid, front_class, number, token)
        if row.settled == token:
            return None
        self._gone.append(row)
        return row

    def end(self, row: Waiting, ending: Ending) -> None:
        """The URL gets its outcome."""
        self._ends.append((row, ending))

    def enqueue(self, row: Waiting) -> None:
        """The URL joins its host's queue again."""
        self._queued.append(row)

    def delay(self, row: Waiting, due_at: int) -> None:
        """The URL begins to wait for a time."""
        self._delayed.append((row, due_at))

    def first_with(self, digest: bytes, number: int) -> int:
        """The URL that had these bytes first; this one, when nobody had."""
        if digest not in self._had:
            self.look_up((), [digest])
        first = self._had[digest]
        if first is None:
            first = self._had[digest] = self._first[digest] = number
        return first

    def write(self) -> None:
        """Write it all."""
        self._urls.leave_all(sorted(self._gone))
        # In the order of their table, and many at once: that halves what they cost.
        self._urls.end_all(sorted(self._ends, key=_number))
        self._urls.forget_ways(row for row, end in self._ends if end.state == UrlState.SKIPPED)
        self._urls.enqueue_all(self._queued)
        self._urls.delay_all(self._delayed)
        self._connection.executemany(_SQL["first"], sorted(self._first.items()))
        for written in (self._gone, self._ends, self._queued, self._delayed, self._first):
            written.clear()


def _number(ended: tuple[Waiting, Ending]) -> int:
    return ended[0].id
