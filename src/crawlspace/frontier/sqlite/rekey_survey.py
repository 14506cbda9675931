"""What a re-keying would do, without doing it; and what a re-keyed store remembers of the URLs it merged.

The store is read at one moment, also while a crawl runs, and never written. The plan lies in a nameless database that
SQLite keeps beyond its cache in a file and deletes by itself, whatever the store is.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from crawlspace.frontier import rekeying
from crawlspace.frontier.rekeying import (
    BATCH,
    EXAMPLES,
    Cursor,
    Forecast,
    Merge,
    Merged,
    Naming,
    Place,
    Planned,
    Reading,
    Source,
    state_of,
)
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading, reading, translated, writing
from crawlspace.frontier.sqlite.rekey_plan import WALKS, Planning, planned_after, walk_over
from crawlspace.types import HOST_BYTES

_SQL = statements(__package__, "rekey.sql")

_PLAN_CACHE = "cache_size = -65536"


class Survey:
    """One look at a store. Made by `open_survey`."""

    def __init__(self, store: Reading, plan: sqlite3.Connection, naming: Naming) -> None:
        self.store = store
        self._plan = plan
        self._naming = naming

    def forecast(self) -> Forecast:
        """Look at every URL."""
        told = Forecast()
        for place in WALKS:
            if place is not Place.MERGED or self.store.has_merged():
                self._look_at(place, told)
        for group in self._groups():
            self._judge(group, told)
        return told

    def plans(self, key: bytes) -> bool:
        """Whether a URL that is known now has this key then."""
        return self._plan.execute(_SQL["plans"], (key,)).fetchone() is not None

    def every_source(self, limit: int) -> Iterator[Source]:
        """URLs whose answer led to others, read so many at once."""
        after = 0
        while batch := self.store.sources(after, limit):
            yield from batch
            after = batch[-1].cursor

    def _look_at(self, place: Place, told: Forecast) -> None:
        planning = Planning(self.store.walk, self._plan, self._naming)
        after: Cursor | None = None
        while True:
            with writing(self._plan):
                reached, n, changed = planning.step(place, after, BATCH)
            told.changed += changed
            told.urls += n if place is not Place.MERGED else 0
            if reached is None:
                return
            after = reached

    def _groups(self) -> Iterator[tuple[Planned, Planned]]:
        """Each URL beside the first of its group."""
        after = (b"", -1, -1)
        first: Planned | None = None
        while rows := planned_after(self._plan, after, BATCH):
            for row in rows:
                first = row if first is None or first.key != row.key else first
                yield first, row
            last = rows[-1]
            after = (last.key, last.rank, last.id)

    def _judge(self, group: tuple[Planned, Planned], told: Forecast) -> None:
        first, row = group
        if first is row:
            told.restored += not row.is_live
            if row.is_live and not row.stays and len(told.changes) < EXAMPLES:
                told.changes.append(self.store.url(row))
        elif row.is_live:
            told.merged += 1
            if len(told.merges) < EXAMPLES:
                told.merges.append(Merge(self.store.url(row), state_of(row), self.store.url(first), state_of(first)))


@contextmanager
def open_survey(store: Reading, naming: Naming) -> Iterator[Survey]:
    """Look at a store as it is at the moment of this reading."""
    with closing(sqlite3.connect("", isolation_level=None)) as plan:
        for pragma in (_PLAN_CACHE, "journal_mode = OFF", "synchronous = OFF"):
            plan.execute(f"PRAGMA {pragma}")
        plan.execute(_SQL["make_plan"])
        yield Survey(store, plan, naming)


@contextmanager
def open_reading(path: Path, settings: FrontierSettings, *, one_moment: bool = False) -> Iterator[SqliteReading]:
    """A store to read from while others write; with `one_moment` it stays as it is now."""
    with translated(str(path)), closing(connect_reading(str(path), settings)) as store:
        if one_moment:
            with reading(store):
                yield SqliteReading(store)
        else:
            yield SqliteReading(store)


class SqliteReading:
    """A look at a store; see `rekeying.Reading`."""

    def __init__(self, store: sqlite3.Connection) -> None:
        self._store = store
        self._walk = walk_over(store)

    def walk(self, place: Place, after: Cursor | None, limit: int) -> list[tuple[Any, ...]]:
        """The next rows of a table."""
        return self._walk(place, after, limit)

    def url(self, row: Planned) -> str:
        """The address of a URL of the plan."""
        where = {"id": row.id, "hid": row.hid}
        url: str = self._store.execute(_SQL["url_of_live" if row.is_live else "url_of"], where).fetchone()[0]
        return url

    def has_followed(self) -> bool:
        """Whether the crawl ever followed a link; one of a list alone never does."""
        return any(self._store.execute(_SQL[name]).fetchone() for name in ("followed", "follows"))

    def has_merged(self) -> bool:
        """Whether the store was ever re-keyed."""
        return bool(self._store.execute(_SQL["has_merged"]).fetchone()[0])

    def sources(self, after: int, limit: int) -> list[Source]:
        """The next URLs whose answer led to others, by number."""
        found = []
        for number, hid, tail, *rest in self._store.execute(_SQL["sources"], (after, limit)):
            found.append(rekeying.source(number, number, hid.to_bytes(HOST_BYTES, "big") + tail, rest))
        return found

    def merged_sources(self, after: int, limit: int) -> list[Source]:
        """The same of URLs that were merged, in the name and without the key of the URL that stayed."""
        rows = self._store.execute(_SQL["merged_sources"], (after, limit))
        return [rekeying.source(number, winner, b"", rest) for number, winner, *rest in rows]

    def merged_into(self, number: int, limit: int = 100) -> list[Merged]:
        """What was merged into a URL, oldest first."""
        if not self.has_merged():
            return []
        return [rekeying.merged(row) for row in self._store.execute(_SQL["merged_into"], (number, limit))]
