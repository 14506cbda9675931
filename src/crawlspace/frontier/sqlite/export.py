"""All URLs of a store as they were at one moment, one by one, for those who write them elsewhere.

The whole reading is one transaction: each URL is there once and in one state, however long it takes and whatever
the crawl does meanwhile. Its price is paid by the crawl's log, which cannot be folded back so long and grows by what
is written. Memory does not grow: rows are read as they are asked for, in the order in which they lie.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from crawlspace.errors import UsageError
from crawlspace.frontier.rounds import captures_of
from crawlspace.frontier.rows import Ending, Waiting
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.connection import connect_reading, reading, translated
from crawlspace.frontier.sqlite.schema import require, steps
from crawlspace.frontier.tales import told
from crawlspace.states import TERMINAL, UrlState
from crawlspace.types import Captured, Story

_SQL = statements(__package__, "export.sql")

_WAITING = len(Waiting._fields)
_ENDING = _WAITING + len(Ending._fields)

_decode_held = msgspec.json.Decoder(list[tuple[int, int]]).decode


@contextmanager
def open_snapshot(path: Path, settings: FrontierSettings) -> Iterator[Snapshot]:
    """A store as it is now, until the end of the context; raises `CrawlDirError` or `StoreError`."""
    with translated(str(path)), closing(connect_reading(str(path), settings)) as connection:
        require(connection, str(path), len(steps()))
        with reading(connection):
            yield Snapshot(connection)


class Snapshot:
    """A store at one moment. Made by `open_snapshot`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def stories(self, states: frozenset[UrlState], host: str | None = None) -> Iterator[Story]:
        """The URLs in these states: first those that wait, host by host, then the others by number.

        With `host` those of one host only, by its name; raises `UsageError` when no URL of it is known. `due` is told
        of none.
        """
        hid = None if host is None else self._hid(host)
        if states - TERMINAL:
            yield from self._waiting(states, hid)
        ended = sum(1 << state for state in states & TERMINAL)
        if ended:
            for row in self._connection.execute(_SQL["ended"], {"states": ended, "hid": hid}):
                yield _ended(row)

    def visited_again(self) -> Iterator[Captured]:
        """The captures of URLs that were visited more than once, visit by visit, by number and generation.

        A visit that found the page as it was has no capture of its own: it comes with that of the visit before.
        """
        return captures_of(self._connection.execute(_SQL["visited_again"]))

    def reach(self) -> dict[str, int]:
        """How far settled captures reach into each of the archive's files."""
        return dict(self._connection.execute(_SQL["reach"]).fetchall())

    def owner(self, file: str) -> str | None:  # noqa: ARG002 -- for every one it is the same
        """None: all archive files are those of this crawl's one directory."""
        return None

    def others(self) -> list[str]:
        """Nobody."""
        return []

    def _hid(self, host: str) -> int:
        found = self._connection.execute(_SQL["host"], (host,)).fetchone()
        if found is None:
            raise UsageError(f"no URL of the host {host!r} is known", hint="hosts are told by: crawlspace hosts DIR")
        return int(found[0])

    def _waiting(self, states: frozenset[UrlState], hid: int | None) -> Iterator[Story]:
        leases = {
            host: (token, {number for _, number in _decode_held(urls)})
            for host, token, urls in self._connection.execute(_SQL["leases"])
        }
        for name in ("queued", "delayed"):
            for row in self._connection.execute(_SQL[name], {"hid": hid}):
                waiting = Waiting._make(row[:_WAITING])
                token, held = leases.get(waiting.hid, (None, set()))
                leased = name == "queued" and waiting.id in held and waiting.settled != token
                state = UrlState.LEASED if leased else UrlState.QUEUED
                if state in states:
                    yield told(waiting, Ending(state, 0), row[_WAITING:])


def _ended(row: tuple[Any, ...]) -> Story:
    parent, copy_of, file, host = row[_ENDING:]
    return told(Waiting._make(row[:_WAITING]), Ending._make(row[_WAITING:_ENDING]), (parent, host), copy_of, file)
