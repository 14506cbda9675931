"""Re-keying a store: its URLs under other URL rules, in bounded memory, in transactions, to be killed at any moment.

The store says in one of its facts how far it is; whoever finds that fact there must go on or leave the store alone.
Every step reads it, works on one batch, and writes it again in the same transaction, so that a killed re-keying goes
on where it was and ends like one that was not.

What stays in the archive is not touched, and what the store has learned of robots, archive files and bytes holds on.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from crawlspace.frontier.rekeying import BATCH, DONE, LINKS, READY, UNFINISHED, Cursor, Naming, Progress, encoded
from crawlspace.frontier.settings import FrontierSettings
from crawlspace.frontier.sql import statements
from crawlspace.frontier.sqlite.book import Book
from crawlspace.frontier.sqlite.condemned import bury_some
from crawlspace.frontier.sqlite.connection import connect, durably, translated, writing
from crawlspace.frontier.sqlite.rekey_move import Moving
from crawlspace.frontier.sqlite.rekey_pages import Pages
from crawlspace.frontier.sqlite.rekey_plan import WALKS, Planning, planned_after, walk_over
from crawlspace.frontier.sqlite.rekey_rest import Rest

_SQL = statements(__package__, "rekey.sql")

_PLANNING = {f"plan {place.name.lower()}": place for place in WALKS}
_MOVING = "move"
_POINTING = ("point outcome", "point queue", "point delayed", "point content")
_HOSTS = "hosts"
_CROWDS = "crowds"
_PAGES = ("point page", "point said")
"""After the hosts: what merged pages counted for is with their heirs then."""
_STAGES = (*_PLANNING, _MOVING, *_POINTING, _HOSTS, _CROWDS, *_PAGES, READY)
_FIRST: dict[str, Cursor] = {
    **{stage: WALKS[place][1] for stage, place in _PLANNING.items()},
    _MOVING: ("", -1, -1, 0),
    "point outcome": (0,),
    "point queue": (-1, -1, -1),
    "point delayed": (-1, -1),
    "point content": ("",),
    "point page": (-1,),
    "point said": (-(1 << 63),),
    _HOSTS: (-1,),
    _CROWDS: (-1,),
    READY: (),
}
_LATER = ("route", "next_visit", "interval_ms", "changed", "content")
"""Columns of merged URLs that tables made before November 2026 lack."""
_IN_ORDER = [(stage, _FIRST[stage]) for stage in _STAGES]


@contextmanager
def open_rekeying(path: Path, settings: FrontierSettings, naming: Naming, batch: int = BATCH) -> Iterator[Rekeying]:
    """A store that this process owns, whose leases are void."""
    with translated(str(path)):
        connection = connect(str(path), settings)
        try:
            yield Rekeying(connection, settings, naming, batch)
        finally:
            connection.close()


class Rekeying:
    """Takes one store to new rules. Made by `open_rekeying`."""

    def __init__(
        self, connection: sqlite3.Connection, settings: FrontierSettings, naming: Naming, batch: int
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._naming = naming
        self._batch = batch

    def begin(self, rules: str, now: int, facts: Mapping[str, str], *, parts: bool) -> Progress:
        """Bury what was given up, and write down that a re-keying to these rules has begun, with facts about it."""
        while self._connection.execute(_SQL["condemned"]).fetchone():
            with writing(self._connection):
                book = Book(self._connection, self._settings)
                bury_some(self._connection, book, now)
                book.write()
        with durably(self._connection, self._settings), writing(self._connection):
            for statement in ("drop_plan", "make_plan", "make_merged", "index_merged"):
                self._connection.execute(_SQL[statement])
            self._complete()
            (urls,) = self._connection.execute(_SQL["count_urls"]).fetchone()
            stage, after = _IN_ORDER[0]
            progress = Progress(rules=rules, parts=parts, urls=urls, stage=stage, after=after)
            self._connection.executemany(_SQL["write_fact"], facts.items())
            self._write(progress)
        return progress

    def run(self, progress: Progress) -> Iterator[Progress]:
        """Go on from here until the store is ready, one transaction a step; gives where it stands after each."""
        if progress.stage in _STAGES:
            with writing(self._connection):
                self._complete()
        while progress.stage in _STAGES and progress.stage != READY:
            with writing(self._connection):
                progress = self._step(progress)
                self._write(progress)
            yield progress

    def finish(self, progress: Progress, facts: Mapping[str, str]) -> Progress:
        """Put the ready store under the new rules, which these facts tell; where it stands then."""
        left = msgspec.structs.replace(progress, stage=LINKS if progress.parts else DONE, after=(0,))
        with durably(self._connection, self._settings), writing(self._connection):
            for statement in ("drop_plan", "drop_visits", "point_visits"):
                self._connection.execute(_SQL[statement])
            self._connection.executemany(_SQL["write_fact"], facts.items())
            self._connection.execute(_SQL["write_fact"], (UNFINISHED, encoded(left) if progress.parts else ""))
        return left

    def _complete(self) -> None:
        """A table of merged URLs that an older version made, or left unfinished, gets the columns it lacks."""
        for column in _LATER:
            if not self._connection.execute(_SQL["has_column"], (column,)).fetchone()[0]:
                self._connection.execute(_SQL[f"add_{column}"])

    def _write(self, progress: Progress) -> None:
        self._connection.execute(_SQL["write_fact"], (UNFINISHED, encoded(progress)))

    def _step(self, progress: Progress) -> Progress:
        stage, after = progress.stage, progress.after
        if stage in _PLANNING:
            planning = Planning(walk_over(self._connection), self._connection, self._naming)
            reached, n, changed = planning.step(_PLANNING[stage], after, self._batch)
            told = msgspec.structs.replace(progress, planned=progress.planned + n, changed=progress.changed + changed)
            return told.onwards(_IN_ORDER, reached)
        if stage == _MOVING:
            return self._move(progress)
        rest, pages = Rest(self._connection, self._settings, self._naming), Pages(self._connection)
        walks = {
            "point outcome": rest.outcomes,
            "point queue": rest.queue,
            "point delayed": rest.delayed,
            "point content": rest.content,
            "point page": pages.pages,
            "point said": pages.said,
            _HOSTS: rest.hosts,
            _CROWDS: rest.crowds,
        }
        return progress.onwards(_IN_ORDER, walks[stage](after, self._batch))

    def _move(self, progress: Progress) -> Progress:
        key, rank, number, winner = progress.after
        start = bytes.fromhex(str(key))
        rows = planned_after(self._connection, (start, int(rank), int(number)), self._batch)
        if not rows:
            return progress.onwards(_IN_ORDER, None)
        moving = Moving(self._connection, self._settings, self._naming, progress.rules)
        did, (_, winner) = moving.run(rows, (start, int(winner)))
        last = rows[-1]
        told = msgspec.structs.replace(
            progress,
            moved=progress.moved + len(rows),
            merged=progress.merged + did.merged,
            restored=progress.restored + did.restored,
        )
        return told.onwards(_IN_ORDER, (last.key.hex(), last.rank, last.id, winner))
