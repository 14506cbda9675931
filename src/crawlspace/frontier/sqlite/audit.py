"""A store held against itself: every number recounted, every URL looked for, and what is safe to mend, mended.

It reads whole tables, and everything it says is of one moment. What it mends are numbers that rows prove wrong,
leases that nobody holds, and URLs whose capture is gone: those are fetched again. It invents nothing: a URL that is
twice there, or nowhere, is told and left.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from crawlspace.frontier.counters import DUPLICATES, PAGES
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.connection import connect, connect_reading, reading, translated, writing
from crawlspace.frontier.sqlite.loss import Losing
from crawlspace.frontier.sqlite.schema import require, steps
from crawlspace.frontier.sqlite.urls import Urls
from crawlspace.states import Event, UrlState
from crawlspace.types import HOST_BYTES, Pointer

_SQL = statements(__package__, "audit.sql")

CAPTURE_LOST = "capture_lost"
"""Class of the dead letters of URLs that were stored, and whose capture is gone."""
TOLD = 20
"""Faults of one kind that are told one by one."""

_OF_ROWS = "CHECK constraint failed"
"""How SQLite begins to tell of a row that breaks the store's own rules, in a file that is sound."""

_COUNTERS = ("queued", "delayed", "leased", "done", "dead", "duplicates", "ready", "class")


class Fault(NamedTuple):
    """Something that contradicts itself."""

    what: str
    mendable: bool = True


class Captured(NamedTuple):
    """A URL that should have a capture."""

    id: int
    hid: int
    url: str
    state: UrlState
    pointer: Pointer | None
    digest: bytes | None
    status: int | None


@contextmanager
def open_audit(path: Path, settings: FrontierSettings, *, owned: bool) -> Iterator[Audit]:
    """A store to be audited; only one that this process owns can be mended."""
    with translated(str(path)):
        connection = (connect if owned else connect_reading)(str(path), settings)
        try:
            require(connection, str(path), len(steps()))
            yield Audit(connection, settings)
        finally:
            connection.close()


