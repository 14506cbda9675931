"""A long look at a store at one moment, for those who write what it knows elsewhere.

It has a session of its own and one transaction that only reads: each URL is seen once and in one state, however long
it takes and whatever workers do meanwhile. Its price is paid by the server, which cannot clean up rows so long that
were replaced since. Rows come by cursors on the server, a few thousand at a time, and memory does not grow. It blocks
whoever calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg

from crawlspace.errors import StoreError
from crawlspace.frontier.postgres.place import Place, Shards
from crawlspace.frontier.postgres.sessions import Row, queries

_SQL = queries("looks.sql")

AT_ONCE = 2_000
"""Rows that are fetched together."""


@contextmanager
def look(place: Place, purpose: str) -> Iterator[Look]:
    """Look at the store at a place, whose format is known to be ours; raises `StoreError`, also while it is used.

    `purpose` tells people at the server who it is.
    """
    try:
        with psycopg.connect(place.address, autocommit=True) as connection:
            connection.execute(_SQL["way"], {"schema": place.schema, "purpose": purpose})
            with connection.transaction():
                yield Look(connection)
    except psycopg.Error as error:
        raise StoreError(f"{place.shown}: {' '.join(str(error).split())[:300]}", hint="is the server up?") from error


class Look:
    """One look. Made by `look`."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._names = count()
        self.shards = Shards(self.rows(_SQL["shards"])[0][0])
        self.all = list(range(self.shards.number))
        """All shards, for tables whose rows are looked up by a URL's number alone."""

    def owner(self, file: str, workers: Sequence[str]) -> str | None:
        """The worker who made an archive file, in words, if it is none of these."""
        found = self.rows(_SQL["owner"], name=file, names=list(workers))
        return _in_words(*found[0]) if found else None

    def others(self, workers: Sequence[str]) -> list[str]:
        """The workers who have archive files and are none of these, in words."""
        return [_in_words(*row) for row in self.rows(_SQL["others"], names=list(workers))]

    def rows(self, query: bytes, **parameters: Any) -> list[Row]:
        """The rows of a statement that has few."""
        return self._connection.cursor(binary=True).execute(query, parameters).fetchall()

    def stream(self, query: bytes, at_once: int = AT_ONCE, **parameters: Any) -> Iterator[Row]:
        """The rows of a statement, as they are asked for, so many fetched together; others may be asked meanwhile."""
        with self._connection.cursor(f"look_{next(self._names)}", binary=True) as cursor:
            cursor.itersize = at_once
            yield from cursor.execute(query, parameters)


def _in_words(number: int, place: str | None) -> str:
    return f"worker {number}" if place is None else f"worker {number} at {place}"
