"""Lost leases: their URLs come back as suspects, their hosts wait their delay, and no try is used up.

A URL that was lost is leased alone from then on. One that is lost again and again while its worker had nothing else
in hand kills its workers: it becomes a dead letter. Leases that are lost together blame none of their URLs, however
often it happens: a person who kills a crawl twenty times has not found twenty bad pages.
"""

from __future__ import annotations

import sqlite3

from crawlspace.frontier.bounds import CRASHES_WORKER, LONGEST_WAIT_MS, LOSSES, LOST_AT_ONCE
from crawlspace.frontier.rows import Ending
from crawlspace.frontier.settings import CLASSES, FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite import groups
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.urls import Urls
from crawlspace.states import Event, UrlState

_SQL = statements(__package__, "loss.sql")


class Losing:
    """Gives up leases, inside a transaction of the caller, who also writes the book."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._now = now
        self._urls = Urls(connection)

    def expired(self) -> int:
        """Give up leases whose time is over; how many."""
        return self._lose(self._connection.execute(_SQL["expired"], (self._now, LOST_AT_ONCE)).fetchall())

    def live(self, worker: int = 0) -> int:
        """Give up leases whatever their time, all or those of one worker; how many."""
        if worker:
            rows = self._connection.execute(_SQL["of_worker"], (worker, LOST_AT_ONCE)).fetchall()
        else:
            rows = self._connection.execute(_SQL["live"], (LOST_AT_ONCE,)).fetchall()
        return self._lose(rows)

    def _lose(self, leases: list[tuple[int, int]]) -> int:
        alone = len(leases) == 1
        for token, hid in leases:
            for number, front_class in self._urls.held(token).items():
                self._suspect(token, hid, (front_class, number), alone=alone)
            self._book.write_host(hid)
            self._connection.execute(_SQL["drop_lease"], (token,))
            groups.give_up(self._connection, self._settings.grouping(), hid, self._now)
            self._connection.execute(
                _SQL["free"], {"hid": hid, "now": self._now, "first_delay_ms": self._settings.delay_ms}
            )
        return len(leases)

    def _suspect(self, token: int, hid: int, place: tuple[int, int], *, alone: bool) -> None:
        """One more loss of a URL, unless the lease had settled it; `alone` when no other lease was lost with it."""
        front_class, number = place
        found = self._connection.execute(_SQL["suspect"], (hid, front_class, number, token, alone)).fetchall()
        if not found:
            return
        delta = self._book.host(hid)
        delta.leased -= 1
        if found[0][0] < LOSSES:
            self._book.move(UrlState.LEASED, Event.RETURN)
            return
        row = self._urls.take(hid, front_class, number)
        assert row is not None, f"URL {number} left the queue while it was looked at"
        state = self._book.move(UrlState.LEASED, Event.DIE)
        detail = f"the lease that held it alone was lost {LOSSES - 1} times"
        self._urls.end(row, Ending(state=int(state), at=self._now, reason=CRASHES_WORKER, detail=detail))
        delta.queued -= 1
        delta.dead += 1


def clamp(connection: sqlite3.Connection, now: int) -> None:
    """Let no host wait for a time that only a wrong clock can have written."""
    for front_class in range(CLASSES):
        connection.execute(_SQL["clamp"], {"class": front_class, "bound": now + LONGEST_WAIT_MS})
    groups.clamp(connection, now + LONGEST_WAIT_MS)