class Audit:
    """One look at a store. Made by `open_audit`."""

    def __init__(self, connection: sqlite3.Connection, settings: FrontierSettings) -> None:
        self._connection = connection
        self._settings = settings

    def faults(self, *, deep: bool) -> list[Fault]:
        """All that is wrong with the store; `deep` asks SQLite itself about every page of its file too."""
        with reading(self._connection):
            found = self._integrity(deep)
            if any(not fault.mendable for fault in found):
                return found
            for part in (self._totals, self._hosts, self._leases, self._refusals, self._places, self._segments):
                found += part()
            found += self._groups()
            found += self._rounds()
            return found

    def captures(self, after: int, limit: int) -> list[Captured]:
        """URLs that should have a capture, by number, from the first above `after`."""
        with reading(self._connection):
            return [_captured(row) for row in self._connection.execute(_SQL["captures"], (after, limit))]

    def files(self) -> dict[str, int]:
        """How far settled captures reach into each of the archive's files."""
        return dict(self._connection.execute(_SQL["files"]).fetchall())

    # -- what is wrong --------------------------------------------------------------------------------------

    def _integrity(self, deep: bool) -> list[Fault]:
        pragma = "integrity_check" if deep else "quick_check"
        told = [text for (text,) in self._connection.execute(f"PRAGMA {pragma}({TOLD})") if text != "ok"]
        return [Fault(f"the store's file: {text}", mendable=text.startswith(_OF_ROWS)) for text in told]

    def _totals(self) -> list[Fault]:
        kept = dict(self._connection.execute(_SQL["kept_totals"]).fetchall())
        counted = self._connection.execute(_SQL["totals"]).fetchall()
        return [
            Fault(f"the total of {name} is {kept.get(name)}, and {n or 0} were counted")
            for name, n in counted
            if kept.get(name) != (n or 0)
        ]

    def _hosts(self) -> list[Fault]:
        rows = self._connection.execute(_SQL["hosts"]).fetchall()
        found = [Fault(f"host {row[1]}: {_differences(row[2:])}") for row in rows[:TOLD]]
        return found + _more(rows, "hosts whose counters are wrong") + self._strangers()

    def _strangers(self) -> list[Fault]:
        n = self._connection.execute(_SQL["strangers"]).fetchone()[0]
        return [Fault(f"{n} URLs belong to hosts that are not there", mendable=False)] if n else []

    def _leases(self) -> list[Fault]:
        n = self._connection.execute(_SQL["leases"]).fetchone()[0]
        return [Fault(f"{n} leases that only one side knows of")] if n else []

    def _groups(self) -> list[Fault]:
        """Pace groups of which too many hosts are visited at once, or that nobody will ever call."""
        grouping = self._settings.grouping()
        found = []
        for name, n in self._connection.execute(_SQL["turns"]):
            group = grouping.named(name)
            if group is not None and n > group.concurrency:
                found.append(Fault(f"pace group {name}: {n} hosts are visited, and {group.concurrency} may be"))
        for (name,) in self._connection.execute(_SQL["forgotten_groups"]):
            found.append(Fault(f"pace group {name}: hosts wait for it, and nobody has a turn"))
        return found[:TOLD] + _more(found, "pace groups")

    def _refusals(self) -> list[Fault]:
        rows = self._connection.execute(_SQL["refusals"]).fetchall()
        found = [
            Fault(f"host {host}: {kept} refusals for {why} are noted, and {n} were counted")
            for host, why, kept, n in rows
        ]
        return found[:TOLD] + _more(found, "hosts whose refusals are wrong")

    def _places(self) -> list[Fault]:
        places, keys, last_url, given_urls, last_token, given_tokens = self._connection.execute(
            _SQL["places"]
        ).fetchone()
        found = []
        if last_url > given_urls or last_token > given_tokens:
            found.append(Fault("numbers are in use that were never given out"))
        twice = self._connection.execute(_SQL["twice"]).fetchall()
        found += [Fault(f"URL {number} is in two places", mendable=False) for (number,) in twice[:TOLD]]
        strays = self._strays()
        found += [Fault(f"URL {number} has a key that is not known", mendable=False) for number in strays]
        if places != keys and not twice and not strays:
            found.append(Fault(f"{keys} keys are known, and {places} URLs are there", mendable=False))
        return found

    def _strays(self) -> list[int]:
        """Some of the URLs whose key is not known, or is another's."""
        asking = self._connection.cursor()
        tables = (self._connection.execute(_SQL[f"keys_{table}"]) for table in ("queue", "delayed", "outcome"))
        strays = (
            number
            for hid, tail, number in chain.from_iterable(tables)
            if asking.execute(_SQL["number"], (hid.to_bytes(HOST_BYTES, "big") + tail,)).fetchone() != (number,)
        )
        return list(islice(strays, TOLD))

    def _segments(self) -> list[Fault]:
        rows = self._connection.execute(_SQL["segments"]).fetchall()
        return [
            Fault(f"captures reach to byte {reached} of {name}, and {noted} is noted")
            for name, noted, reached in rows
        ]

    def _rounds(self) -> list[Fault]:
        n = self._connection.execute(_SQL["rounds"]).fetchone()[0]
        return [Fault(f"{n} counts of ended visits are not what was counted")] if n else []

    # -- mending --------------------------------------------------------------------------------------------

    def mend(self, now: int) -> None:
        """Set right what rows prove wrong, in one transaction. Leases are given up first, as at every start."""
        with writing(self._connection):
            for name in ("mend_serials", "void_lease", "void_token", "call_groups"):
                self._connection.execute(_SQL[name])
            self._mend_hosts()
        self._void(now)
        with writing(self._connection):
            self._mend_hosts()
            for name in ("clear_refusals", "mend_refusals", "mend_segments", "clear_rounds", "mend_rounds"):
                self._connection.execute(_SQL[name])
            counted = self._connection.execute(_SQL["totals"]).fetchall()
            self._connection.executemany(_SQL["mend_total"], [(n or 0, name) for name, n in counted])

    def _mend_hosts(self) -> None:
        for row in self._connection.execute(_SQL["hosts"]).fetchall():
            counted = dict(zip(_COUNTERS, row[3::2], strict=True))
            self._connection.execute(_SQL["mend_host"], {"hid": row[0], **counted})

    def _void(self, now: int) -> None:
        lost = 1
        while lost:
            with writing(self._connection):
                book = Book(self._connection, self._settings)
                lost = Losing(self._connection, self._settings, book, now).live()
                book.write()

    def lose(self, captures: Sequence[Captured]) -> None:
        """These have no capture: what was done is fetched again, what was stored is dead, the rest goes without."""
        with writing(self._connection):
            book = Book(self._connection, self._settings)
            for captured in captures:
                self._lose(captured, book)
            book.write()

    def lower(self, files: Sequence[str]) -> None:
        """These files of the archive are shorter than was noted; whatever they lack has been given up."""
        with writing(self._connection):
            self._connection.executemany(_SQL["lower_segment"], [(name,) for name in files])

    def _lose(self, captured: Captured, book: Book) -> None:
        delta = book.host(captured.hid)
        detail = "its capture is lost"
        if captured.state is UrlState.STORED:
            self._connection.execute(_SQL["lost_for_good"], (CAPTURE_LOST, detail, captured.id))
            book.move(UrlState.STORED, Event.DIE)
            delta.dead += 1
            return
        if captured.state not in (UrlState.DONE, UrlState.REDIRECTED):
            self._connection.execute(_SQL["lost_capture"], (captured.id,))
            return
        was_copy, was_page = self._connection.execute(_SQL["copy_of"], (captured.id,)).fetchone()
        row = Urls(self._connection).reopen(captured.id, captured.state)
        assert row is not None, f"URL {captured.id} left its place while it was looked at"
        Urls(self._connection).enqueue(row)
        book.move(captured.state, Event.REVISIT)
        delta.join(row.front_class)
        delta.done -= captured.state is UrlState.DONE
        delta.duplicates -= was_copy
        book.add(DUPLICATES, -was_copy)
        book.add(PAGES, -int(captured.state is UrlState.DONE and bool(was_page)))


def _captured(row: tuple[Any, ...]) -> Captured:
    number, hid, url, state, file, offset, length, digest, status = row
    pointer = None if file is None else Pointer(file, offset or 0, length or 0)
    return Captured(number, hid, url, UrlState(state), pointer, digest, status)


def _differences(pairs: Sequence[int]) -> str:
    kept, counted = pairs[::2], pairs[1::2]
    return ", ".join(
        f"{name} is {was} and should be {n}"
        for name, was, n in zip(_COUNTERS, kept, counted, strict=True)
        if was != n
    )


def _more(found: Sequence[object], what: str) -> list[Fault]:
    return [Fault(f"and {len(found) - TOLD} more {what}")] if len(found) > TOLD else []
