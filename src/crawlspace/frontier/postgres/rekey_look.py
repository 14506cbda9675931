"""A look at a shared store for who re-keys it: a dry run, archived pages to be read again, and what was merged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from crawlspace.frontier import rekeying
from crawlspace.frontier.postgres.looks import Look, look
from crawlspace.frontier.postgres.place import Place as Where
from crawlspace.frontier.postgres.rekey_rest import named
from crawlspace.frontier.postgres.sessions import queries
from crawlspace.frontier.rekeying import Cursor, Merged, Place, Planned, Source
from crawlspace.types import HOST_BYTES

_SQL = queries("rekey.sql")

FIRST: dict[Place, Cursor] = {
    Place.OUTCOME: (-1, -1),
    Place.QUEUE: (-1, -1, -1, -1),
    Place.DELAYED: (-1, -1, -1),
    Place.MERGED: (-1,),
}
"""Where the walk over each table begins."""

_NUMBERS = 1 << 48
"""More than there are numbers of URLs: shard and number make one place."""


@contextmanager
def open_reading(place: Where) -> Iterator[PostgresReading]:
    """The store at a place as it is now; raises `StoreError`."""
    with look(place, "crawlspace rekey") as found:
        yield PostgresReading(found)


class PostgresReading:
    """A look at a store; see `rekeying.Reading`."""

    def __init__(self, found: Look) -> None:
        self._look = found

    def walk(self, place: Place, after: Cursor | None, limit: int) -> list[tuple[Any, ...]]:
        """The next rows of a table."""
        query = _SQL[f"walk_{place.name.lower()}"]
        return self._look.rows(query, limit=limit, **named("a", after or FIRST[place]))

    def url(self, row: Planned) -> str:
        """The address of a URL of the plan."""
        query = _SQL[f"{Place(row.place).name.lower()}_url"]
        found = self._look.rows(query, shard=self._look.shards.of(row.hid), hid=row.hid, id=row.id)
        return str(found[0][0])

    def has_merged(self) -> bool:
        """Whether the store was ever re-keyed."""
        return bool(self._look.rows(_SQL["has_merged"])[0][0])

    def has_followed(self) -> bool:
        """Whether the crawl ever followed a link; one of a list alone never does."""
        return bool(self._look.rows(_SQL["followed"])[0][0])

    def sources(self, after: int, limit: int) -> list[Source]:
        """The next URLs whose answer led to others."""
        shard, number = divmod(after, _NUMBERS)
        rows = self._look.rows(_SQL["sources"], shard=shard, id=number, limit=limit)
        return [
            rekeying.source(of * _NUMBERS + found, found, hid.to_bytes(HOST_BYTES, "big") + tail, rest)
            for of, found, hid, tail, *rest in rows
        ]

    def merged_sources(self, after: int, limit: int) -> list[Source]:
        """The same of URLs that were merged, in the name and without the key of the URL that stayed."""
        rows = self._look.rows(_SQL["merged_sources"], id=after, limit=limit)
        return [rekeying.source(number, winner, b"", rest) for number, winner, *rest in rows]

    def merged_into(self, number: int, limit: int = 100) -> list[Merged]:
        """What was merged into a URL, oldest first."""
        return [rekeying.merged(row) for row in self._look.rows(_SQL["merged_into"], id=number, limit=limit)]
