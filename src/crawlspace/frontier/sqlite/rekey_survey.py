"""What a re-keying would do, without doing it; and what a re-keyed store remembers of the URLs it merged.

The store is read at one moment, also while a crawl runs, and never written. The plan lies in a nameless database that
SQLite keeps beyond its cache in a file and deletes by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading, reading, translated, writing
from crawlspace.frontier.sqlite.rekey import BATCH
from crawlspace.frontier.sqlite.rekey_plan import WALKS, Naming, Place, Planned, Planning, planned_after
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, Pointer, QueuedUrl

_SQL = statements(__package__, "rekey.sql")

EXAMPLES = 10
_PLAN_CACHE = "cache_size = -65536"
_STATES = {rank: state for state, rank in ((UrlState.DONE, 0), (UrlState.STORED, 1), (UrlState.REDIRECTED, 2))}
_STATES |= {3: UrlState.QUEUED, 4: UrlState.QUEUED, 5: UrlState.DEAD, 6: UrlState.SKIPPED, 7: UrlState.REDIRECTED}


class Merge(NamedTuple):
    """Two URLs that become one."""

    goes: str
    state: UrlState
    stays: str
    stays_state: UrlState


@dataclass(slots=True)
class Forecast:
    """What would change."""

    urls: int = 0
    changed: int = 0
    merged: int = 0
    restored: int = 0
    merges: list[Merge] = field(default_factory=list)
    """Some of them."""
    changes: list[str] = field(default_factory=list)
    """Addresses of some URLs whose key changes without a merge."""


class Source(NamedTuple):
    """A URL whose answer led to others."""

    cursor: int
    url: QueuedUrl
    state: UrlState
    target: str | None
    """Where it redirects to."""
    pointer: Pointer | None


class Merged(NamedTuple):
    """A URL that was merged into another, as it was then."""

    id: int
    url: str
    state: UrlState
    reason: str | None
    at: int | None
    status: int | None
    pointer: Pointer | None
    rules: str
    """Identifier of the rules under which the two became one."""


class Survey:
    """One look at a store. Made by `open_survey`."""

    def __init__(self, store: sqlite3.Connection, plan: sqlite3.Connection, naming: Naming) -> None:
        self.store = store
        self._plan = plan
        self._naming = naming

    def forecast(self) -> Forecast:
        """Look at every URL."""
        told = Forecast()
        for place in WALKS:
            if place is not Place.MERGED or has_merged(self.store):
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
        while batch := sources(self.store, after, limit):
            yield from batch
            after = batch[-1].cursor

    def _look_at(self, place: Place, told: Forecast) -> None:
        planning = Planning(self.store, self._plan, self._naming)
        after = WALKS[place][1]
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
                told.changes.append(self._url(row))
        elif row.is_live:
            told.merged += 1
            if len(told.merges) < EXAMPLES:
                told.merges.append(Merge(self._url(row), _state(row), self._url(first), _state(first)))

    def _url(self, row: Planned) -> str:
        where = {"id": row.id, "hid": row.hid}
        url: str = self.store.execute(_SQL["url_of_live" if row.is_live else "url_of"], where).fetchone()[0]
        return url


def _state(row: Planned) -> UrlState:
    return _STATES[row.rank % 10]


@contextmanager
def open_survey(path: Path, settings: FrontierSettings, naming: Naming) -> Iterator[Survey]:
    """Look at a store as it is at this moment."""
    with translated(str(path)):
        store = connect_reading(str(path), settings)
        plan = sqlite3.connect("", isolation_level=None)
        try:
            for pragma in (_PLAN_CACHE, "journal_mode = OFF", "synchronous = OFF"):
                plan.execute(f"PRAGMA {pragma}")
            plan.execute(_SQL["make_plan"])
            with reading(store):
                yield Survey(store, plan, naming)
        finally:
            plan.close()
            store.close()


@contextmanager
def open_reading(path: Path, settings: FrontierSettings) -> Iterator[sqlite3.Connection]:
    """A store to read from while others write."""
    with translated(str(path)):
        store = connect_reading(str(path), settings)
        try:
            yield store
        finally:
            store.close()


def has_followed(store: sqlite3.Connection) -> bool:
    """Whether the crawl ever followed a link; one of a list alone never does."""
    return any(store.execute(_SQL[name]).fetchone() for name in ("followed", "follows"))


def has_merged(store: sqlite3.Connection) -> bool:
    """Whether the store was ever re-keyed."""
    return bool(store.execute(_SQL["has_merged"]).fetchone()[0])


def sources(store: sqlite3.Connection, after: int, limit: int) -> list[Source]:
    """The next URLs whose answer led to others, by number."""
    found = []
    for number, hid, tail, *rest in store.execute(_SQL["sources"], (after, limit)):
        found.append(_source(number, number, hid.to_bytes(HOST_BYTES, "big") + tail, rest))
    return found


def merged_sources(store: sqlite3.Connection, after: int, limit: int) -> list[Source]:
    """The same of URLs that were merged, in the name and without the key of the URL that stayed."""
    rows = store.execute(_SQL["merged_sources"], (after, limit))
    return [_source(number, winner, b"", rest) for number, winner, *rest in rows]


def _source(cursor: int, number: int, key: bytes, rest: list[object]) -> Source:
    url, front_class, depth, hops, label, meta, state, target, file, offset, length = rest
    queued = QueuedUrl(number, key, url, front_class, depth, hops, label=label, meta=meta)  # type: ignore[arg-type]
    pointer = None if file is None else Pointer(file, offset, length)  # type: ignore[arg-type]
    return Source(cursor, queued, UrlState(state), target, pointer)  # type: ignore[arg-type]


def merged_into(store: sqlite3.Connection, number: int, limit: int = 100) -> list[Merged]:
    """What was merged into a URL, oldest first."""
    if not has_merged(store):
        return []
    found = []
    for number_, url, state, reason, at, status, file, offset, length, rules in store.execute(
        _SQL["merged_into"], (number, limit)
    ):
        pointer = None if file is None else Pointer(file, offset, length)
        found.append(Merged(number_, url, UrlState(state), reason, at, status, pointer, rules))
    return found
