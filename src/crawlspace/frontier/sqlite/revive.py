"""Dead URLs that a person puts back into the queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.urls import Urls
from crawlspace.states import Event, UrlState


def revive(connection: sqlite3.Connection, book: Book, numbers: Sequence[int]) -> int:
    """Queue these URLs again with all their tries; how many of them were dead."""
    urls = Urls(connection)
    revived = 0
    for number in numbers:
        row = urls.reopen(number, UrlState.DEAD)
        if row is None:
            continue
        urls.enqueue(row)
        delta = book.host(row.hid)
        delta.join(row.front_class)
        delta.dead -= 1
        book.move(UrlState.DEAD, Event.REVIVE)
        revived += 1
    return revived
