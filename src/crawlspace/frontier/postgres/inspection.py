"""A store held against itself and against the archives of some of its workers, for `crawlspace check`.

Reading only, in one session of its own that may take its time. It blocks whoever calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from crawlspace.errors import StoreError
from crawlspace.frontier.postgres.place import Place
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.sqlite.audit import Captured, Fault
from crawlspace.states import UrlState
from crawlspace.types import HOST_BYTES, Pointer

_SQL = queries("inspection.sql")
_AUDIT = queries("audit.sql")

TOLD = 20
"""Faults of one kind that are told one by one."""


@contextmanager
def open_inspection(place: Place, workers: Sequence[str]) -> Iterator[Inspection]:
    """Look at the store at a place, whose format is known to be ours, as these workers; raises `StoreError`."""
    try:
        with psycopg.connect(place.address, autocommit=True) as connection:
            connection.execute(_SQL["way"], {"schema": place.schema})
            yield Inspection(connection, list(workers))
    except psycopg.Error as error:
        raise StoreError(f"{place.shown}: {' '.join(str(error).split())[:300]}", hint="is the server up?") from error


class Inspection:
    """One look at a store. Made by `open_inspection`."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]], workers: list[str]) -> None:
        self._connection = connection
        self._workers = workers

    def faults(self) -> list[Fault]:
        """All that is wrong with the store's numbers, at one moment. None of it can be mended here."""
        found: list[Fault] = []
        with self._connection.transaction():
            shards: int = self._connection.execute(_SQL["shards"]).fetchall()[0][0]
            shift = 8 * HOST_BYTES + 1 - shards.bit_length()
            for name, query in _AUDIT.items():
                rows = self._connection.execute(query, {"shift": shift}).fetchall()
                found += [Fault(f"{name}: {', '.join(map(str, row))}", mendable=False) for row in rows[:TOLD]]
                if len(rows) > TOLD:
                    found.append(Fault(f"and {len(rows) - TOLD} more of {name}", mendable=False))
        return found

    def files(self) -> dict[str, int]:
        """How far settled captures reach into each file of these workers' archives."""
        return dict(self._connection.execute(_SQL["files"], {"names": self._workers}).fetchall())

    def batches(self, limit: int) -> Iterator[list[Captured]]:
        """Captures in these workers' archives, and URLs that lack one, so many at a time."""
        after: tuple[int, int] = (-1, 0)
        while True:
            parameters = {"shard": after[0], "id": after[1], "names": self._workers, "limit": limit}
            rows = self._connection.execute(_SQL["captures"], parameters).fetchall()
            if not rows:
                return
            after = rows[-1][:2]
            yield [_captured(row[1:]) for row in rows]


def _captured(row: tuple[Any, ...]) -> Captured:
    number, hid, url, state, file, offset, length, digest, status = row
    pointer = None if file is None else Pointer(file, offset or 0, length or 0)
    return Captured(number, hid, url, UrlState(state), pointer, digest, status)
