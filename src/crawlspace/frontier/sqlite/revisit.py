"""Visits beyond the first: URLs that are due again leave their outcome for the queue, and what it was is kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from crawlspace.frontier.counters import DUPLICATES, PAGES
from crawlspace.frontier.rounds import (
    DUE_AT_ONCE,
    LATER_MS,
    VISITS_READ,
    Counted,
    Visited,
    before,
    figures,
    told,
)
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.states import Event, UrlState
from crawlspace.types import Before, GenerationFigures, Plan, Round

_SQL = statements(__package__, "revisit.sql")


class _Due(NamedTuple):
    id: int
    hid: int
    front_class: int
    state: int
    page: int
    copy: int
    held_up: int


def wake(connection: sqlite3.Connection, settings: FrontierSettings, book: Book, now: int) -> None:
    """Queue the URLs whose next visit is due, some at a time."""
    if not settings.revisits:
        return
    bounds = {"now": now, "most": settings.queue_per_host, "limit": DUE_AT_ONCE}
    due = list(map(_Due._make, connection.execute(_SQL["due"], bounds)))
    connection.executemany(_SQL["postpone"], [(now + LATER_MS, url.id) for url in due if url.held_up])
    going = [url for url in due if not url.held_up]
    for statement in ("keep", "requeue", "forget"):
        connection.executemany(_SQL[statement], [(url.id,) for url in going])
    for url in going:
        _count(book, url)
    for hid in {url.hid for url in going}:
        book.write_host(hid)


def _count(book: Book, url: _Due) -> None:
    state = UrlState(url.state)
    book.move(state, Event.REVISIT)
    delta = book.host(url.hid)
    delta.join(url.front_class)
    delta.done -= state is UrlState.DONE
    delta.dead -= state is UrlState.DEAD
    delta.duplicates -= url.copy
    book.add(DUPLICATES, -url.copy)
    book.add(PAGES, -int(state is UrlState.DONE and bool(url.page)))


def visits(connection: sqlite3.Connection, number: int) -> list[Visited]:
    """The latest visits of a URL, the newest first."""
    return list(map(Visited._make, connection.execute(_SQL["visits"], (number, VISITS_READ))))


def known(connection: sqlite3.Connection, number: int) -> Before | None:
    """What the next visit of a URL must know."""
    return before(visits(connection, number))


def rounds(connection: sqlite3.Connection, keys: Sequence[bytes]) -> list[list[Round]]:
    """The visits of URLs that others have followed, by fingerprint."""
    return [_rounds(connection, key) for key in keys]


def _rounds(connection: sqlite3.Connection, key: bytes) -> list[Round]:
    found = connection.execute(_SQL["number"], (key,)).fetchone()
    if found is None:
        return []
    return [told(Visited._make(row[:-1]), row[-1]) for row in connection.execute(_SQL["rounds"], found)]


def next_visit(connection: sqlite3.Connection) -> int | None:
    """When the first next visit is due; None when there is none."""
    due: int | None = connection.execute(_SQL["next_visit"]).fetchone()[0]
    return due


def generations(connection: sqlite3.Connection, states: dict[UrlState, int]) -> list[GenerationFigures]:
    """Each generation in numbers; `states` are the totals over all."""
    return figures(map(Counted._make, connection.execute(_SQL["counted"])), states)


def plan(connection: sqlite3.Connection, after: int, limit: int, by: Plan) -> int | None:
    """Give the next outcomes behind a number their next visit; the number reached, None at the end."""
    end: int | None = connection.execute(_SQL["batch_end"], (after, limit)).fetchone()[0]
    if end is not None:
        connection.execute(_SQL["plan"], {**by._asdict(), "after": after, "end": end})
    return end


def bring_forward(connection: sqlite3.Connection, number: int, modified: int, now: int) -> None:
    """The page was changed at this time, as somebody says: if that is news, it is due now."""
    connection.execute(_SQL["bring_forward"], {"id": number, "modified": modified, "now": now})
