"""What a frontier answers when it is asked: totals, facts, robots files, stories, hosts, dead letters.

Everything is found by key or read in the order of an index; nothing here walks a table. The caller holds a
transaction, so that an answer of several reads is of one moment.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from crawlspace.errors import UsageError
from crawlspace.exchange import RobotsFile, RobotsVerdict
from crawlspace.frontier.counters import BYTES, DUPLICATES, FETCHES, HOSTS, PAGES, REFUSED_BEYOND_CAP, STATE_NAMES
from crawlspace.frontier.rows import Ending, Waiting, dead_letter, host_figures
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.schema import FORMAT
from crawlspace.frontier.sqlite.urls import Place, Urls
from crawlspace.frontier.tales import told
from crawlspace.policy.commands import News
from crawlspace.states import UrlState
from crawlspace.types import Counts, DeadLetter, HostFigures, Reason, Story, host_id

_SQL = statements(__package__, "ledger.sql")

EDITION = "edition"
OWN_FACTS = frozenset({FORMAT, EDITION})
"""What the store writes itself."""

_WAITING = len(Waiting._fields)
_ENDING = _WAITING + len(Ending._fields)


def new_edition(connection: sqlite3.Connection) -> None:
    """Something changes that all who work on the crawl must hear of."""
    connection.execute(_SQL["new_edition"])


class _HostNow(NamedTuple):
    name: str
    token: int | None
    next_at: int


class Ledger:
    """Reads, and writes what is no URL."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._urls = Urls(connection)

    def counts(self) -> Counts:
        n: dict[str, int] = dict(self._connection.execute(_SQL["tally"]).fetchall())
        return Counts(
            states={state: n[name] for state, name in STATE_NAMES.items()},
            pages=n[PAGES],
            fetches=n[FETCHES],
            bytes=n[BYTES],
            duplicates=n[DUPLICATES],
            hosts=n[HOSTS],
            refused_beyond_cap=n[REFUSED_BEYOND_CAP],
        )

    def notes(self) -> Mapping[str, str]:
        return dict(self._connection.execute(_SQL["facts"]).fetchall())

    def note(self, facts: Mapping[str, str]) -> None:
        for name in OWN_FACTS.intersection(facts):
            raise UsageError(f"the fact {name!r} is the store's own")
        self._connection.executemany(_SQL["write_fact"], facts.items())
        new_edition(self._connection)

    def revise(self, name: str, old: str | None, new: str) -> bool:
        if name in OWN_FACTS:
            raise UsageError(f"the fact {name!r} is the store's own")
        if old is None:
            written = self._connection.execute(_SQL["first_fact"], (name, new)).rowcount == 1
        else:
            written = self._connection.execute(_SQL["revise_fact"], (new, name, old)).rowcount == 1
        if written:
            new_edition(self._connection)
        return written

    def news(self, edition: int) -> News | None:
        now: int = self._connection.execute(_SQL["edition"]).fetchone()[0]
        if now <= edition:
            return None
        held = frozenset(name for (name,) in self._connection.execute(_SQL["held"]))
        return News(now, self.notes(), held)

    def robots(self, origins: Sequence[str]) -> list[RobotsFile | None]:
        return [self._robots_of(origin) for origin in origins]

    def keep_robots(self, robots: Sequence[RobotsFile]) -> None:
        self._connection.executemany(
            _SQL["write_robots"],
            [(r.origin, r.fetched_at, r.expires_at, r.verdict.value, r.text, r.detail) for r in robots],
        )

    def segments(self) -> dict[str, int]:
        return dict(self._connection.execute(_SQL["segments"]).fetchall())

    def dead(self, after: int, limit: int) -> list[DeadLetter]:
        return [dead_letter(row) for row in self._connection.execute(_SQL["dead_letters"], (after, limit))]

    def hosts(self, after: str, limit: int) -> list[HostFigures]:
        rows = self._connection.execute(_SQL["hosts"], (after, limit))
        return [host_figures(row, self._settings.delay_ms) for row in rows]

    def refused(self, hid: int, reason: Reason, after: int, limit: int) -> list[Story]:
        numbers = self._connection.execute(_SQL["refused"], (hid, reason.value, after, limit)).fetchall()
        stories = (self._ended(number) for (number,) in numbers)
        return [story for story in stories if story is not None]

    def unprocessed(self, after: int, limit: int) -> list[Story]:
        numbers = self._connection.execute(_SQL["stored"], (after, limit)).fetchall()
        stories = (self._ended(number) for (number,) in numbers)
        return [story for story in stories if story is not None]

    def find(self, keys: Sequence[bytes]) -> list[Story | None]:
        return [self._story(key) for key in keys]

    def _robots_of(self, origin: str) -> RobotsFile | None:
        row = self._connection.execute(_SQL["robots"], (origin,)).fetchone()
        if row is None:
            return None
        _, fetched_at, expires_at, verdict, text, detail = row
        return RobotsFile(origin, fetched_at, expires_at, RobotsVerdict(verdict), text, detail)

    def _story(self, key: bytes) -> Story | None:
        found = self._connection.execute(_SQL["number"], (key,)).fetchone()
        if found is None:
            return None
        place = self._urls.waiting(host_id(key), found[0])
        return self._ended(found[0]) if place is None else self._waits(place)

    def _waits(self, place: Place) -> Story:
        row = place.row
        host = self._host(row.hid)
        leased = (
            place.due_at is None
            and host.token is not None
            and host.token != row.settled
            and row.id in self._urls.held(host.token)
        )
        end = Ending(UrlState.LEASED if leased else UrlState.QUEUED, 0)
        story = told(row, end, (self._url_of(row.parent), host.name))
        return replace(story, due=None if leased else max(host.next_at, place.due_at or 0))

    def _ended(self, number: int) -> Story | None:
        found = self._connection.execute(_SQL["outcome"], (number,)).fetchone()
        if found is None:
            return None
        row, end = Waiting._make(found[:_WAITING]), Ending._make(found[_WAITING:_ENDING])
        parent, copy_of, file = found[_ENDING:]
        return told(row, end, (parent, self._host(row.hid).name), copy_of, file)

    def _host(self, hid: int) -> _HostNow:
        return _HostNow._make(self._connection.execute(_SQL["host"], (hid,)).fetchone())

    def _url_of(self, number: int | None) -> str | None:
        found = None if number is None else self._connection.execute(_SQL["url_of"], (number,)).fetchone()
        return None if found is None else str(found[0])
